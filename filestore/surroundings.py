"""What goes on around a store and passes: another writer, git at work. Changes nothing."""

import os

from filestore import locking, worktree
from filestore.findings import Finding
from filestore.places import Places


def findings(places: Places) -> list[Finding]:
    """What is under way while the store is looked at."""
    return [*_locked(places), *_git_operation(places)]


def _locked(places: Places) -> list[Finding]:
    if not locking.held(places.lock):
        return []
    detail = f"held by {locking.holder(places.lock)}"
    return [Finding(code="locked", path=".sidecar/lock", detail=detail)]


def _git_operation(places: Places) -> list[Finding]:
    word = worktree.operation(places.root)
    tree = worktree.git_work_tree(places.root)
    if not word or tree is None:
        return []
    path = os.path.relpath(os.path.join(tree, ".git"), places.root)
    return [Finding(code="git-operation", path=path, detail=f"a git {word} is under way")]
