"""Lines to lines: layout, order, what is bad, what fails, and that it is what the service answers."""

from __future__ import annotations

import pickle
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from tandem.extras.bulk.lines import LineFinding, LineResult
from tandem.extras.bulk.run import Stopped
from tandem.extras.bulk.tests.support import copier
from tandem.extras.bulk.translator import BulkTranslator
from tandem.extras.shared.runtime import check_shortlist
from tandem.models.bundle import Bundle, Limits, Vocabularies, VocabularyFile
from tandem.models.errors import ConfigError
from tandem.models.search import Array, Batch, Failed, Graphs, OfflineDecoder, SearchingGraphs, SearchOptions
from tests.command import fails
from tests.service.support import CopyGraphs, copying, served, tiny_bundle

WORDS = ("wo", "ist", "der", "bahnhof", "heute", "guten", "morgen", "das", "haus", "one", "two")
TEXTS = (
    "wo ist der bahnhof?",
    "  - guten morgen.  das haus ist alt!  ",
    "1. one two. \u2603 three",
    "12:30",
    "\U0001f600",
    "",
    "   ",
    "guten morgen. " * 30,
    "haus " * 90,
    "das haus\u00a0ist alt\tund gross",
)


def data(records: Sequence[LineResult]) -> list[bytes]:
    return [record.data for record in records]


@pytest.mark.anyio
async def test_a_line_is_what_the_service_answers(bundle: Path) -> None:
    records = copier(bundle).translate_block(TEXTS)
    async with served({"de-en": Bundle.load(bundle)}) as service:
        answers = (await service.translate(list(TEXTS))).json()["translatedText"]
    assert [record.text for record in records] == answers
    assert not any(record.findings for record in records)


def test_a_line_does_not_depend_on_its_block(bundle: Path) -> None:
    chance = np.random.default_rng(3)
    lines = [" ".join(chance.choice(WORDS, chance.integers(0, 30))) + "." for _ in range(40)]
    translator = copier(bundle)
    together = translator.translate_block(lines)
    assert together == [translator.translate_block([line])[0] for line in lines]
    assert [one.text for one in together] == [line if len(line) > 1 else "." for line in lines]


def test_a_translator_travels(bundle: Path) -> None:
    translator = copier(bundle, beam_size=2)
    translator.open()
    other: BulkTranslator = pickle.loads(pickle.dumps(translator))
    assert other.options == translator.options
    assert data(other.translate_block(["das haus"])) == [b"das haus"]
    translator.close()
    assert data(translator.translate_block(["das haus"])) == [b"das haus"]


def test_threads_end_with_who_forgets_to_close(bundle: Path) -> None:
    before = set(threading.enumerate())
    assert data(copier(bundle).translate_block(["das haus"])) == [b"das haus"]
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(("bad", "kept"), [("keep", True), ("empty", False)])
def test_what_is_no_text_is_told_and_stays(bundle: Path, bad: str, kept: bool) -> None:
    lines = [b"das haus", b"das \xff haus\r", b"d\0a\0s\0", b"guten morgen"]
    records = copier(bundle, bad=bad).translate_block(lines)
    assert data(records) == [b"das haus", *(lines[1:3] if kept else [b"", b""]), b"guten morgen"]
    assert [record.bad for record in records] == [False, True, True, False]
    assert records[1].findings == (LineFinding("invalid_utf8", "not UTF-8: invalid start byte (0xff, byte 5)"),)
    assert records[2].findings[0].reason == "nul"
    assert records[1].text == ("das \ufffd haus\r" if kept else "")


def test_no_line_becomes_two(bundle: Path) -> None:
    """A carriage return at its end comes back, one inside is a space, other line breaks are none in a file."""
    for sentences in (True, False):
        records = copier(bundle, sentences=sentences).translate_block([b"das haus\r", "das\rhaus\u2028alt".encode()])
        assert records[0].data == b"das haus\r"
        assert b"\n" not in records[1].data and b"\r" not in records[1].data
        assert b"das haus" in records[1].data


class Failing(CopyGraphs):
    """The encoder crashes on a word, and a step on another."""


def open_failing(bundle: Bundle, *_: object) -> Graphs:
    ids = bundle.source_vocabularies[0].encode("one two")
    return CopyGraphs(bundle.target_vocabulary.size, crash_encode=ids[0], crash_step=ids[-1])


def test_a_sentence_that_fails_costs_its_line_only(bundle: Path) -> None:
    lines = [f"das haus ist alt {number}" for number in range(5)]
    lines[1], lines[3] = "guten morgen. one bahnhof.", "two heute"
    records = BulkTranslator(bundle, opener=open_failing).translate_block(lines)
    assert [record.text for record in records] == lines
    assert [record.bad for record in records] == [False, True, False, True, False]
    assert records[1].findings[0].reason == "decoding_failed"
    assert "the encoder crashed" in records[1].findings[0].detail
    assert "the step crashed" in records[3].findings[0].detail


def test_a_hypothesis_or_the_reason_why_not(bundle: Path) -> None:
    loaded = Bundle.load(bundle)
    ids = loaded.source_vocabularies[0].encode("one")
    graphs = CopyGraphs(loaded.target_vocabulary.size, crash_encode=ids[0])
    decoder = OfflineDecoder(graphs, SearchOptions(beam_size=1), isolate=True)
    failed, found = decoder.decode([(np.array([*ids, 3]),), (np.array([9, 3]),)])
    assert isinstance(failed, Failed) and not isinstance(found, Failed)
    assert list(decoder.decode([])) == []


class Interrupted(CopyGraphs):
    """A signal comes while it decodes."""

    def run(self, graph: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        raise Stopped(signal.SIGTERM)


def test_a_signal_is_no_failure_of_a_sentence(bundle: Path) -> None:
    """A line that was being translated when the run was stopped is translated by the next."""
    loaded = Bundle.load(bundle)
    graphs = Interrupted(loaded.target_vocabulary.size)
    decoder = OfflineDecoder(graphs, SearchOptions(beam_size=1), isolate=True)
    with pytest.raises(Stopped, match="stopped by SIGTERM"):
        list(decoder.decode([(np.array([9, 3]),)]))


def test_segments_are_decoded_whole_and_cut_where_they_are_too_long(bundle: Path) -> None:
    long = " ".join(["haus"] * 60)
    records = copier(bundle, sentences=False).translate_block(["guten morgen. das haus.", "  ", "12", long])
    assert data(records)[:3] == [b"guten morgen. das haus.", b"", b"12"]
    assert long.startswith(records[3].text) and len(records[3].text) < len(long)
    assert [one.reason for one in records[3].findings] == ["cut"] and records[3].bad
    assert "of which the model reads the first 40" in records[3].findings[0].detail


def test_a_summary_reads_the_beginning_and_only_mentions_it(tmp_path: Path) -> None:
    folder = tiny_bundle(tmp_path, "sum", task="summarize", source_languages=("en",)).path
    (record,) = copier(folder).translate_block([" ".join(["one"] * 80)])
    assert [one.reason for one in record.findings] == ["cut"] and not record.bad
    with pytest.raises(ConfigError, match="--sentences is for bundles that translate one text; sum has the task"):
        copier(folder, sentences=True).open()


def test_several_sources_go_together(tmp_path: Path) -> None:
    """What copies the second source shows that both arrive; a bad field costs the line, and the first stays."""
    file = VocabularyFile("source.model")
    folder = tiny_bundle(
        tmp_path, "two", source_languages=("de", "fr"), vocabularies=Vocabularies((file, file), file)
    ).path
    rows: list[tuple[str | bytes, str | bytes]] = [
        ("das haus", "guten morgen"),
        (b"das haus", b"\xff"),
        ("", ""),
        ("das", ""),
    ]
    records = copier(folder).translate_block(rows)
    assert data(records) == [b"guten morgen", b"das haus", b"", b""]
    assert [record.bad for record in records] == [False, True, False, False]


def test_a_search_that_uses_no_shortlist_is_not_said_to_use_one(tmp_path: Path) -> None:
    listed = cast("Bundle", SimpleNamespace(path="de-en", shortlist=object()))

    general = copying(tiny_bundle(tmp_path))
    general.specs = {**general.specs, "step_shortlist": general.specs["step"]}

    class Searching(SearchingGraphs):
        slots = 8
        specs = general.specs
        run = general.run

        def start_batch(self, beam_size: int, **_: object) -> Batch:
            raise NotImplementedError

    assert check_shortlist(listed, general) is listed.shortlist
    with pytest.raises(ConfigError, match="torch uses no shortlist"):
        check_shortlist(listed, Searching())


def test_options_that_do_not_fit_the_bundle_are_refused(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--language must be one of de, which de-en reads, not 'fr'"):
        copier(bundle, language="fr").open()
    with pytest.raises(ConfigError, match="build one with `tandem shortlist`"):
        copier(bundle, shortlist=True).open()
    small = tiny_bundle(tmp_path, limits=Limits(max_source_tokens=4, max_target_tokens=4)).path
    settled = copier(small).settled
    assert (settled.sentences, settled.language, settled.beam_size) == (True, "de", 4)
    assert copying(Bundle.load(small)).sources == 1


def test_a_folder_that_is_no_bundle_is_refused(tmp_path: Path) -> None:
    assert "manifest.json" in fails("translate", tmp_path, status=1)
