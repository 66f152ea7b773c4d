"""Requests and replies of OpenAI's API, as pydantic models. Unknown fields are ignored: clients send many."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_MAX_MESSAGES = 1_000


class ContentPart(BaseModel):
    """Part of a message."""

    type: str = Field(examples=["text"], description="`text`; pictures, sound and files are refused.")
    text: str = Field(default="", examples=["Wo ist der Bahnhof?"])


class ChatMessage(BaseModel):
    """What was said; only the last one is read."""

    role: str = Field(examples=["user"])
    content: str | Annotated[list[ContentPart], Field(fail_fast=True)] | None = Field(
        default=None, examples=["Wo ist der Bahnhof?"]
    )


class StreamOptions(BaseModel):
    """What a stream holds besides text."""

    include_usage: bool = Field(default=False, description="Ends with a chunk that has the usage, and no text.")


class ChatRequest(BaseModel):
    """A text to translate or summarize: the last message. What steers a language model is taken, and means nothing."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    model: str = Field(max_length=200, examples=["translate-de-en"], description="Says what to do; see GET /v1/models.")
    messages: Annotated[list[ChatMessage], Field(fail_fast=True)] = Field(min_length=1, max_length=_MAX_MESSAGES)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = Field(default=None, description="Refused beyond 1.")
    logprobs: bool | None = Field(default=None, description="Refused; POST /translate has `scores`.")
    tools: list[Any] | None = Field(default=None, description="Refused.")
    response_format: dict[str, Any] | None = Field(default=None, description="Refused but for the type `text`.")


class ChatAnswer(BaseModel):
    """The translation or summary."""

    role: Literal["assistant"] = "assistant"
    content: str = Field(examples=["Where is the train station?"])
    refusal: None = None


class Choice(BaseModel):
    """The only one."""

    index: int = 0
    message: ChatAnswer
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class TokenUsage(BaseModel):
    """Tokens that the model read and wrote."""

    prompt_tokens: int = Field(examples=[6])
    completion_tokens: int = Field(examples=[6])
    total_tokens: int = Field(examples=[12])


class _Completion(BaseModel):
    id: str = Field(examples=["chatcmpl-5f0c7e"])
    created: int = Field(examples=[1_924_939_800], description="Seconds since 1970.")
    model: str = Field(examples=["translate-de-en"])
    system_fingerprint: str | None = Field(
        default=None, examples=["de-en@2"], description="The bundle that answered, with its version where it has one."
    )


class ChatCompletion(_Completion):
    """The answer to a chat."""

    object: Literal["chat.completion"] = "chat.completion"
    choices: list[Choice]
    usage: TokenUsage


class ChunkDelta(BaseModel):
    """Further text; the first one says who speaks."""

    role: Literal["assistant"] | None = None
    content: str | None = None


class ChunkChoice(BaseModel):
    """Further text of the only choice."""

    index: int = 0
    delta: ChunkDelta
    finish_reason: Literal["stop"] | None = None


class ChatCompletionChunk(_Completion):
    """Part of a streamed answer."""

    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    choices: list[ChunkChoice]
    usage: TokenUsage | None = None


class OpenAiModel(BaseModel):
    """A name that requests take as their model: what is done, and the languages."""

    id: str = Field(examples=["translate-de-en"])
    object: Literal["model"] = "model"
    created: int = Field(examples=[0], description="Always 0: the same name may stand for another bundle tomorrow.")
    owned_by: str = Field(default="tandem", examples=["tandem"])


class OpenAiModels(BaseModel):
    """What is served."""

    object: Literal["list"] = "list"
    data: list[OpenAiModel]


class OpenAiFault(BaseModel):
    """What was wrong."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class OpenAiError(BaseModel):
    """Every error under `/v1/`."""

    error: OpenAiFault
