"""OpenAI's own Python client, unchanged, against a server that listens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import openai
import pytest

from tandem.extras.accounts.tests.keyed import Keyed
from tandem.models.bundle import Bundle, Limits
from tandem.models.search import SearchOptions
from tandem.service.settings import Settings
from tests.service.http.live import Live, live
from tests.service.support import PATIENCE, copying, make_engine, tiny_bundle

TEXT = " - Wo ist der Bahnhof heute? Guten Morgen.\n\nDas Haus ist gross. Guten Morgen.\n "
NAMES = ["translate-auto-de", "translate-auto-en", "translate-de-en", "translate-en-de", "summarize-en"]


@pytest.fixture(scope="module")
def server(both_ways: dict[str, Bundle], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    limits = Limits(max_source_tokens=60, max_target_tokens=60)
    options = SearchOptions(beam_size=2, max_length=60)
    folder = tmp_path_factory.mktemp("titles")
    titles = tiny_bundle(folder, "titles", task="summarize", source_languages=("en",), decoding=options, limits=limits)
    engine = make_engine(*((bundle, copying(bundle)) for bundle in (*both_ways.values(), titles)))
    with live(Settings(shutdown_timeout=5), engine) as running:
        yield running


def connect(url: str, key: str = "any", retries: int = 0) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=retries, timeout=PATIENCE)


@pytest.fixture
def client(server: Live) -> Iterator[openai.OpenAI]:
    with closing(connect(server.url)) as found:
        yield found


def ask(client: openai.OpenAI, model: str = "translate-de-en", content: Any = TEXT, **options: Any) -> Any:
    messages = [{"role": "system", "content": "You translate."}, {"role": "user", "content": content}]
    return client.chat.completions.create(**{"model": model, "messages": messages, **options})


def test_models_are_listed_by_what_they_do(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == NAMES
    assert client.models.retrieve("summarize-en").owned_by == "tandem"


@pytest.mark.parametrize("model", ["translate-de-en", "Translate-DE-en", "translate-auto-en"])
def test_the_last_message_is_translated(client: openai.OpenAI, model: str) -> None:
    found = ask(client, model, temperature=0.7, max_tokens=5, seed=1, user="somebody")
    (choice,) = found.choices
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", TEXT, "stop")
    assert (found.object, found.system_fingerprint) == ("chat.completion", "de-en")
    assert found.model == model.lower()
    usage = found.usage
    assert usage.prompt_tokens > 0 and usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_a_summary_of_text_in_parts(client: openai.OpenAI) -> None:
    parts = [{"type": "text", "text": "das haus"}, {"type": "text", "text": "ist alt"}]
    assert ask(client, "summarize-en", parts).choices[0].message.content == "das haus ist alt"


@pytest.mark.parametrize(("model", "text"), [("translate-de-en", TEXT), ("summarize-en", "das haus"), (NAMES[1], "!")])
@pytest.mark.parametrize("usage", [False, True])
def test_a_stream_says_the_same_in_order(client: openai.OpenAI, model: str, text: str, usage: bool) -> None:
    options: dict[str, Any] = {"stream_options": {"include_usage": True}} if usage else {}
    chunks = list(ask(client, model, text, stream=True, **options))
    whole = ask(client, model, text)
    spoken = [chunk for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert "".join(chunk.choices[0].delta.content for chunk in spoken) == whole.choices[0].message.content
    assert [chunk.choices[0].delta.role for chunk in spoken] == ["assistant", *[None] * (len(spoken) - 1)]
    assert len({chunk.id for chunk in chunks}) == 1
    ends = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert ends == [*[None] * len(spoken), "stop"]
    assert [chunk.usage for chunk in chunks if chunk.usage] == ([whole.usage] if usage else [])
    if model == "translate-de-en":
        assert len(spoken) > 1


@pytest.mark.parametrize(
    ("changes", "status", "code", "param", "words"),
    [
        ({"model": "gpt-4"}, 404, "model_not_found", None, ", ".join(NAMES)),
        ({"messages": []}, 400, "invalid_field", "messages", "at least 1"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, 400, "invalid_field", "messages.0.role", "'user'"),
        ({"messages": [{"role": "user"}]}, 400, "invalid_field", "messages.0.content", "a text"),
        ({"content": [{"type": "image_url"}]}, 400, "invalid_field", "messages.1.content", "image_url"),
        ({"n": 2, "tools": [{"type": "function"}]}, 400, "not_offered", None, "n, tools"),
        ({"content": "x" * 30_000}, 400, "context_length_exceeded", None, "20000 characters"),
        ({"model": "translate-auto-en", "content": "Где находится вокзал?"}, 400, "language_not_served", None, "'ru'"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_cannot_be_done(
    client: openai.OpenAI,
    changes: dict[str, Any],
    status: int,
    code: str,
    param: str | None,
    words: str,
    stream: bool,
) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        ask(client, **changes, stream=stream)
    assert (refused.value.status_code, refused.value.code, refused.value.param) == (status, code, param)
    assert refused.value.type == "invalid_request_error"
    assert words in refused.value.message


def test_keys_rates_and_quotas(keyed: Keyed) -> None:
    with closing(connect(keyed.live.url, keyed.good)) as good:
        assert ask(good).choices[0].message.content == TEXT
        assert len(list(good.models.list())) == 2
    with closing(connect(keyed.live.url, "wrong")) as wrong:
        for request in (wrong.models.list, lambda: ask(wrong)):
            with pytest.raises(openai.AuthenticationError) as refused:
                request()
            assert refused.value.code == "invalid_api_key"
    with closing(connect(keyed.live.url, keyed.slow)) as slow:
        ask(slow)
        with pytest.raises(openai.RateLimitError) as too_many:
            ask(slow)
        assert (too_many.value.code, too_many.value.type) == ("rate_limit_exceeded", "rate_limit_error")
        assert int(too_many.value.response.headers["retry-after"]) > 0
    with closing(connect(keyed.live.url, keyed.poor)) as poor:
        for stream in (False, True):
            with pytest.raises(openai.RateLimitError) as used_up:
                ask(poor, stream=stream)
            assert used_up.value.code == "insufficient_quota"
