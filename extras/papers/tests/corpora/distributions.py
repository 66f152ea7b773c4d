"""Invented corpora in exactly the form that the real ones are distributed in: names, folders, mark-up."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

TRAINING = 46  # sentences: twice the hold-out of IWSLT


def sentences(language: str, name: str, count: int = 3) -> list[str]:
    """Sentences whose length differs by number, not by language, so that they are parallel and pass any filter."""
    return [f"This is {name}-{language} number {number}, isn't it?" for number in range(1, count + 1)]


def lines(texts: Sequence[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def unpacked(folder: Path, members: dict[str, bytes]) -> None:
    """What lies in a folder once the archives of a distribution are unpacked there."""
    for name, data in members.items():
        write(folder / name, data)


# --- IWSLT ----------------------------------------------------------------------------------------------------------


def tagged(texts: Sequence[str]) -> bytes:
    """A talk as in train.tags.*; neither its address nor its key words are text, its title and description are."""
    talk = [
        "<url>http://www.ted.com/talks/invented.html</url>",
        "<keywords>talks, invention</keywords>",
        "<talkid>1</talkid>",
        f"<title>{texts[0]}</title>",
        f"<description>{texts[1]}</description>",
        *texts[2:],
    ]
    return lines(talk)


def iwslt_xml(set_name: str, language: str, texts: Sequence[str], kind: str = "srcset") -> bytes:
    system = "" if kind == "srcset" else ' trglang="English"'
    segments = "".join(f'<seg id="{number}"> {text} </seg>\n' for number, text in enumerate(texts, 1))
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<mteval>\n<{kind} setid="{set_name}" srclang="{language}"{system}>\n'
        '<doc docid="535" genre="lectures">\n<url>http://www.ted.com/talks/535</url>\n<title>A title</title>\n'
        f"<description>TED Talk</description>\n<keywords>talk</keywords>\n{segments}</doc>\n</{kind}>\n</mteval>\n"
    ).encode()


def iwslt(folder: Path, language: str, sets: Sequence[str]) -> None:
    members = {}
    for side in (language, "en"):
        members[f"{language}-en/train.tags.{language}-en.{side}"] = tagged(sentences(side, "train", TRAINING))
        kind = "refset" if side == "en" else "srcset"
        for name in sets:
            texts = [f"{name}-{side} & co: it’s number {number}." for number in (1, 2)]
            xml = iwslt_xml(name, side, texts, kind)
            members[f"{language}-en/IWSLT14.{name}.{language}-en.{side}.xml"] = xml
    members[f"{language}-en/README"] = b"read me"
    unpacked(folder, members)


TED = ("TED.dev2010", "TED.tst2010", "TED.tst2011", "TED.tst2012")


def iwslt_german(folder: Path) -> None:
    iwslt(folder, "de", (*TED, "TEDX.dev2012"))


def iwslt_romanian(folder: Path) -> None:
    iwslt(folder, "ro", (*TED, "TED.tst2014"))


def iwslt_spanish(folder: Path) -> None:
    iwslt(folder, "es", (*TED, "TED.tst2014"))


# --- WMT ------------------------------------------------------------------------------------------------------------


def sgm(kind: str, set_name: str, systems: Mapping[str, Sequence[str]], *, documents: Sequence[str] = ("d1",)) -> bytes:
    """A set in the SGML of WMT and NIST; every system holds every document."""
    out = [f'<{kind} setid="{set_name}" srclang="any" trglang="any">']
    for system, texts in systems.items():
        sysid = f' sysid="{system}"' if system else ""
        for document in documents:
            out += [f'<doc{sysid} docid="{document}" genre="news" origlang="en">', "<p>"]
            out += [f'<seg id="{number}">{text}</seg>' for number, text in enumerate(texts, 1)]
            out += ["</p>", "</doc>"]
    return lines([*out, f"</{kind}>"])


def newstest(year: str, pair: str, source: str, target: str, folder: str) -> dict[str, bytes]:
    middle = f"-{pair}" if pair else ""
    name = f"newstest{year}"
    return {
        f"{folder}/{name}{middle}-src.{source}.sgm": sgm("srcset", name, {"": sentences(source, name)}),
        f"{folder}/{name}{middle}-ref.{target}.sgm": sgm("refset", name, {"ref": sentences(target, name)}),
    }


def parallel(prefix: str, languages: Sequence[str], count: int = 3) -> dict[str, bytes]:
    name = prefix.rpartition("/")[2]
    return {f"{prefix}.{language}": lines(sentences(language, name, count)) for language in languages}


def wmt14_german(folder: Path) -> None:
    pair = ("de", "en")
    unpacked(folder, parallel("training/europarl-v7.de-en", pair, 200))
    unpacked(folder, parallel("commoncrawl.de-en", pair))
    unpacked(folder, parallel("training/news-commentary-v9.de-en", pair))
    dev = newstest("2012", "", "en", "de", "dev") | newstest("2013", "", "en", "de", "dev")
    unpacked(folder, dev)
    unpacked(folder, newstest("2014", "deen", "en", "de", "test-full"))
    unpacked(folder, newstest("2015", "ende", "en", "de", "test"))


def wmt14_french(folder: Path) -> None:
    pair = ("fr", "en")
    unpacked(folder, parallel("training/europarl-v7.fr-en", pair, 200))
    unpacked(folder, parallel("commoncrawl.fr-en", pair))
    unpacked(folder, parallel("un/undoc.2000.fr-en", pair))
    unpacked(folder, parallel("training/news-commentary-v9.fr-en", pair))
    giga = {f"{name}.gz": gzip.compress(data) for name, data in parallel("giga-fren.release2.fixed", pair).items()}
    unpacked(folder, giga)
    # The two sets that are timed, this time as plain text; the test set as sacreBLEU writes it out.
    for year in ("2012", "2013"):
        for name, data in parallel(f"newstest{year}", ("en", "fr")).items():
            write(folder / name, data)
    for language, kind in (("en", "src"), ("fr", "ref")):
        write(folder / f"wmt14_full.en-fr.{kind}", lines(sentences(language, "newstest2014")))


def wmt16_romanian(folder: Path) -> None:
    pair = ("ro", "en")
    europarl = parallel("training-parallel-ep-v8/europarl-v8.ro-en", pair, 200)
    unpacked(folder, europarl)
    unpacked(folder, parallel("SETIMES.en-ro", pair) | {"README": b"read me"})
    for name, data in parallel("corpus.bt.en-ro", pair).items():
        write(folder / f"{name}.gz", gzip.compress(data))
    dev = {
        "dev/newsdev2016-enro-src.en.sgm": sgm("srcset", "newsdev2016", {"": ["State-of-the-art &amp; “more”."]}),
        "dev/newsdev2016-enro-ref.ro.sgm": sgm("refset", "newsdev2016", {"ref": ["Şi ţara &amp; altele."]}),
    }
    unpacked(folder, dev)
    unpacked(folder, newstest("2016", "enro", "en", "ro", "test"))


# --- NIST, Gigaword -------------------------------------------------------------------------------------------------


def nist(folder: Path) -> None:
    chinese, english = ["他来到北京。", "我们 喜欢 翻译。"], ["He came to Beijing.", "We like translation."]
    for number in ("LDC2002E18", "LDC2003E07", "LDC2003E14", "LDC2004T07", "LDC2004T08", "LDC2005T06"):
        write(folder / f"{number}.zh", lines(chinese))
        write(folder / f"{number}.en", lines(english))
    for name in ("mt02", "mt03", "mt04", "mt05", "mt06", "mt08", "mt12"):
        source = sgm("srcset", name, {"": chinese}, documents=("A1", "B2")).decode()
        # The older sets: upper-case tags, bare attributes, and not UTF-8.
        source = source.replace("<doc", "<DOC").replace('<seg id="1">', "<seg id=1>")
        write(folder / f"{name}-src.zh.sgm", source.encode("gb18030" if name == "mt02" else "utf-8"))
        translators = {f"ref{index}": [f"{text} ({name}, {index})" for text in english] for index in range(4)}
        # References come document by document in an order of their own, with document names in another case.
        write(folder / f"{name}-ref.en.sgm", sgm("refset", name, translators, documents=("b2", "a1")))


def gigaword(folder: Path) -> None:
    article = "australia 's deficit shrunk by a record #.## billion -lrb- <unk> -rrb- ."
    members = {
        "sumdata/train/train.article.txt": lines([article] * 4),
        "sumdata/train/train.title.txt": lines(["deficit narrows", "<unk> narrows", "", "no ##"]),
        "sumdata/train/valid.article.filter.txt": lines([article]),
        "sumdata/train/valid.title.filter.txt": lines(["deficit narrows"]),
        "sumdata/Giga/input.txt": lines(["UNK", article]),
        "sumdata/Giga/task1_ref0.txt": lines(["a title", "another"]),
        "sumdata/DUC2003/input.txt": lines(["not wanted"]),
        "sumdata/DUC2003/task1_ref0.txt": lines(["not wanted"]),
        "sumdata/DUC2004/input.txt": lines(["Cambodian leader Hun Sen on Friday 13 rejected demands"]),
    }
    for number in range(4):
        members[f"sumdata/DUC2004/task1_ref{number}.txt"] = lines([f"Title {number}"])
    for name in ("train.article.txt", "train.title.txt"):
        members[f"sumdata/train/{name}.gz"] = gzip.compress(members.pop(f"sumdata/train/{name}"))
    unpacked(folder, members)


def arxiv(folder: Path) -> None:
    """A record a line, texts broken as arXiv breaks them."""
    records = (
        {
            "id": f"{704 + number // 1000:04}.{number % 1000:04}",
            "authors": "N. N.",
            "title": f"On the number\n  {number}",
        }
        | {"abstract": f"  We study the number {number},\nand find it.\n"}
        for number in range(8000)
    )
    write(folder / "arxiv-metadata-oai-snapshot.json", lines([json.dumps(record) for record in records]))


# --- multi-source ---------------------------------------------------------------------------------------------------


def multi30k(folder: Path) -> None:
    for name, count in (("train", 5), ("val", 2), ("test_2016_flickr", 2)):
        for language in ("de", "fr", "cs", "en"):
            data = gzip.compress(lines(sentences(language, name, count)))
            write(folder / "data" / "task1" / "raw" / f"{name}.{language}.gz", data)
            write(folder / "data" / "task1" / "tok" / f"{name}.lc.norm.tok.{language}", b"not wanted\n")


def post_editing(folder: Path) -> None:
    for name in ("train", "dev", "test"):
        for kind in ("src", "mt", "pe"):
            write(folder / "en-de" / f"{name}.{kind}", lines(sentences(kind, name)))
    for kind in ("src", "mt", "pe"):
        write(folder / f"en-de.train.{kind}", lines(sentences(kind, "2017")))


DISTRIBUTIONS: dict[str, Callable[[Path], None]] = {
    "iwslt14-de-en": iwslt_german,
    "iwslt14-de-en-153k": iwslt_german,
    "iwslt14-ro-en": iwslt_romanian,
    "iwslt14-es-en": iwslt_spanish,
    "wmt14-en-de": wmt14_german,
    "wmt14-en-fr": wmt14_french,
    "wmt16-en-ro": wmt16_romanian,
    "nist-zh-en": nist,
    "gigaword": gigaword,
    "arxiv-title": arxiv,
    "multi30k": multi30k,
    "wmt-ape-en-de": post_editing,
}
