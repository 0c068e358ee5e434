"""The command in a locale that is not of UTF-8: names of files stay what they are.

Python would read and write names in the locale's encoding, and take `é` for other letters or none.
One rule: what the person types and reads is in their encoding, all else in UTF-8.
"""

import contextlib
import locale
import os
from collections.abc import Sequence

from filestore.fs.programs import restart_in_utf8, was_restarted


def entered(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The encoding of the person, None for that of this process; and the words they typed.

    It does not return where the process is to be started anew.
    """
    restart_in_utf8()
    if not was_restarted():
        return None, list(words)
    encoding = locale.getencoding()
    return encoding, [_typed(word, encoding) for word in words]


def _typed(word: str, encoding: str) -> str:
    """A word that is neither UTF-8 nor the name of a file, in the encoding it was typed in."""
    try:
        word.encode()
    except UnicodeEncodeError:
        if not os.path.lexists(word):
            with contextlib.suppress(ValueError):
                return os.fsencode(word).decode(encoding)
    return word
