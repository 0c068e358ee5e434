"""The files of a vector store at OpenAI, or at a service that answers as it does, page by page.

Nothing is changed there. One rule: what a service says is a stranger's word: a list that goes round
in circles ends, an identifier never leads to another place, and every type is looked at.
"""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from filestore.core.errors import UsageError
from filestore.core.limits import Counter, Size
from filestore.core.safe_text import safe_text
from filestore.exchange.base import LeftOut
from filestore.exchange.joining import Strategy, tokens
from filestore.exchange.rebuild import Document
from filestore.remote import EndpointError, EndpointUnusable
from filestore.remote.address import DEFAULT_ENDPOINT, Use, key_for, parse_address
from filestore.remote.service import (
    Asked,
    Deadline,
    Service,
    ServiceAnswer,
    ServiceLimits,
    fields_of,
    is_final,
    parsed,
    refusal,
)

USE: Final = Use(
    path="/vector_stores",
    table="",
    model_key="--from",
    too_long="",
    kept="files that were written stay",
    without="files that were written stay",
    option="--endpoint",
)
LIMITS: Final = ServiceLimits(read_s=60.0, total_s=300.0, answer_bytes=256 * 1024 * 1024)
"""For each request; there are as many as there are files and pages."""
PAGE: Final = 100
_MOST_PAGES: Final = 100_000
"""Of the contents of one file."""
_IDENTIFIER: Final = re.compile(r"(?!\.+$)[A-Za-z0-9._-]{1,200}", re.ASCII)


class VectorStore:
    """One vector store; it is contacted when its documents are passed through.

    Raises:
        UsageError: It has no such name.
        EndpointError: The address is none, or the key cannot be sent there.
    """

    def __init__(
        self,
        identifier: str,
        *,
        endpoint: str,
        environment: Mapping[str, str],
        left_out: LeftOut,
        counter: Counter,
        limits: ServiceLimits = LIMITS,
    ) -> None:
        """Prepare.

        Args:
            identifier: As the service has it: ``vs_…``.
            endpoint: "" for OpenAI's own. Typing it allows it: the key is sent there.
            environment: The variables of the process: where the key is.
            left_out: Takes what could not be read.
            counter: Holds what comes against limits.
            limits: How patient to be.
        """
        if not _IDENTIFIER.fullmatch(identifier):
            raise UsageError(f"no vector store is called {identifier!r}: write --from openai:vs_…")
        address = parse_address(endpoint or DEFAULT_ENDPOINT, USE)
        self._identifier = identifier
        self._key = key_for(address, environment)
        self._service = Service(address, USE, limits=limits, is_final=is_final)
        self._limits = limits
        self._left_out = left_out
        self._counter = counter
        self._asked = Asked(use=USE, address=str(address), model=identifier, key=self._key)

    def documents(self) -> Iterator[Document]:
        """Its files, with their names; their contents are read when they are asked for.

        Raises:
            EndpointError: The service does not answer, or does not know the store.
        """
        path = f"/vector_stores/{self._identifier}/files?limit={PAGE}&order=asc"
        seen: set[str] = set()
        after = ""
        while True:
            page = self._fields(path + after, f"vector store {self._identifier!r}")
            found = [one for one in page["data"] if one.get("id") not in seen]
            for one in found:
                identifier = one.get("id")
                if not isinstance(identifier, str) or not _IDENTIFIER.fullmatch(identifier):
                    self._left_out.add(f"a file that has no usable id: {_shown(identifier)}")
                    continue
                seen.add(identifier)
                self._counter.add(Size(files=1))
                status = one.get("status", "completed")
                if status == "completed":
                    yield Document(
                        name=self._name(identifier),
                        identifier=identifier,
                        read=partial(self._texts, identifier),
                        strategy=_strategy(one),
                    )
                    continue
                error = one.get("last_error")
                message = error.get("message") if isinstance(error, Mapping) else None
                why = f": {_shown(message)}" if message else ""
                self._left_out.add(f"{identifier}: its status is {_shown(status)}{why}")
            if page.get("has_more") is not True:
                return
            last = page.get("last_id") or (page["data"][-1].get("id") if page["data"] else None)
            usable = isinstance(last, str) and _IDENTIFIER.fullmatch(last)
            if not found or not usable:
                raise EndpointError(
                    f"{self._asked.address} says that there are more files and gives none that"
                    f" were not on the pages before ({len(seen):,} so far)",
                    remedy="run the command again, or ask who runs that service",
                )
            after = f"&after={last}"

    def _name(self, identifier: str) -> str:
        """What a file is called; its id where that cannot be found out."""
        try:
            answer = self._answer(f"/files/{identifier}")
        except EndpointUnusable:
            raise
        except EndpointError:
            return identifier
        if answer.status in (401, 429):
            raise refusal(answer, self._asked, ())
        found = parsed(answer.body) if answer.status == 200 else None
        name = found.get("filename") if isinstance(found, Mapping) else None
        return name if isinstance(name, str) and name.strip() else identifier

    def _texts(self, identifier: str) -> Sequence[str]:
        """The chunks of a file.

        Raises:
            EndpointError: They cannot be had.
        """
        base = f"/vector_stores/{self._identifier}/files/{identifier}/content"
        texts: list[str] = []
        path, pages = base, set[str]()
        while True:
            page = self._fields(path, f"content of {identifier!r}")
            for place, part in enumerate(page["data"], start=1):
                text = part.get("text")
                if part.get("type", "text") == "text" and isinstance(text, str):
                    texts.append(text)
                    self._counter.add(Size(rows=1, bytes=len(text)))
                else:
                    kind = _shown(part.get("type"))
                    self._left_out.add(f"{identifier}: part {place} is not text but {kind}")
            following = page.get("next_page")
            if page.get("has_more") is not True:
                return texts
            usable = isinstance(following, str) and _IDENTIFIER.fullmatch(following)
            if not usable or str(following) in pages or len(pages) > _MOST_PAGES:
                raise EndpointError(
                    f"{self._asked.address} holds back a part of the content of {identifier!r}"
                    ": run the command again",
                )
            pages.add(str(following))
            path = f"{base}?page={following}"

    def _fields(self, path: str, what: str) -> Mapping[str, Any]:
        """An answer with a list `data` of objects.

        Raises:
            EndpointError: There is none.
        """
        answer = self._answer(path)
        if answer.status == 404:
            raise EndpointError(
                f"{self._asked.address} knows no {what}"
                ": check the id, the --endpoint, and that the key is one of that project",
            )
        if 300 <= answer.status < 400:
            raise EndpointUnusable(
                f"{self._asked.address} redirects, which is not followed; name the new"
                " address with --endpoint",
            )
        if answer.status != 200:
            raise refusal(answer, self._asked, ())
        return fields_of(answer.body, "data", self._asked)

    def _answer(self, path: str) -> ServiceAnswer:
        until = Deadline(self._limits.total_s, threading.Event())
        return self._service.get(path, self._key, until)


def _strategy(fields: Mapping[str, Any]) -> Strategy | None:
    """The overlap that the service says a file was cut with; None where it does not say."""
    chunking = fields.get("chunking_strategy")
    static = chunking.get("static") if isinstance(chunking, Mapping) else None
    number = static.get("chunk_overlap_tokens") if isinstance(static, Mapping) else None
    if type(number) is not int or not 0 <= number <= 1_000_000:
        return None
    return tokens(number)


def _shown(value: object) -> str:
    return safe_text(str(value), keep_newlines=False)[:200]
