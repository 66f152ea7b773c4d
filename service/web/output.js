// The translation on the page: sentences that can be chosen, and words that show what they come from.

import { announce, byId, icon, make } from "./dom.js";
import { t } from "./strings.js";
import { partnersOf, wordsOf } from "./translation.js";

/** Shows a Translation in the right pane and its words in the left one, behind the text field. */
export class Output {
  #place = byId("output");
  #mirror = byId("mirror");
  #field = byId("source-text");
  #translation = null;
  #parts = []; // per sentence {element, source, targets: Map, sources: Map} of its elements
  #current = null; // {number, side, word} of what is shown as linked
  #frame = 0;
  #unfinished = false;

  /** `onChoose(number, element)`: a sentence was chosen. `needLinks(number)`: its words are wanted and unknown. */
  constructor(onChoose, needLinks) {
    this.#choose(onChoose);
    this.#hover(needLinks);
    this.#walk(onChoose, needLinks);
  }

  get translation() {
    return this.#translation;
  }

  /** Whether what is shown is the beginning of a translation. */
  get unfinished() {
    return this.#unfinished;
  }

  /** The sentence that was last pointed at; the first one where none was. */
  get sentence() {
    return this.#current?.number ?? 0;
  }

  /** Show a translation; null = none. */
  show(translation, language = "") {
    this.#translation = translation;
    this.#unfinished = false;
    this.#current = null;
    this.#place.lang = language;
    this.#place.replaceChildren();
    this.#parts = [];
    if (translation) {
      for (const [number, sentence] of translation.sentences.entries()) {
        const element = this.#sentence(sentence, number);
        this.#parts.push({ element, targets: new Map(), source: null, sources: new Map() });
        this.#place.append(sentence.before, element);
        this.#drawTarget(number);
      }
      this.#place.append(translation.after);
    }
    this.drawSource(translation?.typed ?? this.#field.value);
  }

  /** Show the beginning of a translation that is not finished. */
  draft(text, language) {
    this.show(null, language);
    this.#place.textContent = text;
    this.#unfinished = true;
  }

  /** Draw one sentence anew, after its text or its links changed. */
  redraw(number) {
    this.#drawTarget(number);
    this.drawSource(this.#translation.typed);
    if (this.#current) this.#link(this.#current);
  }

  focus(number) {
    this.#parts[number]?.element.focus();
  }

  /** Draw what stands behind the text field; only what is translated has words in it. */
  drawSource(typed) {
    const shown = this.#translation?.typed === typed ? this.#translation.sentences : [];
    const nodes = [];
    let cursor = 0;
    for (const [number, sentence] of shown.entries()) {
      nodes.push(typed.slice(cursor, sentence.at[0]), this.#sourceSentence(sentence, number));
      cursor = sentence.at[1];
    }
    // The space keeps a last empty line as high as the field shows it; an empty field shows what may be typed.
    this.#mirror.replaceChildren(...nodes, `${typed.slice(cursor) || (typed ? "" : this.#field.placeholder)} `);
    if (!shown.length) this.unlink();
  }

  unlink() {
    this.#current = null;
    for (const root of [this.#place, this.#mirror]) {
      for (const element of root.querySelectorAll(".linked, .pointed, .beside")) {
        element.classList.remove("linked", "pointed", "beside");
      }
    }
  }

  #sentence(sentence, number) {
    return make("span", {
      class: "sentence",
      role: "button",
      tabIndex: number === 0 ? 0 : -1,
      "aria-haspopup": "dialog",
      "data-number": String(number),
    });
  }

  #drawTarget(number) {
    const { text, links, doubtful, weak } = this.#translation.sentences[number];
    const part = this.#parts[number];
    part.targets = drawWords(part.element, text, wordsOf(links, "target", doubtful));
    part.element.setAttribute("aria-describedby", weak ? "weak-help sentence-help" : "sentence-help");
    if (weak) part.element.append(make("span", { class: "weak", title: t("weakSentence"), "aria-hidden": "true" }, icon("warning")));
    for (const span of doubtful) {
      const word = part.targets.get(span.join());
      word?.classList.add("doubtful");
      word?.setAttribute("title", t("doubtfulWord"));
    }
  }

  #sourceSentence(sentence, number) {
    const element = make("span", { class: "sentence", "data-number": String(number) });
    const part = this.#parts[number];
    part.source = element;
    part.sources = drawWords(element, sentence.source, wordsOf(sentence.links, "source"));
    return element;
  }

  /** Show a word and what belongs to it; without a word, only the sentence. */
  #link(wanted) {
    this.unlink();
    this.#current = wanted;
    const { number, side, word } = wanted;
    const part = this.#parts[number];
    if (!part) return [];
    part.element.classList.add("beside");
    part.source?.classList.add("beside");
    if (!word) return [];
    const [own, others] = side === "source" ? [part.sources, part.targets] : [part.targets, part.sources];
    own.get(word)?.classList.add("pointed");
    const { links } = this.#translation.sentences[number];
    const found = partnersOf(links, side, word.split(",").map(Number)).map((one) => others.get(one));
    const partners = found.filter((element) => element);
    for (const element of partners) element.classList.add("linked");
    return partners.map((element) => element.textContent);
  }

  #at(element, side) {
    const sentence = element?.closest?.(".sentence");
    if (!sentence) return null;
    const number = Number(sentence.dataset.number);
    return { number, side, word: element.closest(".word")?.dataset.at ?? null };
  }

  #point(place, needLinks) {
    if (place && this.#translation.sentences[place.number]?.links === null) needLinks(place.number);
    const same = ["number", "side", "word"].every((name) => place?.[name] === this.#current?.[name]);
    if (same) return;
    if (place) this.#link(place);
    else this.unlink();
  }

  #hover(needLinks) {
    this.#place.addEventListener("pointermove", (event) => this.#point(this.#at(event.target, "target"), needLinks));
    this.#field.addEventListener("pointermove", ({ clientX, clientY }) => {
      cancelAnimationFrame(this.#frame);
      this.#frame = requestAnimationFrame(() => {
        // The words lie behind the field, which takes the pointer.
        const under = document.elementsFromPoint(clientX, clientY).filter((one) => this.#mirror.contains(one));
        this.#point(this.#at(under[0], "source"), needLinks);
      });
    });
    for (const element of [this.#place, this.#field]) {
      element.addEventListener("pointerleave", () => {
        cancelAnimationFrame(this.#frame);
        if (!this.#place.contains(document.activeElement)) this.unlink();
      });
    }
    this.#field.addEventListener("keyup", ({ key }) => {
      if (/^(Arrow|Home|End|Page)/.test(key)) this.#atCaret(needLinks);
    });
    this.#field.addEventListener("blur", () => this.unlink());
  }

  /** The word in the text field that the caret stands in. */
  #atCaret(needLinks) {
    const caret = this.#field.selectionStart;
    const shown = this.#translation?.typed === this.#field.value ? this.#translation.sentences : [];
    const number = shown.findIndex(({ at }) => at[0] <= caret && caret <= at[1]);
    if (number < 0) return this.unlink();
    const inside = caret - shown[number].at[0];
    const word = wordsOf(shown[number].links, "source").find(([start, end]) => start <= inside && inside <= end);
    this.#point({ number, side: "source", word: word?.join() ?? null }, needLinks);
  }

  #choose(onChoose) {
    this.#place.addEventListener("click", (event) => {
      const place = this.#at(event.target, "target");
      // Whoever selects text with the pointer wants the text.
      if (place && document.getSelection().isCollapsed) onChoose(place.number, this.#parts[place.number].element);
    });
  }

  /** Arrow keys go from word to word and over sentences; one sentence only is a stop of the Tab key. */
  #walk(onChoose, needLinks) {
    this.#place.addEventListener("focusin", (event) => {
      const place = this.#at(event.target, "target");
      if (!place) return;
      for (const { element } of this.#parts) element.tabIndex = element === event.target ? 0 : -1;
      if (this.#current?.number !== place.number) this.#point({ ...place, word: null }, needLinks);
    });
    this.#place.addEventListener("focusout", () => this.unlink());
    this.#place.addEventListener("keydown", (event) => {
      const place = this.#at(event.target, "target");
      if (!place || event.ctrlKey || event.altKey || event.metaKey) return;
      const forward = getComputedStyle(this.#place).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
      if (event.key === "Enter" || event.key === " ") onChoose(place.number, event.target);
      else if (event.key === "ArrowLeft" || event.key === "ArrowRight") this.#step(event.key === forward ? 1 : -1);
      else if (event.key === "ArrowDown" || event.key === "ArrowUp") this.#go(place.number + (event.key === "ArrowDown" ? 1 : -1), null);
      else return;
      event.preventDefault();
    });
  }

  #step(by) {
    const { number, word } = this.#current ?? { number: 0, word: null };
    const words = [...this.#parts[number].targets.keys()];
    const index = word === null || !words.includes(word) ? (by > 0 ? 0 : words.length - 1) : words.indexOf(word) + by;
    if (words[index] !== undefined) return this.#go(number, words[index]);
    const next = [...(this.#parts[number + by]?.targets.keys() ?? [])];
    this.#go(number + by, (by > 0 ? next[0] : next.at(-1)) ?? null);
  }

  #go(number, word) {
    const part = this.#parts[number];
    if (!part) return;
    const origins = this.#link({ number, side: "target", word });
    part.element.focus();
    this.#link({ number, side: "target", word });
    if (word === null) return;
    const shown = part.targets.get(word);
    const places = { word: shown.textContent, origin: origins.join(" ") };
    announce([t(origins.length ? "wordFrom" : "wordAlone", places), shown.title].filter(Boolean).join(". "));
  }
}

/** Fill an element with a text whose words are elements; returns them by their place. */
function drawWords(element, text, words) {
  const drawn = new Map();
  const nodes = [];
  let cursor = 0;
  for (const [start, end] of words) {
    const word = make("span", { class: "word", "data-at": `${start},${end}` }, text.slice(start, end));
    drawn.set(`${start},${end}`, word);
    nodes.push(text.slice(cursor, start), word);
    cursor = end;
  }
  element.replaceChildren(...nodes, text.slice(cursor));
  return drawn;
}
