"""Units: a text becomes its layout and its sentences, and each sentence jobs.

A unit is decoded as a whole: with a placeholder for each part that is hidden, which the search writes exactly as often
as it was read, or, where the model knows no placeholders, with a code, which it copies like a name. Then the parts are
looked for in what was written. Where a code or a term is missing, it is put where the words stand that were written for
it; where that is not known, the pieces between the parts are translated each by itself, and the parts stand between
them again: worse as a translation, but complete.

Where a pair goes through a third language, each job's best hypothesis is a job once more, with the same placeholders,
and what was missing is looked for in what comes of that.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import islice, zip_longest

from tandem.models.search import Hypothesis
from tandem.models.text import normalise
from tandem.service.bundles.aligning import Alignment, word_aligner
from tandem.service.bundles.served import Tokeniser
from tandem.service.engine import Decoded, Job
from tandem.service.errors import InvalidOption
from tandem.service.text.blocks import MarkupDocument, markup_reader
from tandem.service.text.foreign import find_foreign
from tandem.service.text.languages import base_code
from tandem.service.text.layout import Document, is_translatable
from tandem.service.text.loops import cut_loops
from tandem.service.text.masking import Hidden, HiddenPlace, Masked
from tandem.service.text.parallel import ParallelDocument
from tandem.service.text.placeholders import cased, choose_placeholders, divides, set_apart
from tandem.service.text.spans import Span
from tandem.service.text.splitting import Measure, split_long
from tandem.service.translation.candidates import (
    Candidate,
    Copied,
    Known,
    candidates_in_parts,
    candidates_of_whole,
    joined,
)
from tandem.service.translation.masker import Masker
from tandem.service.translation.plans import Plan
from tandem.service.translation.stages import StagedSentence, finished, prepared, program_strings

_MOST_MENDED = 2  # further attempts at a sentence that is at fault


@dataclass(frozen=True, slots=True)
class Attempt:
    """A way to translate a unit: some jobs, and what is made of their results.

    Attributes:
        read: what each job reads, per source.
        names: of a unit read as a whole, the placeholder of each hidden part; empty for those that are read as they
            are.
        pieces: of a unit in pieces, in order text that stays, the numbers of what was read, and hidden parts; None =
            as a whole.
        copied: of a unit read as a whole the parts for which attention finds a place; None = no part needs one.
        cuts: of each that was read, how many jobs in a row it is: more than one where it was too long for the model.
        before: how it got into the language that its jobs read; None = they read the text itself.
        known: the translations, best first, where there is nothing to decode.
        known_from: what has them.
    """

    jobs: tuple[Job, ...]
    read: tuple[tuple[str, ...], ...]
    names: tuple[str, ...] = ()
    pieces: tuple[str | int | Hidden, ...] | None = None
    copied: Copied | None = None
    cuts: tuple[int, ...] = ()
    before: FirstHop | None = None
    known: tuple[str, ...] = ()
    known_from: Known | None = None

    def candidates(self, plan: Plan, masked: Masked, decoded: Sequence[Decoded]) -> list[Candidate]:
        """What the results of the jobs say, best first, at least one; ``masked``: of the unit."""
        model = plan.writer
        if self.known_from is not None:
            kept = (True,) * len(masked.hidden)  # as whoever corrected it wants them
            return [Candidate(text, None, kept, known_from=self.known_from) for text in self.known]
        if self.cuts:
            remaining = iter(decoded)
            decoded = [joined([*islice(remaining, cut)]) for cut in self.cuts]
        if self.pieces is not None:
            found = candidates_in_parts(model, masked, self.pieces, self.read, decoded, plan.ended_like)
        else:
            found = candidates_of_whole(model, masked, self.names, self.read[0], self.longest, decoded[0], self.copied)
        if self.before is None:
            return found
        whole, looped, best = self.before.complete, self.before.repetition, self.before.best
        return [
            replace(one, complete=one.complete and whole, repetition=one.repetition or looped, before=best)
            for one in found
        ]

    @property
    def covered(self) -> Set[int]:
        """Numbers of the hidden parts that placeholders stand for."""
        return {number for number, name in enumerate(self.names) if name}

    @property
    def longest(self) -> int:
        """Tokens at which the hypotheses of all jobs together are cut."""
        return sum(job.longest for job in self.jobs)

    @property
    def first_jobs(self) -> tuple[Job, ...]:
        """Those that read the text itself."""
        return self.jobs if self.before is None else self.before.attempt.jobs

    def onward(self, plan: Plan, decoded: Sequence[Decoded], *, first: bool, attention: bool) -> Attempt:
        """The same once more, from the language between: the best hypotheses are what is read now.

        Args:
            plan: for what was read before.
            decoded: the results of the jobs.
            first, attention: the unit's.
        """
        following = plan.onward
        assert following is not None
        best = [one.hypotheses[0] for one in decoded]
        cut = [
            cut_loops(plan.model.decode(hypothesis, read), *read)
            for hypothesis, read in zip(best, self.read, strict=True)
        ]
        # What hidden parts have taken from it, if there are any, is looked for later.
        complete = not any(self.names) or len(best[0].tokens) < self.longest
        before = FirstHop(self, best, complete, repetition=any(looped for _, looped in cut))
        texts, between = [text for text, _ in cut], None
        if self.pieces is None:
            between = self._between(plan, texts[0], best[0])
            texts = [between.source]
        pieces = (0,) if self.pieces is None and not self.names and not is_translatable(texts[0]) else self.pieces
        if pieces is not None:  # what has no words is not translated, as in the text itself
            numbers = [number for number, text in enumerate(texts) if is_translatable(text)]
            worded = {number: place for place, number in enumerate(numbers)}
            pieces = tuple(worded.get(one, texts[one]) if isinstance(one, int) else one for one in pieces)
            texts = [texts[number] for number in numbers]
        names = [*filter(None, dict.fromkeys(self.names))] if plan.learnt else []
        encode = cache(lambda piece: following.model.encode((piece,), names))
        jobs, cuts = list[Job](), list[int]()
        attention = attention or bool(between and between.hidden)
        for text in texts:
            parts = split_long(text, following.model.limit, lambda piece: len(encode(piece)[0]) - 1)
            cuts.append(len(parts))
            for piece in parts:
                reserved = [name for name in names for _ in range(piece.count(name))]
                begins = first and not jobs
                jobs.append(following.job(encode(piece), first=begins, reserved=reserved, attention=attention))
        read = tuple((text,) for text in texts)
        copied = Copied(between, jobs[0].sources) if between and between.hidden and len(jobs) == 1 else None
        return Attempt(tuple(jobs), read, self.names, pieces, copied, tuple(cuts), before)

    def _between(self, plan: Plan, text: str, best: Hypothesis) -> Masked:
        """What was written in the language between, with what the next model is to leave as it is hidden in it: the
        parts of the text, and words that it can hardly read."""
        following = plan.onward
        assert following is not None
        if self.copied is None:
            between = Masked.of(text)
            names = [name for name in dict.fromkeys(self.names) if name]
            between = between.hide(_places_of(names, text))
        else:
            between = self.copied.in_translation(plan.model, text, best, onward=True)
            between = between if between.hidden else Masked.of(text)
        foreign = find_foreign(between, following.model.alphabet, rare=True)
        return between.hide(foreign) if foreign or self.copied is not None else Masked(text)


@dataclass(frozen=True, slots=True)
class FirstHop:
    """What was tried on the way to a language between, and what came of it.

    Attributes:
        attempt: there.
        best: of its jobs, the hypotheses that were taken.
        complete: whether they ended by themselves, as far as hidden parts depend on it.
        repetition: whether a loop was cut out of one.
    """

    attempt: Attempt
    best: Sequence[Hypothesis]
    complete: bool
    repetition: bool


@dataclass(slots=True, eq=False)
class Unit:
    """A sentence of a text on its way.

    Attributes:
        texts: per source of the model, as it is read if nothing of it is hidden.
        masked: the leading source's, with what is hidden in it.
        sent: the same as it was sent, with what the request hides in it.
        number: its place in the text, or in the block of one in markup, from 0.
        attention: whether hypotheses are to carry theirs, where they can.
        attempt: how it was tried last.
        candidates: its translations, best first; empty until they are there.
        decoded: the results that they come from, one per job.
        mended: the attempts of which the best translation was at fault, each with what was hidden then.
        again: whether its attempt is another one than the first.
    """

    texts: tuple[str, ...]
    masked: Masked
    sent: Masked
    number: int
    attention: bool
    attempt: Attempt
    candidates: list[Candidate] = field(default_factory=list)
    decoded: Sequence[Decoded] = ()
    mended: list[tuple[Attempt, list[Candidate], Sequence[Decoded], Masked]] = field(default_factory=list)
    again: bool = False

    @classmethod
    def of(
        cls,
        plan: Plan,
        tokens: Tokeniser,
        masked: Masked,
        texts: tuple[str, ...],
        sent: Masked,
        *,
        number: int,
        attention: bool,
    ) -> Unit:
        """A unit, and how it is tried first: terms are read as they are, as many translations have the target term."""
        hidden = masked.hidden
        unit = cls(texts, masked, sent, number, attention, Attempt((), ()))
        if hidden and not is_translatable(masked.text):  # nothing but hidden parts, and what is no word
            text = masked.fill([cased(part, masked, place == 0) for place, part in enumerate(hidden)])
            unit.attempt = Attempt((), (), pieces=(text,))
        elif len(texts) > 1 or not hidden:
            ids = tuple(tokens.ids(text, source) for source, text in enumerate(texts))
            job = plan.job(ids, first=unit.first, attention=attention)
            unit.attempt = Attempt((job,), (texts,), ("",) * len(hidden))
        else:
            unit.attempt = unit._covering(plan, _hidden_first(plan, hidden))
        return unit

    @property
    def sentence(self) -> StagedSentence:
        """As stages see it."""
        return StagedSentence(self.sent, self.masked)

    @property
    def first(self) -> bool:
        """Whether it is its text's first, which carries the prefix."""
        return self.number == 0

    def read(self, plan: Plan, results: Iterator[Decoded]) -> None:
        """Take the results of the attempt's jobs, which go on from a language between, or are its translations."""
        self.decoded, self.candidates = [next(results) for _ in self.attempt.jobs], []
        if self.decoded and not self.is_last(plan):
            self.attempt = self.attempt.onward(plan, self.decoded, first=self.first, attention=self.attention)
            self.decoded = []
        if self.attempt.jobs and not self.decoded:
            return
        self.candidates = self.candidates_of(plan, self.attempt, self.decoded)

    def candidates_of(self, plan: Plan, attempt: Attempt, decoded: Sequence[Decoded]) -> list[Candidate]:
        """What the results of an attempt's jobs say, best first, as it is written."""
        found = attempt.candidates(plan, self.masked, decoded)
        if attempt.known_from or len(self.texts) > 1:
            return found
        return sorted((self._checked(plan, one) for one in found), key=lambda one: (not one.complete, bool(one.faults)))

    def _checked(self, plan: Plan, one: Candidate) -> Candidate:
        """A candidate as it is written: after all stages, and with what is at fault in it."""
        written, language = finished(plan.stages, one.text, self.sentence), base_code(plan.writer.target)
        begins = not (self.first and plan.request.prefix)
        text, faults = plan.fidelity.check(written, self.sentence, language, plan.rare, begins=begins)
        return replace(one, text=text, faults=faults)

    def work(self, plan: Plan) -> list[tuple[Plan, Job]]:
        """The jobs of its attempt, each with how it is decoded."""
        hop = plan if self.attempt.before is None else plan.onward
        assert hop is not None
        return [(hop, job) for job in self.attempt.jobs]

    def is_last(self, plan: Plan) -> bool:
        """Whether what its attempt's jobs write is the answer."""
        return plan.onward is None or self.attempt.before is not None

    def goes_on(self, plan: Plan) -> bool:
        """Whether there is more to decode: from a language between, or where something is missing.

        Then first the missing terms become placeholders, then all, then there are only parts. There is no other way
        where the parts have been tried, or the model reads several texts at once.
        """
        if not self.candidates:
            return True
        self.again = True
        best = self.candidates[0]
        if len(self.texts) > 1:
            return False
        if best.complete or self.attempt.pieces is not None or self.mended:
            return self._mends(plan)
        hidden, covered = self.masked.hidden, self.attempt.covered
        every = {*range(len(hidden))}
        missing = {one for one, there in zip(hidden, best.kept, strict=True) if not there}
        wanted = covered | {number for number in every if hidden[number] in missing}
        if wanted == covered or any(hidden[number].read_first for number in covered):
            wanted = every
        if not plan.learnt:  # read as they are, and put where attention says; then in parts
            in_parts, wanted = not covered, set()
        else:
            in_parts = wanted == covered
        self.attempt = self._in_parts(plan) if in_parts else self._covering(plan, wanted)
        return True

    def _mends(self, plan: Plan) -> bool:
        """Whether there is another attempt, since the best translation is at fault: with what is lost hidden too, then
        in pieces. Of all attempts the one with the fewest faults stays."""
        if not self.attempt.jobs:
            return False
        faults = self.candidates[0].faults
        self.mended.append((self.attempt, self.candidates, self.decoded, self.masked))
        if faults and len(self.mended) <= _MOST_MENDED and self._hides_more(plan, self.candidates[0]):
            return True
        self.attempt, self.candidates, self.decoded, self.masked = min(self.mended, key=_faults)
        return False

    def _hides_more(self, plan: Plan, best: Candidate) -> bool:
        before, attempt = self.masked, self.attempt
        more = plan.fidelity.to_hide(before, best.text, best.faults, plan.rare, base_code(plan.writer.target))
        if more:
            self.masked = before.hide(more)
        every = {*range(len(self.masked.hidden))}
        if plan.placeholders and (more or not every <= attempt.covered) and attempt.pieces is None:
            self.attempt = self._covering(plan, every)
        elif every and (more or attempt.pieces is None) and {*best.faults} != {"brackets"}:
            self.attempt = self._in_parts(plan)
        else:
            return False
        return bool(self.attempt.jobs)

    def take(self, translations: Sequence[str], known_from: Known) -> None:
        """Take what is known of it, if anything, as its translations, best first."""
        if translations:
            self.attempt = Attempt((), (), known=tuple(translations), known_from=known_from)

    def align(self, plan: Plan, written: str, hypothesis: Hypothesis) -> Sequence[Alignment]:
        """Per source what its tokens and words align with in a translation, whose hypothesis has its attention."""
        aligner, attempt = word_aligner(), self.attempt
        assert aligner is not None, "or else no hypothesis has its attention"
        before, (job,) = attempt.before, attempt.jobs
        texts = self.texts if len(self.texts) > 1 else (self.sent.source,)
        named = [(name, part) for name, part in zip(attempt.names, self.masked.hidden, strict=False) if name]
        sources, targets = {name: part.source for name, part in named}, {name: part.target for name, part in named}
        if before is None:
            return aligner.align(plan.model, texts, written, hypothesis, job.sources, (sources, targets))
        (read,) = attempt.read
        (first,) = aligner.align(
            plan.model, texts, read[0], before.best[0], before.attempt.jobs[0].sources, (sources, {})
        )
        (last,) = aligner.align(plan.writer, read, written, hypothesis, job.sources, ({}, targets))
        return (aligner.onward(first, last),)

    def _covering(self, plan: Plan, covered: Set[int]) -> Attempt:
        """As a whole, some hidden parts placeholders; in pieces where those are too few, or it gets too long."""
        model, hidden = plan.model, self.masked.hidden
        names = choose_placeholders(plan.placeholders, self.masked, covered)
        if names is None:
            return self._in_parts(plan)
        shown = [name or part.source for name, part in zip(names, hidden, strict=True)]
        dividing = [name * (not plan.learnt or divides(part.source)) for name, part in zip(names, hidden, strict=True)]
        shown = set_apart(self.masked, shown, dividing)
        read = self.masked.fill(shown)
        used = [name for name in names if name]
        ids = model.encode((read,), frozenset(used) if plan.learnt else ())
        if len(ids[0]) - 1 > model.limit:
            return self._in_parts(plan)
        placed = bool(hidden) and not plan.learnt
        job = plan.job(ids, first=self.first, reserved=used, attention=self.attention or placed)
        copied = None
        if placed:
            parts = zip(hidden, names, shown, strict=True)
            as_read = tuple(Hidden(text, name, asked=False) if name else part for part, name, text in parts)
            copied = Copied(replace(self.masked, hidden=as_read), ids)
        return Attempt((job,), ((read,),), names, copied=copied)

    def _in_parts(self, plan: Plan) -> Attempt:
        """The pieces between its hidden parts."""
        pieces: list[str | int | Hidden] = []
        cores: list[str] = []
        for text, hidden in zip_longest(self.masked.text.split(self.masked.mark), self.masked.hidden):
            core = text.lstrip(string.punctuation + string.whitespace).rstrip()
            if is_translatable(core):
                before, _, after = text.partition(core)
                pieces += [before, len(cores), after]
                cores.append(core)
            else:
                pieces.append(text)
            pieces += [hidden] if hidden else []
        jobs = tuple(
            plan.job(plan.model.encode((core,)), first=self.first and number == 0) for number, core in enumerate(cores)
        )
        return Attempt(jobs, tuple((core,) for core in cores), (), tuple(pieces))


def _hidden_first(plan: Plan, hidden: Sequence[Hidden]) -> Set[int]:
    """Numbers of the parts that no model reads at first: all but those read first, and without learnt placeholders all
    but terms, whose translation says where they belong."""
    return {
        number
        for number, part in enumerate(hidden)
        if plan.placeholders and not (part.read_first and (plan.learnt or part.asked))
    }


def _places_of(names: Sequence[str], text: str) -> list[HiddenPlace]:
    """Where placeholders stand in a text."""
    found = re.finditer("|".join(map(re.escape, names)), text) if names else ()
    return [(Span(*match.span()), Hidden.kept(match[0], asked=False)) for match in found]


def _faults(attempted: tuple[Attempt, list[Candidate], Sequence[Decoded], Masked]) -> tuple[bool, int]:
    _, (best, *_), _, _ = attempted
    return not best.complete, len(best.faults)


@dataclass(frozen=True, slots=True, eq=False)
class SegmentedText:
    """A text, or a block of one in markup: its layout and its units.

    Attributes:
        text: of the leading source, as it was sent.
        document: layout and sentences.
        units: one per sentence of the document.
        attention: whether its hypotheses carry theirs, where they can.
    """

    text: str
    document: Document
    units: list[Unit]
    attention: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ParsedText:
    """One text of a request on its way.

    Attributes:
        number: which of them it is.
        segments: the text itself alone; of markup its blocks.
        markup: around the blocks; None = the text is plain.
    """

    number: int
    plan: Plan
    segments: tuple[SegmentedText, ...]
    markup: MarkupDocument | None = None

    @property
    def units(self) -> list[Unit]:
        """Those of all segments, in order."""
        return [unit for segment in self.segments for unit in segment.units]

    @property
    def decoded(self) -> list[Unit]:
        """Those that a model translated: not those from a memory, nor of nothing but hidden parts."""
        return [unit for unit in self.units if unit.attempt.first_jobs]

    @property
    def via(self) -> str | None:
        """The language that any of it went through; None = none."""
        return self.plan.route.via if self.decoded else None


def parse_text(plan: Plan, number: int, masker: Masker, tokens: Tokeniser, markup: MarkupDocument | None) -> ParsedText:
    """One text of a request in units; of markup each block by itself, with attention where it has inline markup.

    A text alone is split wherever its model's limit asks for it, or where more is hidden in a sentence than there are
    placeholders; texts in several sources only where all of them split alike, since nobody knows which part of one
    belongs to which part of another.

    Raises:
        InvalidOption: a text has words in some sources only, or is too long for the model and cannot be split.
    """
    reader = markup_reader()
    if markup is None and reader is not None and len(plan.columns) == 1:
        text = plan.columns[0][number]
        protected = [*(span for span, _ in masker.protector.find(text)), *program_strings().code(text)]
        markup = reader.parse_plain(text, protected)
    if markup is not None:
        segments = tuple(
            _parse_alone(plan, block.text, masker.mask(block.text, block.kept), tokens, attention=block.has_markup)
            for block in markup.blocks
        )
    elif len(plan.columns) > 1:
        segments = (_parse_several(plan, number, masker, tokens),)
    else:
        text = plan.columns[0][number]
        segments = (_parse_alone(plan, text, masker.mask(text), tokens, attention=False),)
    return ParsedText(number, plan, segments, markup)


def _parse_alone(plan: Plan, text: str, masked: Masked, tokens: Tokeniser, *, attention: bool) -> SegmentedText:
    """A text of one source, as it was sent and with what is hidden in it."""
    language, target = plan.route.languages[0], plan.writer.target
    measure = _measure(plan, masked, tokens)
    document = Document.parse(masked.text, language, target, plan.model.limit, measure, plan.context.splitting)
    sentences = [Masked(piece.text) for piece in document.sentences]
    rewritten = cache(partial(_is_rewritten, plan))
    layout = [piece for piece in document.pieces if not piece.translatable and piece.text[-1] not in "\r\n"]
    numbers = {piece.start for piece in layout if rewritten(piece.text)}
    if masked.hidden or numbers:
        pieces = zip(document.pieces, masked.divide(piece.text for piece in document.pieces), strict=True)
        parts = [(own, piece.translatable or _is_filled(own) or piece.start in numbers) for piece, own in pieces]
        document = Document.of([(own.source, translated) for own, translated in parts], language, target)
        sentences = [own for own, translated in parts if translated]
    units = []
    for number, sent in enumerate(sentences):
        own = program_strings().shown(sent, tokens.measure)
        read = _readable(plan, own)
        units.append(Unit.of(plan, tokens, read, (read.source,), own, number=number, attention=attention))
    return SegmentedText(text, document, units, attention)


def _is_filled(layout: Masked) -> bool:
    """Whether layout holds parts that are written; a line of code, which alone has words and its end, comes back."""
    return bool(layout.hidden) and not (is_translatable(layout.text) and layout.text[-1] in "\r\n")


def _is_rewritten(plan: Plan, text: str) -> bool:
    """Whether a stage writes what has no words otherwise, such as an amount alone in a cell."""
    if not any(map(str.isdigit, text)):
        return False
    return any(part.target != part.source for part in prepared(plan.stages, Masked(text)).hidden)


def _readable(plan: Plan, sentence: Masked) -> Masked:
    """A sentence as its model reads it: after all stages, and without what it has no pieces for."""
    done = prepared(plan.stages, sentence.unbroken())
    return done.hide(find_foreign(done, plan.model.alphabet))


def _measure(plan: Plan, masked: Masked, tokens: Tokeniser) -> Measure:
    """Counts tokens so that a sentence in which too much is hidden counts as too long."""
    if not masked.hidden:
        return tokens.measure
    placeholders = len(plan.placeholders)
    longest = 0 if placeholders else max(tokens.measure(part.source) for part in masked.hidden)

    def measure(text: str) -> int:
        hidden, length = text.count(masked.mark), tokens.measure(text)
        if placeholders:
            return max(length, math.ceil(hidden * plan.model.limit / placeholders))
        return length + hidden * longest

    return measure


def _parse_several(plan: Plan, number: int, masker: Masker, tokens: Tokeniser) -> SegmentedText:
    """A text in all sources of its model."""
    route, limit = plan.route, plan.model.limit
    row = tuple(column[number] for column in plan.columns)
    texts = [normalise(text) for text in row]
    wordy = [is_translatable(text) for text in texts]
    if route.complete and any(wordy) and not all(wordy):
        source = wordy.index(False)
        bound = "must have words where the same text in another language has some"
        raise InvalidOption(plan.request.place(number, route.fields[source]), bound, row[source])
    parallel = ParallelDocument.parse(texts, route.languages, route.lead, plan.model.target)
    for sentence in parallel.sentences:
        for source, text in enumerate(sentence):
            length = tokens.measure(text, source)
            if length > limit:
                bound = f"must be at most {limit} tokens long between two places where all of its texts break"
                remedy = "shorten the text, or break lines and sentences at the same places in all of them"
                raise InvalidOption(plan.request.place(number, route.fields[source]), bound, length, remedy)
    units = [
        Unit.of(plan, tokens, lead := masker.mask(sentence[route.lead]), sentence, lead, number=index, attention=False)
        for index, sentence in enumerate(parallel.sentences)
    ]
    return SegmentedText(row[route.lead], parallel.document, units)
