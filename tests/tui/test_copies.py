"""What `y` and `Y` copy: of the file under the cursor, or of what is marked."""


def test_a_letter_chooses_what_is_copied(case):
    """One key copies the path, two any other form; of marked files each on a line."""
    paths = [str(path.relative_to(case.root)) for path in case.chunks()[:2]]
    forms = {
        "p": paths,
        "a": [f"{case.root}/{path}" for path in paths],
        "m": [f"[{path.rpartition('/')[2].removesuffix('.md')}]({path})" for path in paths],
    }

    async def act(session):
        app = session.app
        copied = []
        app.copy_text = lambda text, *, what: copied.append(text)
        app.open_path(paths[0])
        await session.until(lambda: app.action_context().path == paths[0])
        await session.press("y")
        await session.until(lambda: copied)
        assert copied.pop() == paths[0]
        for letter, written in forms.items():
            await session.press("Y", letter)
            await session.until(lambda: copied)
            assert copied.pop() == written[0]
        await session.press("enter")
        await session.until(app.view.line_to_edit)
        await session.press("Y", "l")
        await session.until(lambda: copied)
        assert copied.pop() == f"{paths[0]}:{app.view.line_to_edit()}"
        await session.press("escape", "space", "space")
        await session.until(lambda: app.action_context().marked == 2)
        for letter, written in forms.items():
            await session.press("Y", letter)
            await session.until(lambda: copied)
            assert copied.pop().splitlines() == written

    case.inspect(act)
