"""The inspector: looks at a store on a terminal and changes nothing.

`present` makes the words and knows no Textual; `app` shows them. One rule: what comes from a file
reaches the screen through `present` only, which makes it safe for a terminal.
"""


def run(*, store: str | None, configuration: str) -> int:
    """Open the inspector and return its exit code.

    Args:
        store: The folder named by the user; None to look around the working folder.
        configuration: The user's configuration folder.
    """
    from tui.app import Inspector

    inspector = Inspector(store=store, configuration=configuration)
    inspector.run()
    return inspector.return_code or 0
