"""The tables of numpy that are read: what it wrote itself, and no other kind of file."""

import io
import pickle

import numpy as np
import pytest

from filestore.exchange import faiss_bytes
from filestore.exchange.base import FormDamaged
from tests.vectors import unit_rows

ROWS = unit_rows(5, dimension=6)


def saved(table, **options):
    """The bytes that numpy writes."""
    file = io.BytesIO()
    np.lib.format.write_array(file, table, **options)
    return file.getvalue()


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_what_numpy_wrote_is_read(count, version):
    """Of every version, by rows or by columns."""
    rows = ROWS[:count]
    assert np.array_equal(faiss_bytes.parse_npy(saved(rows, version=version)), rows)
    assert np.array_equal(
        faiss_bytes.parse_npy(saved(np.asfortranarray(rows), version=version)), rows
    )


@pytest.mark.parametrize("count", [0, 1, 5])
def test_what_is_written_numpy_reads(count):
    """At the place that numpy expects, so that it can map the file as well."""
    rows = ROWS[:count]
    head = faiss_bytes.head_of_npy(count, 6)
    assert len(head) % 64 == 0
    data = io.BytesIO(head + bytes(faiss_bytes.bytes_of(rows)))
    assert np.array_equal(np.lib.format.read_array(data, allow_pickle=False), rows)


def header(text):
    """A file with a header of one's own."""
    data = text.encode()
    return b"\x93NUMPY\x01\x00" + len(data).to_bytes(2, "little") + data + ROWS.tobytes()


USUAL = "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 6), }\n"
NAN = ROWS.copy()
NAN[3, 2] = np.nan
REFUSED = {
    "nothing": (b"", "no .npy file"),
    "a pickle": (pickle.dumps([1, 2]), "no .npy file"),
    "a version that is not known": (b"\x93NUMPY\x09\x00" + bytes(100), "no .npy file"),
    "objects": (saved(np.array([[{}]], dtype=object), allow_pickle=True), "float32"),
    "doubles": (saved(ROWS.astype(np.float64)), "'<f8'"),
    "the other byte order": (saved(ROWS.astype(">f4")), "'>f4'"),
    "one row alone": (saved(ROWS[0]), "not the one of a table"),
    "a cube": (saved(ROWS.reshape(5, 3, 2)), "not the one of a table"),
    "code": (header("__import__('os').system('true')\n"), "not the one of a table"),
    "brackets": (header("(" * 900), "not the one of a table"),
    "a huge header": (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(50), "not the one of a table"),
    "4 GB": (header(USUAL.replace("(5", "(500000000")), "120 bytes for 500,000,000 rows"),
    "numbers that overflow": (header(USUAL.replace("(5, 6", "(999999999999, 65536")), "120 bytes"),
    "a negative count": (header(USUAL.replace("(5", "(-5")), "not the one of a table"),
    "rows of nothing": (header(USUAL.replace("6)", "0)")), "5 rows of 0 numbers"),
    "a byte less": (saved(ROWS)[:-1], "119 bytes"),
    "a byte more": (saved(ROWS) + b"x", "121 bytes"),
    "a number that is none": (saved(NAN), "vector 3 has nan at place 2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_any_other_file_is_refused(case):
    """By its head, before anything is made of its size."""
    data, expected = REFUSED[case]
    with pytest.raises(FormDamaged, match=expected):
        faiss_bytes.parse_npy(data)
