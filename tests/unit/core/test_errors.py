"""What must hold of every error a user may see: an exit code of the contract, words, a remedy."""

import importlib

import pytest

from filestore.core.errors import FilestoreError, RefusedError, UsageError
from tests.test_architecture import all_modules


def every_error():
    """All error classes of the package."""
    for module in all_modules():
        importlib.import_module(module)
    found, rest = [], [FilestoreError]
    while rest:
        error = rest.pop()
        found.append(error)
        rest += error.__subclasses__()
    return [error for error in found if error.__module__.startswith("filestore")]


def test_every_error_has_an_exit_code_of_the_contract():
    """An error means wrong usage, an unusable store or input, or a refusal, and nothing else."""
    errors = every_error()
    assert len(errors) > 10
    assert {error.exit_code for error in errors} == {2, 3, 4}
    assert all(issubclass(e, UsageError) for e in errors if e.exit_code == 2)
    assert all(issubclass(e, RefusedError) for e in errors if e.exit_code == 4)


@pytest.mark.parametrize(
    ("error", "code", "builtin"), [(FilestoreError, 3, Exception), (UsageError, 2, ValueError)]
)
def test_an_error_carries_message_remedy_and_detail(error, code, builtin):
    """What a front end prints comes from the error itself."""
    raised = error("it is gone", remedy="run init", detail="errno 2")
    assert (str(raised), raised.message) == ("it is gone", "it is gone")
    assert (raised.remedy, raised.detail, raised.exit_code) == ("run init", "errno 2", code)
    assert isinstance(raised, builtin)


def test_remedy_and_detail_may_be_left_out():
    """An error without advice has empty texts, which print as nothing."""
    raised = RefusedError("no")
    assert (raised.remedy, raised.detail) == ("", "")
