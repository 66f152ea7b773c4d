"""`tandem pull` and `tandem bundles`, with a server of files that breaks off in the middle."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tandem.models.bundle import MANIFEST, Bundle, sha256
from tests.command import ends
from tests.deploy.listening import answering, send_rest
from tests.service.support import tiny_bundle

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return tiny_bundle(tmp_path_factory.mktemp("made"), "tiny")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A command's status, output and errors; bundles lie in ``served``."""

    return lambda *arguments: ends(*arguments, "--bundles", tmp_path / "served")


@pytest.fixture
def archive(bundle: Bundle, tmp_path: Path) -> Path:
    file = tmp_path / "tiny.tar.gz"
    with tarfile.open(file, "w:gz") as made:
        made.add(bundle.path, "tiny@2")
    return file


@dataclass
class Files:
    """A server of one file, which may send less than it promised.

    Attributes:
        stops: after so many bytes of each answer; None = never.
        refuses: answers with that status; None = it does not.
        ranges: of each request the first byte asked for.
    """

    content: bytes
    tag: str = '"1"'
    stops: int | None = None
    refuses: int | None = None
    ranges: list[int] = field(default_factory=list)
    address: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        first = 0
        wanted = re.fullmatch(r"bytes=(\d+)-", request.headers["Range"] or "")
        if wanted and request.headers["If-Range"] == self.tag:
            first = int(wanted[1])
        self.ranges.append(first)
        if self.refuses or request.path.partition("?")[0] != "/tiny.tar.gz":
            request.send_error(self.refuses or 404)
            return
        send_rest(request, self.content, first, tag=self.tag, stop=self.stops)


@pytest.fixture
def files(archive: Path) -> Iterator[Files]:
    served = Files(archive.read_bytes())
    with answering(served.answer) as url:
        served.address = f"{url}/tiny.tar.gz"
        yield served


def test_a_server_that_refuses_and_what_is_no_url(files: Files, run: Run) -> None:
    files.refuses = 416  # though no range was asked for
    status, _, error = run("pull", files.address, "--sha256", "0" * 64)
    assert status == 1 and "answers 416" in error and files.ranges == [0]
    status, _, error = run("pull", "https://[::1/tiny.tar.gz", "--sha256", "0" * 64)
    assert status == 2 and "is no URL" in error


def test_a_download_that_breaks_off_goes_on_where_it_stopped(
    files: Files, archive: Path, bundle: Bundle, run: Run, tmp_path: Path
) -> None:
    command = ("pull", files.address + "?token=secret", "--sha256", sha256(archive))
    files.stops = 1000
    for _ in range(2):
        status, _, error = run(*command)
        assert status == 1 and "broke off" in error and "secret" not in error
        assert not list((tmp_path / "served").glob("tiny*")), "nothing has its name before it is whole"
    files.stops = None
    status, output, _ = run(*command)
    assert status == 0 and files.ranges == [0, 1000, 2000]
    assert Bundle.load(tmp_path / "served" / "tiny@2").manifest == bundle.manifest
    assert str(tmp_path / "served" / "tiny@2") in output
    assert [path.name for path in (tmp_path / "served").iterdir()] == ["tiny@2"]


def test_another_file_under_the_same_url_is_begun_anew(files: Files, archive: Path, run: Run) -> None:
    content, files.content, files.stops = files.content, b"x" * 5000, 1000
    command = ("pull", files.address, "--sha256", sha256(archive))
    assert run(*command)[0] == 1
    files.content, files.tag, files.stops = content, '"2"', None
    assert run(*command)[0] == 0
    assert files.ranges == [0, 0]


def test_another_digest_keeps_nothing_and_names_both(files: Files, archive: Path, run: Run, tmp_path: Path) -> None:
    status, _, error = run("pull", files.address, "--sha256", "0" * 64)
    assert status == 1 and "0" * 64 in error and sha256(archive) in error
    assert not list((tmp_path / "served").iterdir())


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("{url}",), 2, "needs --sha256"),
        (("{url}", "--sha256", "abc"), 2, "64 hexadecimal digits"),
        (("http://name:word@127.0.0.1/x.tar", "--sha256", "0" * 64), 2, "another program"),
        (("{url}x", "--sha256", "0" * 64), 1, "answers 404"),
        (("{url}", "--sha256", "0" * 64, "--max-gb", "0.001"), 1, "--max-gb allows more"),
        (("http://127.0.0.1:9/x.tar", "--sha256", "0" * 64), 1, "refused"),
        (("{folder}/none.tar",), 2, "no such file"),
        (("{folder}",), 2, "no manifest.json"),
        (("{archive}", "--name", "other"), 2, "tiny or tiny@VERSION"),
    ],
)
def test_what_cannot_be_fetched_is_said(
    files: Files, archive: Path, run: Run, tmp_path: Path, arguments: tuple[str, ...], status: int, says: str
) -> None:
    files.content = b"x" * 1_000_001 if "--max-gb" in arguments else files.content
    places = {"url": files.address, "folder": tmp_path, "archive": archive}
    found, _, error = run("pull", *(one.format(**places) for one in arguments))
    assert (found, len(error.splitlines())) == (status, 1) and says in error.replace("there is ", ""), error
    assert not list((tmp_path / "served").glob("[!.]*"))


def _member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.size, member.linkname = kind, size, "/etc/passwd"
    return member


@pytest.mark.parametrize(
    ("member", "says"),
    [
        (_member("../outside"), "outside"),
        (_member("tiny/link", tarfile.SYMTYPE), "is a link"),
        (_member("tiny/device", tarfile.CHRTYPE), "is a link or a device"),
        (_member("tiny/large", size=2_000_000), "--max-gb"),
        (_member("tiny/file"), "no such folder|manifest.json is missing"),
        (None, "not an archive"),
    ],
)
def test_archives_of_something_else_are_refused(
    run: Run, tmp_path: Path, member: tarfile.TarInfo | None, says: str
) -> None:
    file = tmp_path / "made.tar"
    if member is None:
        file.write_bytes(b"<html>" * 1000)
    else:
        with tarfile.open(file, "w") as made:
            made.addfile(member, io.BytesIO(bytes(member.size)))
    status, _, error = run("pull", file, "--max-gb", "0.001")
    assert status == 1 and re.search(says, error), error
    assert not (tmp_path / "outside").exists() and not list((tmp_path / "served").iterdir())


def test_a_folder_is_copied_and_replaced_only_where_asked(bundle: Bundle, run: Run, tmp_path: Path) -> None:
    digest = sha256(bundle.path / MANIFEST)
    assert run("pull", bundle.path, "--sha256", digest)[0] == 0
    status, _, error = run("pull", bundle.path)
    assert status == 2 and "--replace" in error
    (tmp_path / "served" / "tiny" / "weights.safetensors").write_bytes(b"")
    assert run("bundles", "verify")[0] == 1
    assert run("pull", bundle.path, "--replace")[0] == 0
    status, output, _ = run("bundles", "verify", "tiny")
    assert (status, output) == (0, f"tiny: whole, {digest}\n")


def test_bundles_are_listed_and_removed(
    bundle: Bundle, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tiny", "tiny@2"):
        assert run("pull", bundle.path, "--name", name)[0] == 0
    shutil.copytree(bundle.path, tmp_path / "served" / "other@1")
    listed = json.loads(run("bundles", "list", "--json")[1])
    assert [(one["name"], bool(one["fault"])) for one in listed] == [("tiny", True), ("tiny", False), ("tiny@2", False)]
    assert listed[2]["directions"] == ["de-en"] and listed[2]["digest"] == sha256(bundle.path / MANIFEST)
    assert "tiny@2" in run("bundles", "list")[1]
    shutil.rmtree(tmp_path / "served" / "other@1")
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    assert run("bundles", "remove", "tiny")[0] == 1
    assert "no bundle named 'none'" in run("bundles", "remove", "none", "--yes")[2]
    assert run("bundles", "remove", "tiny", "--yes")[0] == 0
    assert [path.name for path in (tmp_path / "served").iterdir()] == ["tiny@2"]
