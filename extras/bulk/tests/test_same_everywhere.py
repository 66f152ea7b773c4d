"""A text becomes the same wherever it is translated: over HTTP, in a file, by `tandem translate` and `tandem evaluate`,
and by a program that imports Tandem.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tandem import Translator
from tandem.extras.bulk.options import BulkOptions
from tandem.extras.bulk.translator import BulkTranslator
from tandem.extras.evaluation.decoding import Decoding, translate_texts
from tandem.extras.evaluation.systems import load_systems
from tandem.service.app import create_app
from tandem.service.bundles.loading import build_engine
from tandem.service.settings import Settings
from tests.service.support import running
from tests.shipped import SHIPPED

SENTENCES = (
    "Wo ist der Bahnhof?",
    "Öffnen Sie die Datei config.yaml und setzen Sie max_size auf 1024.",
    "Der Preis beträgt 1.299,00 € inkl. MwSt.",
    "Das Treffen ist am 3. Mai 2024 um 14:30 Uhr.",
    "Er sagte: „Ich komme morgen.“",
    "Hallo {name}, Sie haben %d neue Nachrichten.",
)
WORDS = ("Haus", "Abbrechen", "WICHTIG", "Bücher", "Ende der Datei", "Fahrkartenautomat")
KEPT = ("😀", "→", "§ 5", "#4711", "@anna_b", "https://example.org/a?b=c", "C++", "北京", "⟨ph0⟩", "a\u00adb", "&amp;")
FORMS = (
    *("{}", "- {}", "1.2 {}", "  {}  ", "({})", "„{}“", "{} | {}"),
    *("{}\t{}", "{} {}", "*{}*", "[4] {}", "{}: {}", "{} » {}"),
)
ODD = ("", "   ", "12:30", "...", "haus " * 90, "DIE NATO UND DIE EU", "\u200bHaus", "<b>Haus</b> und Hof", "x" * 300)


def odd_lines(count: int) -> Iterator[str]:
    """Sentences and words in forms that rules, layouts and vocabularies know, and things that are to be kept."""
    random = Random(7)
    yield from (
        "",
        "   ",
        "12:30",
        "...",
        "haus " * 90,
        "DIE NATO UND DIE EU",
        "\u200bHaus",
        "Haus\u2028Hof",
        "x" * 300,
    )
    for form in itertools.islice(itertools.cycle(FORMS), count - 9):
        parts = [random.choice(random.choice((SENTENCES, SENTENCES, WORDS, KEPT))) for _ in range(form.count("{}"))]
        yield form.format(*parts)


@pytest.mark.anyio
async def test_a_text_becomes_the_same_everywhere(tmp_path: Path) -> None:
    lines = list(odd_lines(300))
    assert len(lines) == 300
    translated = BulkTranslator(SHIPPED, BulkOptions(language="de", target="en")).translate_block(lines)
    written = [one.text for one in translated]
    assert sum(one != line for one, line in zip(written, lines, strict=True)) > 200
    (bundle,) = load_systems([SHIPPED], "en", ("de",)).values()
    assert translate_texts(bundle, Decoding().open_graphs(bundle), Decoding(), lines, "de")[0] == written
    with Translator(SHIPPED) as translator:
        assert [one.text for one in translator.translate(lines, source="de", target="en")] == written
    settings = Settings(bundles=(SHIPPED,), shutdown_timeout=5, data=tmp_path)
    async with running(create_app(settings, build_engine(settings))) as client:
        fields = {"source": "de", "target": "en"}
        replies = [await client.post("/translate", json={"q": lines[at : at + 100], **fields}) for at in (0, 100, 200)]
        assert [one for reply in replies for one in reply.json()["translatedText"]] == written
        upload = {"file": ("lines.txt", "\n".join(lines).encode())}
        reply = await client.post("/translate_file", data=fields, files=upload)
        if reply.status_code != 404:  # files are an extra, too
            file = await client.get(reply.json()["translatedFileUrl"])
            assert file.text.split("\n") == written
