"""What tantivy raises, told apart: a disk that refuses, a file that is gone, damage."""

import errno
import os
import resource

import pytest

from filestore.fs.disk import LimitReachedError, WriteFailedError
from filestore.fulltext._stamp import (
    FulltextDamaged,
    FulltextUnreadable,
    TantivyGuard,
    WritingGuard,
)
from tests.advice import advised, all_words

TO_A_PERSON = "An IO error occurred: 'No space left on device (os error {})'"
TO_A_PROGRAMMER = 'IoError {{ io_error: Os {{ code: {}, kind: Other, message: "x" }} }}'


@pytest.mark.parametrize("words", [TO_A_PERSON, TO_A_PROGRAMMER])
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_refuses_is_no_damage(words, number):
    """However Rust words it, the reason is told as the disk's, and nothing is called damaged."""
    with pytest.raises(WriteFailedError) as failed, WritingGuard("/index"):
        raise ValueError(words.format(number))
    assert advised(failed.value)
    with pytest.raises(FulltextUnreadable), TantivyGuard("/index"):
        raise ValueError(words.format(number))


@pytest.mark.parametrize("guard", [TantivyGuard, WritingGuard])
def test_limits_of_the_moment_are_told_as_such(guard):
    """Too few open files is what it is."""
    with pytest.raises(LimitReachedError), guard("/index"):
        raise ValueError(TO_A_PERSON.format(errno.EMFILE))


def test_a_thread_that_stopped_is_no_damage(tmp_path):
    """What stopped it is found by a try; where nothing does, the disk is to be looked at."""

    def stopped():
        raise ValueError("An error occurred in a thread: 'An index writer was killed.. A worker'")

    said = "the threads that write it stopped"
    with pytest.raises(WriteFailedError, match=said) as failed, WritingGuard(str(tmp_path)):
        stopped()
    assert "check the disk" in all_words(failed.value)
    with pytest.raises(WriteFailedError, match="No such file"), WritingGuard(str(tmp_path / "x")):
        stopped()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The lowest number that is free is the only one left.
    least = os.dup(0) + 1
    os.close(least - 1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (least, limits[1]))
    try:
        with pytest.raises(LimitReachedError, match=f"{least:,}"), WritingGuard(str(tmp_path)):
            stopped()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize("guard", [TantivyGuard, WritingGuard])
@pytest.mark.parametrize("words", ["Data corrupted", TO_A_PERSON.format(errno.ENOENT)])
def test_all_else_is_damage(guard, words):
    """What is no more what was written, or is gone, is made again."""
    with pytest.raises(FulltextDamaged), guard("/index"):
        raise ValueError(words)
