"""Files damaged at random, and what must hold of each: a sound document or a refusal."""

import random
import re
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from filestore.extract import Document, ExtractionError, Extractor
from tests.advice import advised

RELAXED = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
_ODD = ('""', '"-1"', '"x"', '"99999999999999"')


def read_soundly(extractor: Extractor, data: bytes, name: str) -> Document | None:
    """The document, the same a second time; None where it is refused by name and with a remedy."""
    refusal = None
    try:
        found = extractor.extract(data, name=name)
    except ExtractionError as error:
        refusal = error
    if refusal is not None:
        assert refusal.message.startswith(name)
        assert advised(refusal)
        return None
    assert found.text.strip()
    assert "\0" not in found.text
    again = extractor.extract(data, name=name)
    assert found == again
    assert list(found.metadata) == list(again.metadata)
    return found


def damage_parts(
    data: st.DataObject, parts: dict[str, Any], names: Sequence[str], odd: Sequence[str]
) -> None:
    """Replace some tags and values of some parts, by odd ones or by others of the same part."""
    for _ in range(data.draw(st.integers(1, 5))):
        part = data.draw(st.sampled_from(names))
        text = parts[part] if isinstance(parts[part], str) else parts[part].decode()
        pieces = re.split(r'(<[^>]*>|"[^"]*")', text)
        place = data.draw(st.integers(0, len(pieces) - 1))
        pieces[place] = data.draw(
            st.sampled_from([*_ODD, *odd]) | st.just("") | st.sampled_from(pieces)
        )
        joined = "".join(pieces)
        parts[part] = joined if isinstance(parts[part], str) else joined.encode()


def changed(generator: random.Random, data: bytes) -> bytes:
    """Some bytes cut off, overwritten or repeated."""
    damaged = bytearray(data)
    for _ in range(generator.randint(1, 6)):
        place = generator.randrange(len(damaged) + 1)
        kind = generator.randrange(4)
        if kind == 0:
            del damaged[place:]
        elif kind == 1:
            damaged[place : place + 1] = bytes([generator.randrange(256)])
        elif kind == 2:
            del damaged[place : place + generator.randint(1, 40)]
        else:
            damaged[place:place] = damaged[place : place + generator.randint(1, 200)]
        if not damaged:
            break
    return bytes(damaged)
