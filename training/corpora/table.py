"""The corpora of the papers: one literal table.

Numbers of segments are the distributions' own; bounds of pairs are the papers' numbers with the digits that they print.
"""

from __future__ import annotations

from collections.abc import Sequence

from models.errors import ConfigError
from training.corpora.specs import Cleaning, Corpus, Download, FeatureSet, HoldOut, Part, Split, TextForm

_DPN = "DPN-S2S (Song et al. 2018)"
_CONVS2S = "ConvS2S (Gehring et al. 2017)"
_LAYERWISE = "Layer-wise coordination (He et al. 2018)"
_MULTISOURCE = "Multi-source attention (Libovický and Helcl 2017)"
_MEMD = "ME-MD (Zhang et al. 2017)"


def _files(template: str, values: Sequence[str], *others: str) -> tuple[tuple[str, ...], ...]:
    """One file for every value that stands for ``{}``, with the names that it also goes under."""
    return tuple(tuple(name.replace("{}", value) for name in (template, *others)) for value in values)


def _newstest(year: str, pair: str, languages: Sequence[str], download: Download, segments: int) -> Part:
    """A WMT test set: SGML, plain text, or as sacreBLEU writes it out; ``pair`` as WMT spells it (``deen``)."""
    source, target = languages
    # Only up to 2013 is the English side the same for every pair, so that a name without the pair is safe.
    shared = year <= "2013"
    exported = f"wmt{year[2:]}{'_full' if year == '2014' else ''}.{source}-{target}"
    files = []
    for language, kind in ((source, "src"), (target, "ref")):
        names = [f"newstest{year}-{kind}.{language}.sgm", f"newstest{year}.{language}"] if shared else []
        names += [f"newstest{year}-{pair}-{kind}.{language}.sgm", f"newstest{year}.{source}-{target}.{language}"]
        files.append((*names, f"{exported}.{kind}"))
    return Part(tuple(files), download, segments)


# --- IWSLT14 --------------------------------------------------------------------------------------------------------

_WIT3 = Download("WIT3, release 2014-01", "https://wit3.fbk.eu/2014-01", "unpack the outer archive")
_WIT3_TEST = Download("WIT3, test sets of IWSLT 2014", "https://wit3.fbk.eu/2014-01-test")
_TED_LICENCE = "CC BY-NC-ND 4.0"
_TED_ATTRIBUTION = "TED talks, by way of WIT3 (Cettolo et al. 2012)"
_TED_SETS = (("TED.dev2010", 887), ("TED.tst2010", 1565), ("TED.tst2011", 1433), ("TED.tst2012", 1700))


def _ted(language: str, name: str, segments: int = 0, download: Download = _WIT3) -> Part:
    return Part(_files(f"IWSLT14.{name}.{language}-en.{{}}.xml", (language, "en")), download, segments)


def _ted_train(language: str, pairs: tuple[int, int]) -> Split:
    return Split("train", (Part(_files(f"train.tags.{language}-en.{{}}", (language, "en")), _WIT3),), pairs)


def _german_ted(name: str, title: str, paper: str, train: tuple[int, int], max_words: int, *notes: str) -> Corpus:
    ted = tuple(_ted("de", *item) for item in _TED_SETS)
    return Corpus(
        name=name,
        title=title,
        papers=(paper,),
        fields=("de", "en"),
        languages=("de", "en"),
        splits=(
            _ted_train("de", train),
            Split("test", (ted[0], _ted("de", "TEDX.dev2012", 1165), *ted[1:]), (6750, 6750)),
            Split("test_ted", ted, (5585, 5585)),
        ),
        licence=_TED_LICENCE,
        attribution=_TED_ATTRIBUTION,
        form=TextForm(apostrophes=True, tokens="moses", lowercase=True),
        cleaning=Cleaning(max_words=max_words, max_ratio=1.5),
        hold_out=HoldOut("valid", 23, (6500, 7499)),
        notes=notes,
    )


def _cased_ted(language: str, english_name: str, train: tuple[int, int]) -> Corpus:
    return Corpus(
        name=f"iwslt14-{language}-en",
        title=f"IWSLT14 {english_name} to English",
        papers=(_LAYERWISE,),
        fields=(language, "en"),
        languages=(language, "en"),
        splits=(
            _ted_train(language, train),
            Split("valid", tuple(_ted(language, name) for name, _ in _TED_SETS)),
            Split("test", (_ted(language, "TED.tst2014", download=_WIT3_TEST),)),
        ),
        licence=_TED_LICENCE,
        attribution=_TED_ATTRIBUTION,
        form=TextForm(apostrophes=True, tokens="moses"),
        notes=("The paper names no filter, so only pairs with an empty side are left out; text stays cased.",),
    )


# --- WMT ------------------------------------------------------------------------------------------------------------

_WMT_LICENCE = "free for research; the parts keep the terms of their sources (see the WMT pages)"
_WMT_FORM = TextForm(comma_below=True, punctuation=True, tokens="moses-dashes")
_EUROPARL = Download("Europarl v7", "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz")
_CRAWL = Download("Common Crawl", "https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz")
_NEWS9 = Download("News Commentary v9", "https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz")
_UN = Download("UN corpus", "https://www.statmt.org/wmt13/training-parallel-un.tgz")
_GIGA = Download("10^9 French-English corpus", "https://www.statmt.org/wmt10/training-giga-fren.tar")
_DEV14 = Download("WMT14 development sets", "https://www.statmt.org/wmt14/dev.tgz")
_TEST14 = Download("WMT14 test sets, full", "https://www.statmt.org/wmt14/test-full.tgz")
_TEST15 = Download("WMT15 test sets", "https://www.statmt.org/wmt15/test.tgz")
_EUROPARL8 = Download("Europarl v8", "https://data.statmt.org/wmt16/translation-task/training-parallel-ep-v8.tgz")
_SETIMES = Download("SETIMES2 (OPUS), en-ro.txt.zip", "https://opus.nlpl.eu/SETIMES/")
_BACK = Download("back-translated news", "https://data.statmt.org/rsennrich/wmt16_backtranslations/en-ro/")
_DEV16 = Download(
    "WMT16 Romanian development set", "https://data.statmt.org/wmt16/translation-task/dev-romanian-updated.tgz"
)
_TEST16 = Download("WMT16 test sets", "https://data.statmt.org/wmt16/translation-task/test.tgz")
_HELD_OUT = (
    "Held out is a share of the training text, as ConvS2S validates; which lines is not printed, here it is every"
    ' {}th. `valid_split = "heldout"` in a recipe validates on it.'
)

_EN_DE = Corpus(
    name="wmt14-en-de",
    title="WMT14 English to German",
    papers=(_CONVS2S, _LAYERWISE),
    fields=("en", "de"),
    languages=("en", "de"),
    splits=(
        Split(
            "train",
            (
                Part(_files("europarl-v7.de-en.{}", ("en", "de")), _EUROPARL, 1_920_209),
                Part(_files("commoncrawl.de-en.{}", ("en", "de")), _CRAWL, 2_399_123),
                Part(_files("news-commentary-v9.de-en.{}", ("en", "de")), _NEWS9),
            ),
            (4_450_000, 4_549_999),
        ),
        Split(
            "valid",
            (
                _newstest("2012", "deen", ("en", "de"), _DEV14, 3003),
                _newstest("2013", "deen", ("en", "de"), _DEV14, 3000),
            ),
            (6003, 6003),
        ),
        Split("test", (_newstest("2014", "deen", ("en", "de"), _TEST14, 3003),), (3003, 3003), plain_copy=True),
        Split("newstest2015", (_newstest("2015", "ende", ("en", "de"), _TEST15, 2169),), (2169, 2169), optional=True),
    ),
    licence=_WMT_LICENCE,
    attribution="the WMT14 organisers; Europarl (Koehn 2005)",
    form=_WMT_FORM,
    hold_out=HoldOut("heldout", 100),
    notes=(
        _HELD_OUT.format(100),
        "newstest2015 is what ConvS2S tunes its length penalty on.",
        "The filtered test set of 2,737 segments is another one: take the full one.",
    ),
)

_EN_FR = Corpus(
    name="wmt14-en-fr",
    title="WMT14 English to French",
    papers=(_CONVS2S,),
    fields=("en", "fr"),
    languages=("en", "fr"),
    splits=(
        Split(
            "train",
            (
                Part(_files("europarl-v7.fr-en.{}", ("en", "fr")), _EUROPARL, 2_007_723),
                Part(_files("commoncrawl.fr-en.{}", ("en", "fr")), _CRAWL, 3_244_152),
                Part(_files("undoc.2000.fr-en.{}", ("en", "fr")), _UN, 12_886_831),
                Part(_files("news-commentary-v9.fr-en.{}", ("en", "fr")), _NEWS9),
                Part(_files("giga-fren.release2.fixed.{}", ("en", "fr")), _GIGA, 22_520_400),
            ),
            (35_450_000, 41_000_000),
        ),
        Split("test", (_newstest("2014", "fren", ("en", "fr"), _TEST14, 3003),), (3003, 3003), plain_copy=True),
        Split(
            "newstest2012-2013",
            (
                _newstest("2012", "fren", ("en", "fr"), _DEV14, 3003),
                _newstest("2013", "fren", ("en", "fr"), _DEV14, 3000),
            ),
            (6003, 6003),
            optional=True,
        ),
    ),
    licence=_WMT_LICENCE,
    attribution="the WMT14 organisers; Europarl (Koehn 2005)",
    form=_WMT_FORM,
    hold_out=HoldOut("valid", 200),
    notes=(
        "Validation is a share of the training text; which lines is not printed, here it is every 200th.",
        "The filters of the paper (175 words, length ratio 1.5) are the recipe's; they leave 35.5M pairs.",
        "newstest2012-2013 is what ConvS2S times generation on.",
    ),
)

_EN_RO = Corpus(
    name="wmt16-en-ro",
    title="WMT16 English to Romanian, with back-translated news",
    papers=(_CONVS2S, _LAYERWISE),
    fields=("en", "ro"),
    languages=("en", "ro"),
    splits=(
        Split(
            "train",
            (
                Part(_files("europarl-v8.ro-en.{}", ("en", "ro"), "europarl-v7.ro-en.{}"), _EUROPARL8),
                Part(_files("SETIMES.en-ro.{}", ("en", "ro"), "SETIMES2.en-ro.{}"), _SETIMES),
                Part(_files("corpus.bt.en-ro.{}", ("en", "ro")), _BACK),
            ),
            (2_750_000, 2_849_999),
        ),
        Split(
            "valid",
            (
                Part(
                    (
                        ("newsdev2016-enro-src.en.sgm", "newsdev2016.en-ro.en", "wmt16_dev.en-ro.src"),
                        ("newsdev2016-enro-ref.ro.sgm", "newsdev2016.en-ro.ro", "wmt16_dev.en-ro.ref"),
                    ),
                    _DEV16,
                    1999,
                ),
            ),
            (1999, 1999),
            plain_copy=True,
        ),
        Split("test", (_newstest("2016", "enro", ("en", "ro"), _TEST16, 1999),), (1999, 1999), plain_copy=True),
    ),
    licence=_WMT_LICENCE,
    attribution="the WMT16 organisers; Europarl (Koehn 2005); SETIMES (OPUS); back-translation: Sennrich et al. 2016",
    form=_WMT_FORM,
    hold_out=HoldOut("heldout", 100),
    notes=(
        _HELD_OUT.format(100),
        "Layer-wise coordination prints newstest2013 and 2014 as its validation set; neither exists in Romanian, so"
        " `valid` is newsdev2016, WMT16's own.",
        "Scores are of detokenised text: detokenise what a model wrote (`sacremoses -l ro detokenize`) and score it"
        " against `test_raw.ro`. The limit of 175 words is the recipe's filter.",
    ),
)

# --- NIST Chinese-English -------------------------------------------------------------------------------------------

_LDC_SETS = {
    "LDC2002E18": "Xinhua parallel news",
    "LDC2003E07": "Chinese Treebank, English translation",
    "LDC2003E14": "FBIS multilanguage texts",
    "LDC2004T07": "Hansards",
    "LDC2004T08": "Hong Kong parallel text",
    "LDC2005T06": "Chinese news translation",
}
_NIST_SETS = {
    "mt02": ("LDC2010T10", 878),
    "mt03": ("LDC2010T11", 919),
    "mt04": ("LDC2010T12", 1788),
    "mt05": ("LDC2010T14", 1082),
    "mt06": ("LDC2010T17", 1664),
    "mt08": ("LDC2010T21", 1357),
    "mt12": ("LDC2013T03", 0),
}


def _ldc(number: str, title: str) -> Download:
    return Download(f"{number} ({title})", f"https://catalog.ldc.upenn.edu/{number}", "a licence of the LDC")


def _nist(name: str) -> Part:
    number, segments = _NIST_SETS[name]
    files = ((f"{name}-src.zh.sgm", f"{name}.zh.sgm"), (f"{name}-ref.en.sgm", f"{name}.en.sgm"))
    return Part(files, _ldc(number, f"OpenMT 20{name[2:]}"), segments)


_ZH_EN = Corpus(
    name="nist-zh-en",
    title="NIST Chinese to English",
    papers=(_DPN, _MEMD),
    fields=("zh", "en"),
    languages=("zh", "en"),
    splits=(
        Split(
            "train",
            tuple(
                Part(_files(f"{number}.{{}}", ("zh", "en")), _ldc(number, title)) for number, title in _LDC_SETS.items()
            ),
            (1_245_000, 1_254_999),
        ),
        Split("valid", (_nist("mt03"),), (919, 919)),
        Split("test", tuple(_nist(name) for name in ("mt04", "mt05", "mt06", "mt08", "mt12"))),
        *(
            Split(name, (_nist(name),), (segments, segments) if segments else None)
            for name, (_, segments) in _NIST_SETS.items()
        ),
    ),
    licence="LDC user agreement; not to be passed on",
    attribution="Linguistic Data Consortium; NIST Open Machine Translation evaluations",
    form=TextForm(tokens="moses", lowercase=True),
    notes=(
        "LDC's training collections come in several formats, some not aligned by sentence: align them first, and"
        " name them LDC2002E18.zh, LDC2002E18.en and so on, UTF-8, a sentence a line (of LDC2004T07 the Hansards).",
        "Name the evaluation sets mt02-src.zh.sgm and mt02-ref.en.sgm and so on; a reference file holds all"
        " translators. The first becomes mt02.en, the others mt02.en.1, mt02.en.2 and mt02.en.3.",
        "`valid` is MT03 and `test` MT04, 05, 06, 08 and 12 together, as DPN-S2S has them; every set is also written"
        ' alone. ME-MD validates on MT02 (`valid_split = "mt02"`) and tests on MT03 to MT06.',
        "Chinese is segmented into words by jieba, English is Moses-tokenised, both lowercased: the papers do not say"
        " how, but count words and report case-insensitive BLEU. They count 27.9M Chinese and 34.5M English words.",
    ),
)

# --- summarization --------------------------------------------------------------------------------------------------

_SUMDATA = Download(
    "Gigaword headlines as Rush et al. prepared them (summary.tar.gz, folder sumdata)",
    "https://github.com/harvardnlp/sent-summary",
    "a licence of the LDC for Annotated Gigaword (LDC2012T21)",
)
_DUC = Download(
    "DUC-2004 task 1, in the same distribution", "https://duc.nist.gov/data.html", "NIST's agreement for DUC data"
)

_GIGAWORD = Corpus(
    name="gigaword",
    title="Gigaword headlines, with DUC-2004",
    papers=(_CONVS2S, _DPN),
    fields=("article", "title"),
    languages=("en", "en"),
    splits=(
        Split(
            "train",
            (Part((("train.article.txt",), ("train.title.txt",)), _SUMDATA, 3_803_957),),
            (3_750_000, 3_849_999),
        ),
        Split(
            "valid",
            (Part((("valid.article.filter.txt",), ("valid.title.filter.txt",)), _SUMDATA, 189_651),),
            (185_000, 194_999),
        ),
        Split(
            "test",
            (Part((("Giga/input.txt",), ("Giga/task1_ref0.txt",)), _SUMDATA, 1951),),
            (1951, 2000),
        ),
        Split(
            "duc2004",
            (Part((("DUC2004/input.txt",), *((f"DUC2004/task1_ref{number}.txt",) for number in range(4))), _DUC, 500),),
            (500, 500),
            optional=True,
        ),
    ),
    licence="LDC user agreement (Gigaword), NIST agreement (DUC); not to be passed on",
    attribution="English Gigaword (Graff et al. 2003), prepared by Rush et al. 2015; DUC-2004 (Over et al. 2007)",
    form=TextForm(headline=True),
    notes=(
        'The test set that is called "2,000 pairs" has 1,951 in the distribution.',
        "duc2004.title is the first reference, duc2004.title.1, .2 and .3 are the others. DUC scores are ROUGE recall"
        " of the first 75 bytes.",
    ),
)

# --- multi-source ---------------------------------------------------------------------------------------------------

_MULTI30K = Download("Multi30k task 1, data/task1/raw", "https://github.com/multi30k/dataset")
_CAPTIONS = ("de", "fr", "cs", "en")


def _captions(name: str, segments: int, download: Download = _MULTI30K) -> Part:
    return Part(_files(f"{name}.{{}}", _CAPTIONS), download, segments)


_MULTI30K_CORPUS = Corpus(
    name="multi30k",
    title="Multi30k image captions: German, French, Czech, English",
    papers=(_MULTISOURCE,),
    fields=_CAPTIONS,
    languages=_CAPTIONS,
    splits=(
        Split("train", (_captions("train", 29_000),), (29_000, 29_000)),
        Split("valid", (_captions("val", 1014),), (1014, 1014)),
        Split("test_2016_flickr", (_captions("test_2016_flickr", 1000),), (1000, 1000)),
    ),
    licence="research and education only (Flickr30k's terms)",
    attribution="Multi30k (Elliott et al. 2016; Elliott et al. 2017; Barrault et al. 2018)",
    features=FeatureSet(
        name="vgg16",
        grid=(14, 14),
        width=512,
        splits=(("train", "train"), ("valid", "val"), ("test_2016_flickr", "test_2016_flickr")),
        pool="flickr30k",
        index="image_splits",
    ),
    suffix=".xz",
    notes=(
        'Raw captions, neither tokenised nor lowercased. A recipe\'s `test_split` is "test_2016_flickr".',
        "Image features are optional: a matrix for each split, train.vgg16.npy, val.vgg16.npy and"
        " test_2016_flickr.vgg16.npy, rows in the order of the captions; or flickr30k.vgg16.npy over all images with"
        " their file names in flickr30k.vgg16.txt, from which the lists in image_splits/ choose.",
        "A row is what VGG-16, pre-trained on ImageNet, gives after the ReLU of its last convolution, before the last"
        " pooling, for the image scaled to 224 x 224: 196 regions (14 x 14, row by row) of 512 numbers, float16 or"
        " float32. In torchvision that is `vgg16(weights=VGG16_Weights.IMAGENET1K_V1).features[:30]`. Matrices of"
        " N x 196 x 512, N x 14 x 14 x 512 and N x 512 x 14 x 14 are taken and written as N x 196 x 512.",
        "The images themselves (Flickr30k) are on request: https://shannon.cs.illinois.edu/DenotationGraph/",
    ),
)

_APE16 = Download("WMT16 post-editing task, English-German (QT21)", "https://www.statmt.org/wmt16/ape-task.html")
_APE17 = Download("WMT17 post-editing task, English-German (QT21)", "https://www.statmt.org/wmt17/ape-task.html")
_TRIPLET = ("src", "mt", "pe")

_APE = Corpus(
    name="wmt-ape-en-de",
    title="WMT16 post-editing, English source, German translation and post-edit",
    papers=(_MULTISOURCE,),
    fields=_TRIPLET,
    languages=("en", "de", "de"),
    splits=(
        Split("train", (Part(_files("train.{}", _TRIPLET), _APE16, 12_000),), (12_000, 12_000)),
        Split("valid", (Part(_files("dev.{}", _TRIPLET), _APE16, 1000),), (1000, 1000)),
        Split("test", (Part(_files("test.{}", _TRIPLET), _APE16, 2000),), (2000, 2000)),
        Split(
            "train_2017",
            (Part(_files("train.2017.{}", _TRIPLET, "en-de.train.{}"), _APE17, 11_000),),
            (11_000, 11_000),
            optional=True,
        ),
        Split(
            "test_2017",
            (Part(_files("test.2017.{}", _TRIPLET, "en-de.{}.test.2017"), _APE17, 2000),),
            (2000, 2000),
            optional=True,
        ),
    ),
    licence="QT21's agreement for the post-editing task: research only",
    attribution="WMT16 and WMT17 post-editing tasks, data of the EU project QT21 (Turchi et al.)",
    suffix=".xz",
    notes=(
        "The text is distributed tokenised and cased, and is left so. The paper prints 2,000 validation and 1,000 test"
        " triplets; the distribution has them the other way round.",
        "WMT17's 11,000 further triplets are optional and become train_2017: a second entry of the recipe with"
        ' `source = ["wmt-ape-en-de/{split}_2017.src.xz", ...]` and `splits = ["train"]` adds them.',
    ),
)

# --- all ------------------------------------------------------------------------------------------------------------

CORPORA: tuple[Corpus, ...] = (
    _german_ted(
        "iwslt14-de-en",
        "IWSLT14 German to English, 160K pairs",
        _DPN,
        (159_500, 160_499),
        175,
        "Cleaned (1 to 175 words, length ratio 1.5) and lowercased as the preparation script that the paper names"
        " does; dictionaries of 8,848 and 6,632 types are those of the lowercased text.",
        "The 6,750 test sentences include TEDX.dev2012; test_ted is the four TED sets alone.",
    ),
    _german_ted(
        "iwslt14-de-en-153k",
        "IWSLT14 German to English, 153K pairs, lowercased",
        _LAYERWISE,
        (152_500, 153_499),
        50,
        "Cleaned to 1 to 50 words and length ratio 1.5: the 153K pairs of the work that the paper follows.",
        "That work's 6,750 test sentences include TEDX.dev2012; test_ted is the four TED sets alone, as the paper"
        " prints them.",
    ),
    _cased_ted("ro", "Romanian", (181_500, 182_499)),
    _cased_ted("es", "Spanish", (180_500, 181_499)),
    _EN_DE,
    _EN_FR,
    _EN_RO,
    _ZH_EN,
    _GIGAWORD,
    _MULTI30K_CORPUS,
    _APE,
)


def find_corpus(name: str) -> Corpus:
    """The corpus of that name.

    Raises:
        ConfigError: there is none; the message lists the names.
    """
    for corpus in CORPORA:
        if corpus.name == name:
            return corpus
    raise ConfigError(f"no corpus is called {name!r}; known are {', '.join(corpus.name for corpus in CORPORA)}")
