"""A service with OpenAI's `/chat/completions` on loopback, that can be told to behave badly.

It writes questions, summaries and queries for real, if simply: out of the words of the texts, in
their language. It behaves by turns as `embedding_server` does, or by what stands in the texts:

    with ChatServer() as server:
        server.behave(by_text({"granite": status(500)}))   # for texts that name it; others well
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.system.embedding_server import Behaviour, EmbeddingServer, Handler, Request, raw, status

KEYS = {"questions": "questions", "summary": "summary", "rewrite": "queries"}


class ChatServer(EmbeddingServer):
    """The service; behaves well until told otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.behave(well)


def system_of(request: Request) -> str:
    """What the model is told."""
    return message_of(request, "system")


def message_of(request: Request, role: str) -> str:
    """The one message of a role."""
    (content,) = [one["content"] for one in request.body["messages"] if one["role"] == role]
    return str(content)


def data_of(request: Request) -> dict[str, Any]:
    """What the model is to work on."""
    return dict(json.loads(message_of(request, "user")))


def answer_to(request: Request) -> dict[str, Any]:
    """What a good model writes."""
    data = data_of(request)
    form = json.loads(system_of(request).rpartition("of the form ")[2].partition("\n")[0])
    words = re.findall(r"\w+", data["texts"][0])[:12] or ["nothing"]
    lines = [f"{' '.join(words)} {place}?" for place in range(data["count"])]
    answer: dict[str, Any] = {}
    if "summary" in form:
        answer = {"title": " ".join(words[:4]), "summary": "\n".join(data["texts"])[:2_000]}
    for key in ("questions", "queries"):
        if key in form:
            answer[key] = lines
    return answer


def completion(content: Any, *, reason: str = "stop", **message: Any) -> dict[str, Any]:
    """A completion in the form of OpenAI."""
    return {
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": reason,
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20},
    }


def well(handler: Handler, request: Request) -> None:
    """As it should."""
    handler.reply_json(completion(json.dumps(answer_to(request), ensure_ascii=False)))


def writes(content: Any, *, reason: str = "stop", **message: Any) -> Behaviour:
    """A whole completion with this content, whatever was asked."""
    return lambda handler, _: handler.reply_json(completion(content, reason=reason, **message))


def written(change: Callable[[str], str]) -> Behaviour:
    """What a good model writes, changed."""
    return lambda handler, request: handler.reply_json(
        completion(change(json.dumps(answer_to(request))))
    )


def by_text(behaviours: Mapping[str, Behaviour], default: Behaviour = well) -> Behaviour:
    """Another behaviour for texts with a word."""

    def behave(handler: Handler, request: Request) -> None:
        texts = "\n".join(data_of(request)["texts"])
        named = [behaviour for word, behaviour in behaviours.items() if word in texts]
        (named[0] if named else default)(handler, request)

    return behave


def once(behaviour: Behaviour) -> Behaviour:
    """Badly the first time, then well for ever."""
    waiting = [behaviour]
    return lambda handler, request: (waiting.pop() if waiting else well)(handler, request)


def slow(handler: Handler, request: Request) -> None:
    """Well, once another request has come."""
    server = handler.server.owner
    while server.requests[-1] is request and not server.closing.wait(0.01):
        pass
    well(handler, request)


def refuses(parameter: str, message: str, code: int = 400, kind: str = "") -> Behaviour:
    """Well without a parameter, or with another kind of it; else an error that says so."""

    def behave(handler: Handler, request: Request) -> None:
        sent = request.body.get(parameter)
        if sent is None or (kind and sent["type"] != kind):
            well(handler, request)
        else:
            status(code, {"error": {"message": message}})(handler, request)

    return behave


def cut_json(handler: Handler, request: Request) -> None:
    """Half an answer that claims to be whole."""
    raw(json.dumps(completion("{}")).encode()[:60])(handler, request)
