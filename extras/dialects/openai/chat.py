"""A chat's last message as a request to the text service, and the result as OpenAI's replies."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from fastapi.sse import format_sse_event
from pydantic import BaseModel

from tandem.extras.dialects.openai.schemas import (
    ChatAnswer,
    ChatCompletion,
    ChatCompletionChunk,
    ChatRequest,
    Choice,
    ChunkChoice,
    ChunkDelta,
    TokenUsage,
)
from tandem.service.bundles.catalog import Catalog
from tandem.service.errors import ModelNotFound
from tandem.service.http.error_replies import InvalidFields, not_offered
from tandem.service.translation.progress import Event
from tandem.service.translation.requests import AUTO, SummarizeTask, TranslateTask
from tandem.service.translation.results import DecodeResult, FinishedSentence

Task: TypeAlias = TranslateTask | SummarizeTask


@dataclass(frozen=True, slots=True)
class Errand:
    """What a model's name says is to be done: a translation, or without a source a summary."""

    source: str | None
    target: str

    def task(self, text: str) -> Task:
        """The request for it; tokens are counted with the details."""
        if self.source is None:
            return SummarizeTask(q=text, language=self.target, details=True)
        return TranslateTask(q=text, source=self.source, target=self.target, details=True)


def errands(catalog: Catalog) -> dict[str, Errand]:
    """What is served now, by the name that a request has for it."""
    found = {}
    for language in catalog.languages():
        for target in language.targets:
            found[f"translate-{language.code}-{target}"] = Errand(language.code, target)
            found[f"translate-{AUTO}-{target}"] = Errand(AUTO, target)
    return dict(sorted(found.items())) | {
        f"summarize-{language}": Errand(None, language) for language in catalog.summarized_languages()
    }


def errand_of(catalog: Catalog, model: str) -> tuple[str, Errand]:
    """A model's name as it is listed, and what it says. Raises ModelNotFound, which lists all."""
    served = errands(catalog)
    for name, errand in served.items():
        if name.lower() == model.lower():
            return name, errand
    raise ModelNotFound(f"there is no model {model!r} here; there are {', '.join(served) or 'none'}")


def text_of(fields: ChatRequest) -> str:
    """The text of the last message.

    Raises:
        HttpError: the request asks for what no model here does.
        InvalidFields: the last message holds no text of the user.
    """
    wanted = {
        "n": (fields.n or 1) > 1,
        "logprobs": bool(fields.logprobs),
        "tools": bool(fields.tools),
        "response_format": (fields.response_format or {}).get("type", "text") != "text",
    }
    if any(wanted.values()):
        raise not_offered(f"not offered by this server: {', '.join(name for name, is_so in wanted.items() if is_so)}")
    place, last = f"messages.{len(fields.messages) - 1}", fields.messages[-1]
    if last.role != "user":
        raise InvalidFields.of(f"{place}.role", "must be 'user' in the last message, which is what is read", last.role)
    parts = last.content if isinstance(last.content, list) else []
    if other := [part.type for part in parts if part.type != "text"]:
        raise InvalidFields.of(f"{place}.content", "must hold text only", other[0])
    text = "\n".join(part.text for part in parts) if parts else last.content
    if not isinstance(text, str):
        raise InvalidFields.of(f"{place}.content", "must hold a text", text)
    return text


class ChatReplies:
    """Makes the replies of one request: a whole one, or a stream's chunks.

    Sentences are finished in any order and streamed in the text's, each with what stands in front of it.
    """

    def __init__(self, model: str, tag: str, *, include_usage: bool) -> None:
        """For a request that names a model, and that logs call ``tag``."""
        self._fixed = {"id": f"chatcmpl-{tag}", "created": int(time.time()), "model": model}
        self._include_usage = include_usage
        self._sent, self._next = "", 0
        self._waiting: dict[int, str] = {}

    def whole(self, result: DecodeResult) -> ChatCompletion:
        """The reply."""
        choice = Choice(message=ChatAnswer(content=result.texts[0].text))
        return ChatCompletion(**self._head(result.model), choices=[choice], usage=_usage(result))

    def event(self, event: Event) -> bytes:
        """What can be sent now that a sentence is finished; a summary comes at the end, as it is written then."""
        if not isinstance(event, FinishedSentence):
            return b""
        self._waiting[event.sentence] = event.before + event.translation
        text = ""
        while self._next in self._waiting:
            text += self._waiting.pop(self._next)
            self._next += 1
        return self._text(text) if text else b""

    def done(self, reply: BaseModel) -> bytes:
        """What is left of a text, its end, and the usage where it was asked for."""
        assert isinstance(reply, ChatCompletion)
        return b"".join(self._last(reply))

    def error(self, body: str) -> bytes:
        """Instead of an end."""
        return format_sse_event(data_str=body)

    def _last(self, reply: ChatCompletion) -> Iterator[bytes]:
        if rest := reply.choices[0].message.content.removeprefix(self._sent):
            yield self._text(rest)
        yield self._chunk([ChunkChoice(delta=ChunkDelta(), finish_reason="stop")], reply.system_fingerprint)
        if self._include_usage:
            yield self._chunk([], reply.system_fingerprint, reply.usage)
        yield format_sse_event(data_str="[DONE]")

    def _text(self, text: str) -> bytes:
        role: ChunkDelta = ChunkDelta(content=text) if self._sent else ChunkDelta(role="assistant", content=text)
        self._sent += text
        return self._chunk([ChunkChoice(delta=role)])

    def _chunk(self, choices: list[ChunkChoice], answered: str | None = None, usage: TokenUsage | None = None) -> bytes:
        chunk = ChatCompletionChunk(**self._head(answered), choices=choices, usage=usage)
        exclude = None if self._include_usage else {"usage"}
        return format_sse_event(data_str=chunk.model_dump_json(exclude=exclude))

    def _head(self, answered: str | None) -> dict[str, Any]:
        return {**self._fixed, "system_fingerprint": answered}


def _usage(result: DecodeResult) -> TokenUsage:
    read, written = (result.usage.source_tokens, result.usage.target_tokens) if result.usage else (0, 0)
    return TokenUsage(prompt_tokens=read, completion_tokens=written, total_tokens=read + written)
