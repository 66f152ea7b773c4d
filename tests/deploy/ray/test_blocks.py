"""Files in blocks: cut between lines, translated in any order, put together in theirs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.bulk import BulkOptions, BulkTranslator, LineFinding, LineResult
from deploy.ray import blocks
from deploy.ray.blocks import FileTranslation, SharedFile, cut
from deploy.ray_bulk import jobs
from models.errors import ConfigError
from tests.service.support import tiny_bundle


class Shouting:
    """Stands in for a translator: capitals, and nothing for a line that says bad."""

    def translate_block(self, lines: Sequence[bytes]) -> list[LineResult]:
        return [
            LineResult(line, (LineFinding("odd", "it says so"),)) if b"bad" in line else LineResult(line.upper())
            for line in lines
        ]


SHOUTING = cast(BulkTranslator, Shouting())


def job_of(folder: Path, content: bytes) -> FileTranslation:
    (folder / "in.txt").write_bytes(content)
    bundle = folder / "bundle"
    bundle.mkdir(exist_ok=True)
    (bundle / "manifest.json").write_text("{}")
    return FileTranslation(SharedFile(str(folder / "in.txt")), SharedFile(str(folder / "new" / "out.txt")), str(bundle))


@given(
    content=st.lists(st.sampled_from([b"a", b"\n", b"bcd"])).map(b"".join),
    lines=st.integers(1, 4),
    piece=st.integers(1, 5),
)
def test_blocks_are_whole_lines_and_the_whole_file(
    content: bytes, lines: int, piece: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.txt"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "LINES", lines)
        patch.setattr(blocks, "_CHUNK", piece)
        found = list(cut(SharedFile(str(path))))
    parts = [SharedFile(str(path)).read(one.start, one.size) for one in found]
    assert b"".join(parts) == content
    assert [one.number for one in found] == list(range(len(found)))
    assert [one.line for one in found] == [1 + lines * number for number in range(len(found))]
    assert all(part.endswith(b"\n") and part.count(b"\n") == lines for part in parts[:-1])


def test_a_block_ends_with_the_line_that_fills_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BYTES", 4)
    (tmp_path / "long.txt").write_bytes(b"a\n" + b"b" * 100 + b"\nc\n")
    assert [one.size for one in cut(SharedFile(str(tmp_path / "long.txt")))] == [103, 2]


def test_parts_made_in_any_order_make_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "LINES", 2)
    job = job_of(tmp_path, b"one\nbad one\n\nthree\nbad three")
    job.begin()
    assert [job.translate(block, SHOUTING) for block in reversed(job.pending())] == [1, 0, 1]
    assert job.pending() == []
    job.join()
    assert (tmp_path / "new" / "out.txt").read_bytes() == b"ONE\nbad one\n\nTHREE\nbad three\n"
    report = [json.loads(line) for line in (tmp_path / "new" / "out.txt.report.jsonl").read_text().splitlines()]
    assert [(one["line"], one["reason"], one["bad"]) for one in report] == [(2, "odd", True), (5, "odd", True)]
    assert sorted(os.listdir(tmp_path / "new")) == ["out.txt", "out.txt.report.jsonl"]


def test_an_empty_file_stays_empty(tmp_path: Path) -> None:
    job = job_of(tmp_path, b"")
    job.begin()
    assert job.pending() == []
    job.join()
    assert (tmp_path / "new" / "out.txt").read_bytes() == b""


def test_what_was_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "LINES", 1)
    job = job_of(tmp_path, b"one\ntwo\nthree\n")
    job.begin()
    job.translate(job.pending()[1], SHOUTING)
    again = replace(job)
    again.begin()
    assert [block.number for block in again.pending()] == [0, 2]


def test_another_translation_does_not_go_on_with_these_parts(tmp_path: Path) -> None:
    job = job_of(tmp_path, b"one\n")
    job.begin()
    with pytest.raises(ConfigError, match=r"out\.txt\.parts was begun with another options; remove it to begin anew"):
        replace(job, options=BulkOptions(beam_size=2)).begin()
    job_of(tmp_path, b"one\ntwo\n")
    with pytest.raises(ConfigError, match="was begun with another size"):
        job.begin()


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    job = job_of(tmp_path, b"")
    with pytest.raises(ConfigError, match="there is no such file"):
        replace(job, source=SharedFile(str(tmp_path / "else.txt"))).begin()
    with pytest.raises(ConfigError, match="nowhere://else: "):
        replace(job, source=SharedFile("nowhere://else")).begin()


@pytest.mark.parametrize(
    ("sources", "message"),
    [(["a/x.txt", "b/x.txt"], "x.txt: two files have this name"), (["x.gz"], "x.gz: unpack it first")],
)
def test_files_that_cannot_be_cut_or_told_apart_are_refused(tmp_path: Path, sources: list[str], message: str) -> None:
    bundle = tiny_bundle(tmp_path)
    with pytest.raises(ConfigError, match=message):
        jobs(str(bundle.path), sources, str(tmp_path), BulkOptions())


def test_no_result_takes_the_place_of_its_source(tmp_path: Path) -> None:
    """Neither by the same path nor by another one that leads there."""
    bundle = tiny_bundle(tmp_path)
    (tmp_path / "texts").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "texts")
    source = tmp_path / "texts" / "x.txt"
    source.write_bytes(b"das haus\n")
    for out in (tmp_path / "texts", tmp_path / "link", f"file://{tmp_path}/texts"):
        with pytest.raises(ConfigError, match="its result would take its place"):
            jobs(str(bundle.path), [str(source)], str(out), BulkOptions())
    assert len(jobs(str(bundle.path), [str(source)], str(tmp_path), BulkOptions())) == 1


def test_bundles_of_several_sources_are_refused(tmp_path: Path) -> None:
    from models.bundle import Vocabularies, VocabularyFile

    file = VocabularyFile("source.model")
    changes: dict[str, Any] = {"vocabularies": Vocabularies((file, file), file), "source_languages": ("de", "fr")}
    bundle = tiny_bundle(tmp_path, **changes)
    with pytest.raises(ConfigError, match="does not read one file of text"):
        jobs(str(bundle.path), ["x.txt"], str(tmp_path), BulkOptions())
