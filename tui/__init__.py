"""The inspector: browses a store on a terminal, shows every drift, mends it and takes it back.

`words` and `model` are pure; `backstage` does what takes time; `widgets` draw; `views` are the
pages, `modals` lie over them; `frame`, `menus` and `app` hold them together. One rule: what comes
from a file reaches the screen through `words` only, which make it safe for a terminal.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tui.frame import Options

HUNG_UP: Final = 129
"""The exit code of who is ended by a hang-up: 128 and the number of the signal."""
_COLLECTED_AFTER: Final = (10_000, 100, 100)


def run(options: "Options") -> int:
    """Open the inspector and return its exit code."""
    import gc
    import os

    from tui.app import Inspector
    from tui.backstage.hangup import when_hung_up

    inspector = Inspector(options)
    if options.in_browser:
        when_hung_up(lambda: inspector.post(inspector.exit))
    else:
        # As the signal of a terminal that is closed would; the children stop as Ctrl-C stops them.
        when_hung_up(lambda: os._exit(HUNG_UP))
    # What is there now stays: without it a collection has less to look through. Very many findings
    # form no cycles, and to look through all of them takes longer than a key may wait.
    gc.freeze()
    gc.set_threshold(*_COLLECTED_AFTER)
    inspector.run(mouse=options.mouse)
    return inspector.return_code or 0
