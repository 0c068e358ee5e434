"""What an error tells a person to do, in its remedy or in its sentence."""

import re
from typing import Final

from filestore.core.errors import FilestoreError

_DONE: Final = (
    "add|answer|ask|cd|change|check|choose|close|convert|correct|cut|edit|end|export|finish|fix|"
    "flatten|free|give|go|install|keep|leave|load|look|make|move|name|open|press|put|recognise|"
    "remove|rename|resolve|restore|run|save|search|see|send|set|shorten|show|split|start|take|try|"
    "type|unset|use|wait|write"
)
_ADVICE: Final = re.compile(rf"[:;,] (?:its keys are|or |if \w+ \w+ |better: )?(?:{_DONE})\b")


def all_words(error: FilestoreError) -> str:
    """All that a person reads."""
    return f"{error.message} {error.remedy}"


def advised(error: FilestoreError | str) -> bool:
    """Whether it says what helps."""
    if isinstance(error, str):
        return "\n  " in error or "--help" in error or bool(_ADVICE.search(error))
    return bool(error.remedy) or bool(_ADVICE.search(error.message))
