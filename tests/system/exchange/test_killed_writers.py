"""Writers of `.ragmd` and FAISS + JSON that are killed: the old index is there, or the new one."""

import os
import random
import signal
import subprocess
import sys

import pytest

from filestore.exchange.base import FormDamaged, open_form
from tests.conftest import CHECKOUT

WRITER = """
import itertools, sys
import numpy
from filestore.exchange.base import Chunk, Collection, Resource
from filestore.exchange.base import open_form

form, target = open_form(sys.argv[1]), sys.argv[2]
for number in itertools.count():
    rows = numpy.full((300, 64), number + 1, "<f4")
    chunks = [
        Chunk(path=f"a/chunk{at}.md", text=f"Text of {number}", vectors={0: row})
        for at, row in enumerate(rows)
    ]
    resources = [Resource(name="a", chunks=tuple(chunks))]
    form.write(target, Collection(resources=resources, model="m", dimension=64))
    if number == 2:
        print("ready", flush=True)
"""
FORMS = {"kb.ragmd": "ragmd", "kb": "faiss-json", "vectors-kb.faiss": "faiss-json"}


def kill_writer(form, target, after_s):
    """Let a process write again and again, and kill it in the middle of it."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, form, target],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    try:
        process.wait(timeout=after_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    assert process.wait(timeout=120) == -signal.SIGKILL
    process.stdout.close()


def versions(form, target):
    """Of which writing the texts are, and of which the vectors."""
    chunks = [chunk for one in open_form(form).read(target) for chunk in one.chunks]
    assert len(chunks) == 300
    numbers = {int(chunk.text.rpartition(" ")[2]) for chunk in chunks}
    return numbers, {int(chunk.vectors[0][0]) - 1 for chunk in chunks}


def is_torn(target):
    """Whether only one of two files was replaced, and that is said."""
    try:
        open_form("faiss-json").read(target)
    except FormDamaged as error:
        return "it is not the index that metadata-kb.json was written with" in error.message
    return False


def kill_again_and_again(name, folder, times):
    """Kill writers of an index, and look at what each left."""
    form, target = FORMS[name], str(folder / name)
    chance = random.Random(name)
    for _ in range(times):
        kill_writer(form, target, chance.random() * 0.05)
        if name == "vectors-kb.faiss" and is_torn(target):
            continue
        texts, vectors = versions(form, target)
        assert texts == vectors
        assert len(texts) == 1
    left = [path.name for path in folder.iterdir() if path.name.startswith(".filestore-tmp-")]
    assert len(left) <= 2


@pytest.mark.parametrize("name", FORMS)
def test_a_killed_writer_leaves_a_whole_index(name, tmp_path):
    """Texts and vectors of one writing; two files that are not of one are never taken for one."""
    kill_again_and_again(name, tmp_path, 2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FORMS)
def test_no_moment_of_a_kill_leaves_half_an_index(name, tmp_path):
    """Again and again, at moments by chance."""
    kill_again_and_again(name, tmp_path, 25)
