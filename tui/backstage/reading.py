"""The reading thread: the store opened in it, and the questions that wait for it.

One rule: what is in sight goes before the rest, and of one group only the newest is put.
"""

import heapq
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from filestore import FilestoreError, Store, UsageError
from tui.backstage.crossing import Done, Failed, attempt
from tui.backstage.kept import KeptStore

_ENDED_WITHIN_S: Final = 10.0
_KEEPS_STORE: Final = (KeyError, UsageError)
"""What says that there is no such thing, or that the question was wrong; the store is well."""


@dataclass(slots=True, kw_only=True, order=True)
class _Question:
    rank: tuple[bool, int]
    """Whether it can wait, and how many were asked before."""
    put: Callable[[Store], Any] = field(compare=False)
    then: Callable[[Any], None] = field(compare=False)
    failed: Callable[[FilestoreError], None] = field(compare=False)
    group: str = field(compare=False)


class Reading:
    """One thread with a store of its own. Its methods are called on the screen's thread."""

    def __init__(
        self, open_store: Callable[[], Store], *, post: Callable[[Callable[[], None]], None]
    ) -> None:
        """Start nothing yet.

        Args:
            open_store: Opens the store, in the thread.
            post: Has a function called on the screen's thread.
        """
        self._kept = KeptStore(open_store)
        self._post = post
        self._changed = threading.Condition()
        self._waiting: list[_Question] = []
        self._newest: dict[str, _Question] = {}
        self._asked = 0
        self._let_go = False
        self._ended = False
        self._thread: threading.Thread | None = None

    def ask(
        self,
        question: Callable[[Store], Any],
        then: Callable[[Any], None],
        *,
        failed: Callable[[FilestoreError], None],
        group: str,
        urgent: bool,
    ) -> None:
        """Put a question; see `Backstage.read`."""
        with self._changed:
            self._asked += 1
            asked = _Question(
                rank=(not urgent, self._asked),
                put=question,
                then=then,
                failed=failed,
                group=group,
            )
            if group:
                self._newest[group] = asked
            heapq.heappush(self._waiting, asked)
            self._changed.notify()
        if self._thread is None and not self._ended:
            self._thread = threading.Thread(target=self._answer, name="reading", daemon=True)
            self._thread.start()

    def let_go(self) -> None:
        """Have the store closed; the next question opens it as it is then."""
        with self._changed:
            self._let_go = True
            self._changed.notify()

    def end(self) -> None:
        """Close the store, once the question under way is answered."""
        with self._changed:
            self._ended = True
            self._waiting.clear()
            self._newest.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_ENDED_WITHIN_S)

    def _answer(self) -> None:
        try:
            while not self._ended:
                question = self._next()
                if question is not None and self._is_wanted(question):
                    self._put(question)
        finally:
            self._kept.close()

    def _next(self) -> _Question | None:
        """The next question; None where there is something else to see to first."""
        with self._changed:
            while not (self._waiting or self._let_go or self._ended):
                self._changed.wait()
            let_go, self._let_go = self._let_go, False
            question = heapq.heappop(self._waiting) if self._waiting else None
        if let_go:
            self._kept.close()
        return question

    def _is_wanted(self, question: _Question) -> bool:
        return not question.group or self._newest.get(question.group) is question

    def _put(self, question: _Question) -> None:
        answer = attempt(lambda: question.put(self._kept.get()))
        if isinstance(answer, Failed) and not isinstance(answer.error, _KEEPS_STORE):
            self._kept.close()

        def arrive() -> None:
            if self._ended or not self._is_wanted(question):
                return
            self._newest.pop(question.group, None)
            if isinstance(answer, Done):
                question.then(answer.value)
            else:
                question.failed(answer.error)

        self._post(arrive)
