// A translation as the page holds it: sentences with the layout between them, so that one can be reworded alone.

import { offsetsOf } from "./dom.js";

const WEAK = 0.5; // confidence below which a sentence is marked
const DOUBTFUL = 1 / 3; // confidence below which a word is worth checking: two of three are not what a person wrote

/**
 * @typedef {object} Sentence
 * @property {string} source what was translated
 * @property {string} text its translation
 * @property {string} before the layout that stands before it
 * @property {[number, number]} at where the source stands, in UTF-16 units of what was typed
 * @property {Link[]|null} links words that belong together; null = not asked for yet
 * @property {object|null} tokens {source, target, weights} of the attention
 * @property {[number, number][]} doubtful words worth checking, in UTF-16 units of the translation
 * @property {boolean} weak whether the model was not sure of the sentence as a whole
 * @property {string[]|null} wordings the other translations, once they were asked for
 * @property {boolean} reworded whether the text is no longer the model's: chosen, or of the user's own corrections
 */

/**
 * @typedef {object} Link
 * @property {[number, number]} source in UTF-16 units of the sentence's source
 * @property {[number, number]} target in UTF-16 units of its translation
 */

export class Translation {
  /** Made from the text that was sent and its reply; see `offsetsOf` for why both are needed. */
  constructor(typed, reply) {
    this.typed = typed;
    this.time = reply.time?.total ?? null;
    this.sentences = [];
    const written = reply.translatedText;
    const places = offsetsOf(typed);
    const ends = offsetsOf(written);
    let cursor = 0;
    for (const detail of places && ends ? (reply.details?.[0]?.sentences ?? []) : []) {
      const at = [places[detail.source.start], places[detail.source.end]];
      const [start, end] = [ends[detail.target.start], ends[detail.target.end]];
      if (at.includes(undefined) || start < cursor || !(end >= start)) continue;
      this.sentences.push({
        source: typed.slice(...at),
        text: written.slice(start, end),
        before: written.slice(cursor, start),
        at,
        links: linksOf(detail.alignment, places, ends, at[0], start),
        tokens: detail.alignment?.tokens ?? null,
        doubtful: doubtfulOf(detail.words, ends, start),
        weak: detail.confidence < WEAK,
        wordings: null,
        reworded: detail.match === 100,
        repetition: detail.repetition === true,
      });
      cursor = end;
    }
    this.after = written.slice(cursor);
  }

  get text() {
    return this.sentences.map(({ before, text }) => before + text).join("") + this.after;
  }
}

function doubtfulOf(words, ends, targetStart) {
  const found = (words ?? []).filter(({ confidence }) => confidence < DOUBTFUL);
  return found.map(({ start, end }) => [ends[start] - targetStart, ends[end] - targetStart]);
}

/** The words of a reply for one sentence; null where the reply has none. */
function linksOf(alignment, places, ends, sourceStart, targetStart) {
  if (!alignment?.words) return null;
  return alignment.words.map(({ source, target }) => ({
    source: [places[source.start] - sourceStart, places[source.end] - sourceStart],
    target: [ends[target.start] - targetStart, ends[target.end] - targetStart],
  }));
}

/** The spans that occur in links on one side, and further ones, in order, none overlapping the one before. */
export function wordsOf(links, side, further = []) {
  const spans = [...(links ?? []).map((link) => link[side]), ...further];
  const unique = new Map(spans.map((span) => [span.join(), span]));
  const words = [...unique.values()].sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  let cursor = 0;
  return words.filter(([start, end]) => {
    const fits = start >= cursor && end > start;
    if (fits) cursor = end;
    return fits;
  });
}

/** The words on the other side that belong to a word. */
export function partnersOf(links, side, word) {
  const other = side === "source" ? "target" : "source";
  return (links ?? []).filter((link) => link[side].join() === word.join()).map((link) => link[other].join());
}

/** What is there of a translation while the rest is still on its way: the text up to the first missing sentence. */
export class Draft {
  #typed;
  #places;
  #parts = [];

  constructor(typed) {
    this.#typed = typed;
    this.#places = offsetsOf(typed);
  }

  /** Take in a finished sentence, whatever its place; returns the text so far, with the layout of what was typed. */
  add({ sentence, source, translation }) {
    this.#parts[sentence] = { source, translation };
    let text = "";
    let cursor = 0;
    for (const part of this.#parts) {
      if (!part) break;
      const [start, end] = [part.source.start, part.source.end].map((place) => this.#places?.[place] ?? cursor);
      text += this.#typed.slice(cursor, start) + part.translation;
      cursor = end;
    }
    return text;
  }
}
