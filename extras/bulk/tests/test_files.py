"""Files: order, compression, bad lines in their places, and what resuming goes on from or refuses."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import json
import lzma
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from io import BufferedWriter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tandem.deploy.cli import app
from tandem.extras.bulk.lines import Line, LineResult
from tandem.extras.bulk.options import BulkOptions
from tandem.extras.bulk.output import FileOutput, Journal, StreamOutput
from tandem.extras.bulk.pool import LINES_OF_A_BLOCK, WorkerDied
from tandem.extras.bulk.run import Request, Summary, translate_files
from tandem.extras.bulk.tests import support
from tandem.extras.bulk.tests.support import Shouting, copier, numbered, shout, shouter, write_lines
from tandem.models.bundle import Vocabularies, VocabularyFile
from tandem.models.errors import ConfigError, CorpusError
from tandem.models.folders import hold
from tests.service.support import tiny_bundle

Packing = tuple[str, Callable[[bytes], bytes], Callable[[bytes], bytes]]
PACKINGS: tuple[Packing, ...] = (
    ("", bytes, bytes),
    (".gz", gzip.compress, gzip.decompress),
    (".xz", lzma.compress, lzma.decompress),
    (".bz2", bz2.compress, bz2.decompress),
)


@dataclass(eq=False)
class Mortal(Shouting):
    """Gives up at the block after so many."""

    blocks: int = 3

    def translate_block(self, lines: Sequence[Line]) -> list[LineResult]:
        self.blocks -= 1
        if self.blocks < 0:
            raise WorkerDied("enough")
        return super().translate_block(lines)


def mortal(bundle: Path, blocks: int) -> Mortal:
    return Mortal(bundle, opener=support.open_copying, blocks=blocks)


DONE = 8 * LINES_OF_A_BLOCK


def begun(bundle: Path, folder: Path, name: str = "out", blocks: int = 8) -> Path:
    """A file of which some blocks are done; its source is ``in`` beside it."""
    source = write_lines(folder / "in", numbered(3000))
    with pytest.raises(WorkerDied):
        translate_files(mortal(bundle, blocks), Request((source,), folder / name, save_every=0.0))
    return folder / name


def resumed(bundle: Path, out: Path, **changes: Any) -> Summary:
    return translate_files(shouter(bundle), Request((out.parent / "in",), out, resume=True, **changes))


def expected(count: int = 3000) -> bytes:
    return b"".join(shout(line) + b"\n" for line in numbered(count))


@pytest.mark.parametrize("packing", PACKINGS, ids=lambda packing: packing[0] or "plain")
def test_lines_keep_their_order_in_any_packing(bundle: Path, tmp_path: Path, packing: Packing) -> None:
    suffix, pack, unpack = packing
    source, out = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    source.write_bytes(pack(b"".join(line + b"\n" for line in numbered(3000))))
    summary = translate_files(shouter(bundle), Request((source,), out, save_every=0.0))
    assert unpack(out.read_bytes()) == expected()
    assert (summary.counts.lines, summary.counts.bad, summary.before, summary.report) == (3000, 0, 0, None)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted((source.name, out.name, f"{out.name}.journal"))


@pytest.mark.parametrize("packing", PACKINGS, ids=lambda packing: packing[0] or "plain")
def test_nothing_in_is_nothing_out(bundle: Path, tmp_path: Path, packing: Packing) -> None:
    suffix, _, unpack = packing
    (tmp_path / "in").write_bytes(b"")
    translate_files(shouter(bundle), Request((tmp_path / "in",), tmp_path / f"out{suffix}"))
    assert unpack((tmp_path / f"out{suffix}").read_bytes()) == b""


def test_bad_lines_stay_in_their_places_and_are_told(bundle: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    huge = b"y" * 3000
    source.write_bytes(b"das haus\r\n\n" + huge + b"\nguten \xff morgen\nalt\0\n" + huge)
    request = Request((source,), out)
    summary = translate_files(copier(bundle, max_line_bytes=2000), request)
    assert out.read_bytes() == source.read_bytes() + b"\n"
    told = [json.loads(line) for line in (tmp_path / "out.report.jsonl").read_text("utf-8").splitlines()]
    assert [(one["line"], one["reason"]) for one in told] == [
        (3, "too_long"), (4, "invalid_utf8"), (5, "nul"), (6, "too_long"),
    ]  # fmt: skip
    assert told[0]["detail"] == "has 3000 bytes, more than --max-line-bytes allows"
    assert dict(summary.counts.reasons) == {"too_long": 2, "invalid_utf8": 1, "nul": 1}
    assert (summary.counts.lines, summary.counts.bad) == (6, 4)
    assert summary.report == tmp_path / "out.report.jsonl"
    translate_files(copier(bundle, bad="empty", max_line_bytes=2000), request)
    assert out.read_bytes() == b"das haus\r\n\n\n\n\n\n"
    source.write_bytes(b"das haus\n")
    translate_files(copier(bundle), request)
    assert not (tmp_path / "out.report.jsonl").exists()


def test_a_run_that_ended_goes_on_exactly_there(bundle: Path, tmp_path: Path) -> None:
    """Of 3,000 lines 2,048 are written; one that was torn does not count."""
    for suffix, _, unpack in PACKINGS:
        folder = tmp_path / f"packed{suffix}"
        folder.mkdir()
        out = begun(bundle, folder, f"out{suffix}")
        assert not out.exists()
        journal = Journal.read(folder / f"{out.name}.journal")
        assert journal is not None and journal.finished is None
        assert (folder / f"{out.name}.part").read_bytes() == expected(DONE)
        with (folder / f"{out.name}.part").open("ab") as file:
            file.write(b"what was on its way to the disk")
        summary = resumed(bundle, out)
        assert unpack(out.read_bytes()) == expected()
        assert (summary.before, summary.counts.lines) == (DONE, 3000)
        names = sorted(path.name for path in folder.iterdir())
        assert names == ["in", out.name, f"{out.name}.journal"]


def test_resuming_again_and_again_changes_nothing(bundle: Path, tmp_path: Path) -> None:
    out = begun(bundle, tmp_path, blocks=3)
    request = Request((tmp_path / "in",), out, resume=True, save_every=0.0)
    with pytest.raises(WorkerDied):
        translate_files(mortal(bundle, 5), request)
    assert resumed(bundle, out).before == DONE
    assert out.read_bytes() == expected()
    again = resumed(bundle, out)
    assert (again.before, again.counts.lines) == (3000, 3000)
    assert out.read_bytes() == expected()


def test_a_report_goes_on_where_the_output_does(bundle: Path, tmp_path: Path) -> None:
    lines = [b"\xff" if number % 500 == 0 else line for number, line in enumerate(numbered(3000))]
    source = write_lines(tmp_path / "in", lines)
    out, report = tmp_path / "out", tmp_path / "bad.jsonl"
    request = Request((source,), out, report, save_every=0.0)
    with pytest.raises(WorkerDied):
        translate_files(mortal(bundle, 8), request)
    with report.open("ab") as file:
        file.write(b'{"line": 2')
    summary = translate_files(shouter(bundle), replace(request, resume=True))
    assert (summary.counts.bad, dict(summary.counts.reasons)) == (6, {"invalid_utf8": 6})
    told = [json.loads(line)["line"] for line in report.read_text("utf-8").splitlines()]
    assert told == [1, 501, 1001, 1501, 2001, 2501]


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("state", ["written", "packed", "renamed"])
def test_an_end_between_the_last_line_and_the_name_is_made_up_for(
    bundle: Path, tmp_path: Path, suffix: str, state: str
) -> None:
    source, out = write_lines(tmp_path / "in", numbered(10)), tmp_path / f"out{suffix}"
    part, journal = tmp_path / f"{out.name}.part", tmp_path / f"{out.name}.journal"
    translate_files(shouter(bundle), Request((source,), out))
    finished, content = Journal.read(journal), out.read_bytes()
    assert finished is not None and finished.finished == 10
    part.write_bytes(expected(10))
    if state == "written":  # the journal does not know yet
        replace(finished, finished=None, output=0).write(journal)
        out.unlink()
    elif state == "packed":
        out.rename(tmp_path / f"{out.name}.packed" if suffix else part)
    elif not suffix:
        part.unlink()
    assert resumed(bundle, out).before == 10
    assert out.read_bytes() == content
    after = Journal.read(journal)
    assert after is not None and after.finished == 10
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", out.name, journal.name]


def test_every_difference_is_named_before_anything_is_written(bundle: Path, tmp_path: Path) -> None:
    out = begun(bundle, tmp_path)
    part = (tmp_path / "out.part").read_bytes()
    other = tiny_bundle(tmp_path / "other", licence="CC-BY-4.0").path
    request = Request((tmp_path / "in",), out, resume=True)
    with pytest.raises(ConfigError) as refused:
        translate_files(shouter(other, beam_size=2, bad="empty", max_line_bytes=9), request)
    for fault in (
        "bundle was ", "beam_size was 4 and is 2", 'bad was "keep" and is "empty"',
        "max_line_bytes was 1048576 and is 9",
    ):  # fmt: skip
        assert fault in str(refused.value)
    source = tmp_path / "in"
    content = source.read_bytes()
    source.write_bytes(content + b"more\n")
    with pytest.raises(ConfigError, match=rf"input 1 was {len(content)} bytes \(\w+\) and is {len(content) + 5} bytes"):
        resumed(bundle, out)
    source.write_bytes(b"L" + content[1:])
    with pytest.raises(ConfigError, match=rf"input 1 was {len(content)} bytes \(\w+\) and is {len(content)} bytes"):
        resumed(bundle, out)
    source.write_bytes(content)
    with pytest.raises(ConfigError, match=r"2,048 lines of an earlier run: go on with --resume, or remove"):
        translate_files(shouter(bundle), Request((source,), out))
    assert (tmp_path / "out.part").read_bytes() == part
    (tmp_path / "out.part").write_bytes(part[:-1])
    assert resumed(bundle, out, workers=1).before == DONE - 1
    assert out.read_bytes() == expected()


def test_a_file_is_not_gone_on_with_from_a_pipe(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a pipe nobody knows whether it brings the same text."""
    out = begun(bundle, tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "in").read_bytes()), encoding="utf-8"))
    with pytest.raises(ConfigError, match=r"input 1 was \d+ bytes \(\w+\) and is no file"):
        translate_files(shouter(bundle), Request((Path("-"),), out, resume=True))
    assert resumed(bundle, out).before == DONE


def test_an_output_of_more_lines_than_the_input_is_not_gone_on_with(bundle: Path, tmp_path: Path) -> None:
    out = begun(bundle, tmp_path)
    (tmp_path / "out.part").write_bytes(b"\n" * 3001)
    with pytest.raises(ConfigError, match=r"has changed: 3,001 lines of it are done, but it has 3,000"):
        resumed(bundle, out)


def test_nothing_is_resumed_that_nobody_knows(bundle: Path, tmp_path: Path) -> None:
    source, out = write_lines(tmp_path / "in", numbered(10)), tmp_path / "out"
    assert resumed(bundle, out).before == 0  # nothing has begun: it begins
    out.write_bytes(b"something else\n")
    with pytest.raises(ConfigError, match="was finished, and removed or changed since"):
        resumed(bundle, out)
    (tmp_path / "out.journal").unlink()
    with pytest.raises(ConfigError, match="nothing to resume"):
        resumed(bundle, out)
    with pytest.raises(ConfigError, match="--resume needs --out"):
        translate_files(shouter(bundle), Request((source,), None, resume=True))
    (tmp_path / "out.journal").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="no readable journal"):
        resumed(bundle, out)
    (tmp_path / "out.journal").write_text('{"format": 0}', encoding="utf-8")
    with pytest.raises(ConfigError, match="no journal of this version"):
        resumed(bundle, out)


def test_a_file_has_one_writer(bundle: Path, tmp_path: Path) -> None:
    out = begun(bundle, tmp_path)
    with hold(tmp_path / "out.part"), pytest.raises(ConfigError, match="another process is writing it"):
        resumed(bundle, out)
    assert resumed(bundle, out).counts.lines == 3000


def test_input_that_cannot_be_read_is_named(bundle: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "utf16").write_bytes("das haus\n".encode("utf-16"))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"das haus\n" * 9)[:-9])
    for name, message in (
        ("none", "cannot be read"), ("utf16", "this is UTF-16"), ("cut.gz", "damaged or cut short"),
        ("x.npy", "text is expected here, not feature vectors"),
    ):  # fmt: skip
        with pytest.raises(CorpusError, match=message):
            translate_files(shouter(bundle), Request((tmp_path / name,), out))
    with pytest.raises(ConfigError, match=r"`zstdcat in\.zst \| tandem translate"):
        translate_files(shouter(bundle), Request((Path("in.zst"),), out))
    source = write_lines(tmp_path / "in", numbered(3))
    with pytest.raises(ConfigError, match="both a source and written to"):
        translate_files(shouter(bundle), Request((source,), source))
    with pytest.raises(CorpusError, match="has 1 sources, but 2 are given"):
        translate_files(shouter(bundle), Request((source, source), out))
    assert not out.exists() and source.read_bytes()


def test_no_file_is_written_that_is_read_or_another_one(bundle: Path, tmp_path: Path) -> None:
    """What stands beside the output counts, too."""
    out = tmp_path / "out"
    for name in ("out.part", "out.journal", "out.packed", "out.report.jsonl"):
        source = write_lines(tmp_path / name, numbered(3))
        with pytest.raises(ConfigError, match="both a source and written to"):
            translate_files(shouter(bundle), Request((source,), out))
        assert source.read_bytes()
        source.unlink()
    source = write_lines(tmp_path / "in", numbered(3))
    for name in ("out", "out.part", "out.journal"):
        with pytest.raises(ConfigError, match="--report must be a file of its own"):
            translate_files(shouter(bundle), Request((source,), out, tmp_path / name))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_a_link_is_written_through(bundle: Path, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "in", numbered(3))
    (tmp_path / "out").symlink_to(tmp_path / "real")
    translate_files(shouter(bundle), Request((source,), tmp_path / "out"))
    assert (tmp_path / "out").is_symlink() and (tmp_path / "real").read_bytes() == expected(3)


def test_a_report_may_go_into_a_pipe(bundle: Path, tmp_path: Path) -> None:
    """Devices and pipes stay what they are."""
    source, pipe = write_lines(tmp_path / "in", [b"das", b"\xff"]), tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        translate_files(shouter(bundle), Request((source,), tmp_path / "out", pipe))
        assert json.loads(os.read(reader, 1000))["line"] == 2
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_full_disk_is_named(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the output is written or the journal; it goes on from what was saved before."""
    out = begun(bundle, tmp_path)
    real = os.fsync

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as raised:
        resumed(bundle, out, save_every=0.0)
    assert raised.value.filename == str(tmp_path / "out.part")
    with pytest.raises(OSError, match="No space left") as raised:
        Journal({}).write(tmp_path / "x.journal")
    assert raised.value.filename == str(tmp_path / "x.journal.new")
    monkeypatch.setattr(os, "fsync", real)
    assert resumed(bundle, out).counts.lines == 3000
    assert out.read_bytes() == expected()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, as Linux has it")
def test_what_cannot_be_written_at_the_end_hides_no_earlier_error() -> None:
    output = StreamOutput(Path("/dev/full"))
    output.write(b"x")
    with pytest.raises(OSError, match="No space left"):
        output.flush(sync=True)
    output.close()


def test_a_finished_file_is_of_this_input(bundle: Path, tmp_path: Path) -> None:
    source, out = write_lines(tmp_path / "in", numbered(3)), tmp_path / "out"
    translate_files(shouter(bundle), Request((source,), out))
    assert resumed(bundle, out).before == 3
    source.write_bytes(source.read_bytes().replace(b"line 1", b"time 1"))
    with pytest.raises(ConfigError, match=r"input 1 was \d+ bytes \(\w+\) and is \d+ bytes"):
        resumed(bundle, out)


def test_who_has_waited_for_a_file_does_not_cut_what_it_became(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process gives the file its name after this one has opened it, and before this one has the lock."""
    part, out = tmp_path / "out.part", tmp_path / "out"
    part.write_bytes(b"all of it")
    journal = Journal({})
    journal.write(tmp_path / "out.journal")

    def wait(path: Path) -> BufferedWriter:
        held = hold(path)
        part.rename(out)
        return held

    monkeypatch.setattr("tandem.extras.bulk.output.hold", wait)
    with pytest.raises(ConfigError, match="has just finished it"):
        FileOutput(out).begin({}, resume=True)
    assert out.read_bytes() == b"all of it"


def test_closed_streams_are_told(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a shell closes them with <&- and >&-."""
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ConfigError, match="standard input is closed"):
        translate_files(shouter(bundle), Request((Path("-"),), tmp_path / "out"))
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(ConfigError, match="standard output is closed"):
        translate_files(shouter(bundle), Request((write_lines(tmp_path / "in", numbered(3)),)))


def two_sources(folder: Path) -> Path:
    file = VocabularyFile("source.model")
    vocabularies = Vocabularies((file, file), file)
    return tiny_bundle(folder, "two", source_languages=("de", "fr"), vocabularies=vocabularies).path


def test_parallel_sources_must_end_together(tmp_path: Path) -> None:
    bundle, out = two_sources(tmp_path), tmp_path / "out"
    first, second = write_lines(tmp_path / "a", [b"das", b"haus"]), write_lines(tmp_path / "b", [b"one", b"two"])
    translate_files(copier(bundle), Request((first, second), out))
    assert out.read_bytes() == b"one\ntwo\n"
    out.unlink()
    write_lines(second, [b"one"])
    with pytest.raises(CorpusError, match=r"equally many lines, but .*b ended and another went on after 1 lines"):
        translate_files(copier(bundle), Request((first, second), out))
    assert not out.exists()
    with pytest.raises(ConfigError, match="standard input"):
        translate_files(copier(bundle), Request((Path("-"), Path("-")), out))


def test_standard_input_can_be_resumed_into_a_file(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever pipes the same text again need not wait for what is done."""
    text, out = b"".join(line + b"\n" for line in numbered(3000)), tmp_path / "out"

    def pipe(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))

    pipe(text)
    with pytest.raises(WorkerDied):
        translate_files(mortal(bundle, 4), Request((Path("-"),), out))
    pipe(text[:100])
    with pytest.raises(ConfigError, match="the input - has changed"):
        translate_files(shouter(bundle), Request((Path("-"),), out, resume=True))
    pipe(text)
    assert translate_files(shouter(bundle), Request((Path("-"),), out, resume=True)).before == 4 * LINES_OF_A_BLOCK
    assert out.read_bytes() == expected()


def test_features_are_read_row_by_row(tmp_path: Path) -> None:
    from tandem.extras.bulk.sources import FeatureSource

    matrices = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    np.save(tmp_path / "x.npy", matrices)
    source = FeatureSource(tmp_path / "x.npy", 3)
    assert len(list(islice(source.lines(), 2))) == 2
    assert 0 < source.position < (source.size or 0)
    assert np.array_equal(np.array(list(source.lines())), matrices[2:])


@pytest.fixture
def copying_command(monkeypatch: pytest.MonkeyPatch) -> None:
    from tandem.extras.bulk import translator

    monkeypatch.setattr(translator.BulkTranslator.__init__, "__defaults__", (BulkOptions(), support.open_copying))


@pytest.mark.usefixtures("copying_command")
def test_the_command_reads_and_writes_streams_and_says_how_it_went(bundle: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    piped = runner.invoke(app, ["translate", str(bundle)], input=b"das haus\nguten morgen\n")
    assert (piped.exit_code, piped.stdout, piped.stderr) == (0, "das haus\nguten morgen\n", "")
    command = ["translate", str(bundle), "--out", str(tmp_path / "out")]
    bad = runner.invoke(app, [*command, "--fail-on-bad"], input=b"das haus\n\xff\n")
    assert bad.exit_code == 1
    assert "2 lines in" in bad.stderr and "1 bad (invalid_utf8 1)" in bad.stderr
    assert "out.report.jsonl names the bad ones" in bad.stderr
    assert runner.invoke(app, command, input=b"das haus\n\xff\n").exit_code == 0
    empty = runner.invoke(app, [*command, "--bad", "empty", "--segments"], input=b"das haus.\n\xff\n")
    assert empty.exit_code == 0
    assert (tmp_path / "out").read_bytes() == b"das haus.\n\n"
    refused = runner.invoke(app, [*command, "--report", "-"], input=b"das haus\n")
    assert isinstance(refused.exception, ConfigError) and "--report must be a file" in str(refused.exception)
