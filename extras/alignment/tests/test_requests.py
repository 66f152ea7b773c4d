"""Requests for which it matters which words belong together: alignments, and kept parts at their places."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem import Translator
from tests.service.aligning import AligningGraphs
from tests.service.support import Served, assert_error
from tests.service.translation.test_imported import CODES, imported, read_by, serving
from tests.service.translation.test_pivot import TEXT, Chain, Wording, chain, said
from tests.shipped import SHIPPED

__all__ = ["chain"]
pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("terms", [{}, {"alt": "OLD"}])
async def test_attention_says_where_what_was_lost_belongs(tmp_path: Path, terms: dict[str, str]) -> None:
    bundle = imported(tmp_path, CODES)
    vocabulary = bundle.source_vocabularies[0]
    words = {vocabulary.encode("X1")[-1]: vocabulary.encode("X3")[-1]}
    graphs = Wording(bundle.target_vocabulary.size, words=words)
    async with serving((bundle, graphs)) as service:
        reply = await service.translate("das {name} haus ist alt", glossary=terms)
        assert reply.json()["translatedText"] == f"das {{name}} haus ist {terms.get('alt', 'alt')}"
        assert read_by(bundle, graphs) == ["das X1 haus ist alt"]  # once


async def test_each_model_of_two_hides_what_it_cannot_read_itself(tmp_path: Path) -> None:
    """The first reads "müde" and writes " g"; where it writes "müde", the second, which lacks "ü", keeps that."""
    first = imported(tmp_path, (*CODES, "müde"), name="de-fr", target_language="fr")
    second = imported(tmp_path, CODES, name="fr-en", source_languages=("fr",))
    read, written = map(first.source_vocabularies[0].id_of, ("▁müde", "▁g"))
    graphs = (
        Wording(first.target_vocabulary.size, words={read: written}),
        AligningGraphs(second.target_vocabulary.size),
    )
    async with serving((first, graphs[0]), (second, graphs[1])) as service:
        for text, between in [
            ("das haus ist müde", "das haus ist g"),
            ("das {name} haus ist müde", "das X1 haus ist g"),
        ]:
            reply = await service.translate(text, source="de", target="en")
            assert reply.json()["translatedText"] == text.replace("müde", "g")
            assert read_by(second, graphs[1])[-1] == between
        graphs[0].words = {}
        reply = await service.translate("das müde haus ist {name} alt", source="de", target="en")
        assert reply.json()["translatedText"] == "das müde haus ist {name} alt"


async def test_alignments_are_those_of_the_text(chain: Chain) -> None:
    body = (await chain.translate(TEXT, alignments=True)).json()
    for sentence in body["details"][0]["sentences"]:
        pairs = sentence["alignment"]["words"]
        read, written = ([one[side] for one in pairs] for side in ("source", "target"))
        assert len(read) > 1
        assert [said(f" {TEXT[slice(*one.values())]}").strip() for one in read] == [
            body["translatedText"][slice(*one.values())] for one in written
        ]


async def test_alignments_are_refused_where_no_extra_finds_them(
    service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.service.bundles.catalog.word_aligner", lambda: None)
    body = assert_error(await service.translate("das haus", alignments=True), 422, "invalid_field")
    assert body["detail"][0]["field"] == "alignments"


def test_programs_get_alignments() -> None:
    with Translator(SHIPPED) as translator:
        (aligned,) = translator.translate("Guten Morgen!", source="de", target="en", alignments=True).sentences
    assert aligned.alignment is not None and aligned.alignment.words
