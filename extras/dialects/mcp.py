"""``/mcp``: translate, summarize and detect as tools for language models (Model Context Protocol).

The protocol is the official SDK's, without sessions and with plain JSON replies: each request stands for itself, so
any replica can answer it. The SDK takes a second to load and is loaded with the first request; without it there is no
such route (extra ``mcp``).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tandem.models.command import installed_version
from tandem.service.callers import Caller
from tandem.service.http.dependencies import Parts, caller_of, context_of, counted_caller, memory_of, sender_of
from tandem.service.http.error_replies import HttpError, invalid_fields, reply_for
from tandem.service.http.parts import HttpPart
from tandem.service.translation.requests import AUTO, SummarizeTask, TranslateTask

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

PATH = "/mcp"
INSTALLED = find_spec("mcp") is not None

_log = structlog.get_logger("tandem.mcp")
_INSTRUCTIONS = "Translation and summarization by models that run on this server: texts go nowhere else."


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(description="The text, of any length that the server takes.")


class TranslateArguments(_Arguments):
    """Translate a text. Its paragraphs, lists and line breaks stay."""

    target: str = Field(max_length=35, description="Language code to translate into, such as en.")
    source: str = Field(default=AUTO, max_length=35, description="Language code of the text; auto = detected.")


class SummarizeArguments(_Arguments):
    """Summarize a text in a sentence or a title, as the model on this server learnt it."""

    language: str | None = Field(default=None, max_length=35, description="Language code of the text.")


class DetectArguments(_Arguments):
    """Name the language of a text: the most probable codes, with a confidence in per cent."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A tool's call, and who makes it."""

    parts: Parts
    request: Request
    caller: Caller

    async def translate(self, given: TranslateArguments) -> dict[str, Any]:
        task = TranslateTask(q=given.text, source=given.source, target=given.target)
        context = context_of(sender_of(self.request), recall=memory_of(self.parts, self.caller.name))
        async with self.parts.access.charged(self.caller, len(given.text), request=False):
            result = await self.parts.texts.translate(task, context)
        found = {"detectedLanguage": result.guesses[0].language} if result.guesses else {}
        return {"translation": result.texts[0].text, **found}

    async def summarize(self, given: SummarizeArguments) -> dict[str, Any]:
        task = SummarizeTask(q=given.text, language=given.language)
        async with self.parts.access.charged(self.caller, len(given.text), request=False):
            result = await self.parts.texts.summarize(task, context_of(sender_of(self.request)))
        return {"summary": result.texts[0].text, "truncated": result.texts[0].truncated}

    async def detect(self, given: DetectArguments) -> dict[str, Any]:
        self.parts.texts.detector.check(given.text)
        guesses = await self.parts.texts.detect(given.text, sender_of(self.request).caller)
        return {"languages": [{"language": guess.language, "confidence": guess.confidence} for guess in guesses]}


_TOOLS: dict[str, tuple[type[_Arguments], Callable[[_Call, Any], Awaitable[dict[str, Any]]]]] = {
    "translate": (TranslateArguments, _Call.translate),
    "summarize": (SummarizeArguments, _Call.summarize),
    "detect": (DetectArguments, _Call.detect),
}


class McpServer:
    """The SDK, which answers; loaded and started with the first request."""

    def __init__(self) -> None:
        self._handle: Callable[[Scope, Receive, Send], Awaitable[None]] | None = None
        self._starting = asyncio.Lock()
        self._ended = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """End the SDK's work where any has begun."""
        self._ended.set()
        if self._serving is not None:
            await self._serving

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        async with self._starting:
            if self._handle is None:
                await self._start()
        assert self._handle is not None
        await self._handle(scope, receive, send)

    async def _start(self) -> None:
        """Load the SDK, and start what its replies run in."""
        manager = await asyncio.to_thread(_manager)
        ready = asyncio.Event()

        async def serve() -> None:
            async with manager.run():
                ready.set()
                await self._ended.wait()

        self._serving = asyncio.create_task(serve())
        await ready.wait()
        self._handle = manager.handle_request


@asynccontextmanager
async def serving(parts: Parts) -> AsyncIterator[McpServer]:
    """The SDK as long as the service runs."""
    server = McpServer()
    try:
        yield server
    finally:
        await server.close()


class McpRoute:
    """ASGI app: checks who asks and from where, and lets the SDK answer."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises HttpError and what ``counted_caller`` raises."""
        request = Request(scope, receive)
        scope["state"]["route"] = PATH
        running: Parts = request.app.state.parts
        _check_origin(request, running.settings.cors_origins)
        await counted_caller(request, running.access)
        await running.resource(McpServer).handle(scope, receive, send)


# A GET would be a stream that nothing ever comes on, held open until the client leaves.
_ROUTE = Route(PATH, McpRoute(), methods=["POST"], include_in_schema=False)
HTTP = HttpPart(routes=[_ROUTE] if INSTALLED else [])


def _check_origin(request: Request, origins: Sequence[str]) -> None:
    """A page of an origin that is neither listed nor the server's own is refused, whatever its request looks like.

    The protocol asks for it.
    """
    origin = request.headers.get("origin")
    own = f"{request.url.scheme}://{request.headers.get('host', '')}"
    if origin is not None and origin != own and not {origin, "*"} & set(origins):
        message = "pages of that origin may not use this; list it in TANDEM_CORS_ORIGINS"
        raise HttpError(403, "origin_not_allowed", message)


def _manager() -> Any:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    return StreamableHTTPSessionManager(_server(), json_response=True, stateless=True)


def _server() -> Server[Any]:
    import mcp.types as types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

    async def list_tools(context: ServerRequestContext[Any], params: Any) -> types.ListToolsResult:
        tools = [
            types.Tool(name=name, description=arguments.__doc__, input_schema=arguments.model_json_schema())
            for name, (arguments, _) in _TOOLS.items()
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        request = context.request
        assert isinstance(request, Request)
        found, failed = await _answer(request, params.name, params.arguments or {})
        said = found["error"] if failed else next(iter(found.values()))
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        content = types.TextContent(type="text", text=text)
        return types.CallToolResult(content=[content], structured_content=found, is_error=failed)

    return Server(
        "tandem",
        version=installed_version(),
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _answer(request: Request, name: str, given: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """What a tool answers, or the error in the shape of every error of ours; and whether it is one."""
    running: Parts = request.app.state.parts
    try:
        if name not in _TOOLS:
            raise HttpError(404, "tool_not_found", f"there is no tool {name!r}; there are {', '.join(_TOOLS)}")
        arguments, work = _TOOLS[name]
        try:
            fields = arguments.model_validate(given, strict=True)
        except ValidationError as error:
            raise invalid_fields(error) from error
        call = _Call(running, request, caller_of(request, running.access))
        return await work(call, fields), False
    except Exception as error:
        reply = reply_for(error)
        if reply.status == 500:
            _log.exception("tool_failed", tool=name)
        return reply.body(request.state.request_id), True
