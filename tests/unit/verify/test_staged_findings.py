"""Which findings in what is staged stop a commit."""

from filestore.core.codes import CODES
from filestore.core.findings import Finding
from filestore.core.paths import StorePath
from filestore.verify.staged import Staged


def test_errors_and_names_stop_a_commit() -> None:
    """Of all codes that there are; what is a note, or accepted, stops none."""
    path = StorePath("a.md")
    for code, row in CODES.items():
        stops = row.severity == "E" or code in ("name-collision", "unportable-name")
        assert Staged(files=1, findings=(Finding(code=code, path=path),)).stops_commit == stops, (
            code
        )
        for passed in ({"is_note": True}, {"accepted": True}):
            found = Finding(code=code, path=path, **passed)
            assert not Staged(files=1, findings=(found,)).stops_commit
    assert not Staged(files=0, findings=()).stops_commit
