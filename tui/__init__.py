"""The inspector: browses a store on a terminal, shows every drift, repairs it and undoes repairs.

`formatting` and `state` are pure; `workers` does what takes time; `widgets` draw; `views` are the
pages and what lies over them; `app` holds them together. One rule: what comes from a file reaches
the screen through `formatting` only, which makes it safe for a terminal.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tui.app.frame import Options

SIGNALLED: Final = 128
"""The exit code after a signal is this and its number; a closed terminal is a hang-up."""
_COLLECTED_AFTER: Final = (10_000, 100, 100)


def run(options: "Options") -> int:
    """Open the inspector and return its exit code.

    Raises:
        InspectorFailedError: An unexpected failure, whether or not it ended the session.
    """
    import gc
    import os
    import sys

    from msgspec.structs import replace

    from tui.app.inspector import Inspector
    from tui.workers.faults import InspectorFailedError, when_ended, when_uncaught

    inspector = Inspector(options)
    # These outlive a store that is left for another one.
    when_uncaught(
        in_thread=lambda error: inspector.thread_failed(error),
        in_destructor=lambda error: inspector.keep_fault(error),
    )

    def force(number: int, is_gone: bool) -> None:
        """End at once; the child processes end with their line. An editor is waited for."""
        if is_gone or inspector.give_terminal_back():
            os._exit(SIGNALLED + number)

    when_ended(lambda number: inspector.leave(SIGNALLED + number), force)
    # What is loaded now stays, so collections need not visit it. Findings form no cycles, and to
    # visit very many of them takes longer than a key may wait.
    gc.freeze()
    gc.set_threshold(*_COLLECTED_AFTER)
    while True:
        try:
            inspector.run(mouse=options.mouse)
        except Exception as error:  # the top of a front end: whatever it is, it is kept
            inspector.keep_fault(error)
            inspector.close_screen()
        if inspector.fault or inspector.return_code or not inspector.next_store:
            break
        options = replace(options, store=inspector.next_store, page=None, select="")
        inspector = Inspector(options)
    if inspector.fault:
        failed = InspectorFailedError(inspector.fault)
        sys.stderr.write(failed.trace)
        raise failed
    return inspector.return_code or 0
