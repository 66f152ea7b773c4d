// The translate tab: what is typed is translated after a short pause, the newest text only.

import { postForEvents, postJson, superseded } from "./api.js";
import { Alternatives } from "./alternatives.js";
import { announce, byId, copyText, countCharacters, debounced } from "./dom.js";
import { HeatMap } from "./heatmap.js";
import { notesOf } from "./notes.js";
import { LanguageOffer } from "./offer.js";
import { Output } from "./output.js";
import { Problem } from "./problems.js";
import { EXAMPLES, oneOf, t } from "./strings.js";
import { Draft, Translation } from "./translation.js";

const PAUSE = 400; // milliseconds without a key before a text is sent
const ALIGNED_AT_ONCE = 2000; // characters up to which all words are aligned at once; else sentence by sentence
const STREAMED_FROM = 600; // characters from which on finished sentences are shown before the rest is there
const MAX_PREFIX = 1000; // characters, of the field `prefix`
const READ_OUT = 300; // characters of a translation that are read out
const MOST_NAMED = 5; // languages that the empty field names

export class TranslateTab {
  #field = byId("source-text");
  #languages;
  #terms;
  #limit;
  #problem;
  #output;
  #heat = new HeatMap();
  #alternatives;
  #offer;
  #origin;
  #running = null; // AbortController of the request under way
  #later = debounced(() => this.#translate(), PAUSE);
  #history;
  #pair = null; // of the translation that is shown, with the language that was detected

  constructor({ languages, settings, terms, history, origin, askForKey }) {
    this.#languages = languages;
    this.#offer = new LanguageOffer(languages);
    this.#origin = origin;
    this.#terms = terms;
    this.#limit = settings.charLimit > 0 ? settings.charLimit : null;
    this.#problem = new Problem(byId("problem"), askForKey);
    this.#alternatives = new Alternatives(
      (sentence, signal) => this.#wordings(sentence, signal),
      (sentence, text) => this.#reword(sentence, text),
      (sentence, text) => this.#correct(sentence, text),
      (error, about, again) => this.#problem.show(error, () => (this.#problem.clear(), again()), { about }),
    );
    this.#output = new Output(
      (number, element) => this.#alternatives.open(this.#output.translation.sentences[number], element),
      (number) => this.#align(this.#output.translation.sentences[number]),
    );
    this.#history = history;
    this.#listen();
    this.#typed();
    if (this.#field.value) this.#later.now();
  }

  #listen() {
    const field = this.#field;
    field.addEventListener("input", () => {
      this.#typed();
      this.#later();
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.#later.now();
      }
    });
    this.#languages.onChange((swapped) => {
      if (swapped && this.#output.translation) field.value = this.#output.translation.text;
      this.#offer.clear();
      this.#typed();
      this.#later.now();
    });
    this.#terms.onChange(() => this.#later.now());
    byId("clear").addEventListener("click", () => this.#set(""));
    byId("example").addEventListener("click", () => this.#set(this.#example));
    this.#history.onChoose(({ text, source, target }) => {
      this.#languages.choose({ source, target });
      this.#set(text);
    });
    byId("copy").addEventListener("click", () => this.#copy());
    byId("attention").addEventListener("click", () => this.#showAttention());
  }

  get #example() {
    return this.#languages.sources.map((code) => EXAMPLES[code]).find(Boolean) ?? "";
  }

  #set(text) {
    this.#field.value = text;
    this.#typed();
    this.#later.now();
    this.#field.focus();
  }

  /** Show what follows from the text itself, before the server is asked. */
  #typed() {
    const text = this.#field.value;
    const count = countCharacters(text);
    const over = this.#limit === null ? 0 : count - this.#limit;
    const counter = byId("count");
    counter.textContent = this.#limit === null ? plain(count) : t("countOf", { count, limit: this.#limit });
    counter.classList.toggle("over", over > 0);
    const languages = this.#languages.typed;
    const named = languages.length > 0 && languages.length <= MOST_NAMED;
    this.#field.placeholder = named ? t("sourcePlaceholderIn", { languages: oneOf(languages) }) : t("sourcePlaceholder");
    byId("clear").hidden = text === "";
    byId("example").hidden = text !== "" || this.#example === "";
    this.#output.drawSource(text);
    this.#alternatives.close();
    byId("output-pane").classList.toggle("stale", this.#output.translation !== null);
  }

  async #translate() {
    this.#later.cancel();
    this.#running?.abort();
    this.#problem.clear();
    const text = this.#field.value;
    const count = countCharacters(text);
    if (!text.trim()) return this.#offer.clear(), this.#show(null, {});
    if (this.#languages.none) return this.#refuse(t("errorNothing"));
    if (this.#limit !== null && count > this.#limit) return this.#refuse(t("tooLong", { over: count - this.#limit }));
    const running = (this.#running = new AbortController());
    const { glossary } = this.#terms.fields(this.#languages.knownPair);
    this.#busy(true);
    try {
      if (this.#languages.guessing) this.#languages.showDetected((await postJson("detect", { q: text }, running.signal))[0]);
      const pair = this.#languages.pair;
      const fields = { ...pair, q: text, details: true, alignments: count <= ALIGNED_AT_ONCE };
      const reply = await this.#ask(fields, running.signal, count >= STREAMED_FROM && this.#drafting(text, pair.target));
      if (this.#languages.redirect(reply.detectedLanguage?.language)) return void this.#later.now();
      this.#show(new Translation(text, reply), reply, pair);
      this.#offer.judge(text, pair.source);
      // Only now the language is known, and with it the terms.
      if (!glossary && this.#terms.fields(this.#languages.knownPair).glossary) this.#later.now();
    } catch (error) {
      if (superseded(error) || running !== this.#running) return;
      if (this.#languages.redirect(error.detail?.detected?.language)) return void this.#later.now();
      this.#fail(error, this.#languages.pair);
    } finally {
      if (running === this.#running) this.#busy(false);
    }
  }

  /** Send a request, with the user's terms; fields that ask for nothing are left out. */
  #ask(fields, signal, watch = null) {
    const all = { ...fields, ...this.#terms.fields(this.#languages.knownPair) };
    const body = Object.fromEntries(Object.entries(all).filter(([, value]) => value || value === false));
    return watch ? postForEvents("translate", body, watch, signal) : postJson("translate", body, signal);
  }

  /** Shows a translation sentence by sentence while it is made. */
  #drafting(text, language) {
    const draft = new Draft(text);
    return (name, data) => {
      if (name !== "sentence") return;
      const written = draft.add(data);
      if (!written) return;
      byId("output-empty").hidden = true;
      byId("notes").textContent = ""; // of the translation before
      byId("output-pane").classList.remove("stale");
      this.#showActions(null);
      this.#alternatives.close();
      this.#output.draft(written, language);
    };
  }

  #fail(error, pair) {
    // What has come of a long text stays.
    if (!this.#output.unfinished) this.#show(null, {});
    this.#problem.show(error, () => this.#translate(), pair);
  }

  #refuse(text) {
    this.#show(null, {});
    this.#busy(false);
    this.#problem.say(text);
  }

  #show(translation, reply, pair = null) {
    if (!translation) this.#busy(false);
    const detected = reply.detectedLanguage ?? null;
    this.#pair = pair && { ...pair, source: detected?.language ?? pair.source };
    if (translation || !this.#field.value) this.#languages.showDetected(detected);
    this.#terms.showCount();
    this.#alternatives.close(); // of a sentence that goes now
    this.#output.show(translation, pair?.target);
    this.#field.lang = this.#pair?.source ?? "";
    byId("output-pane").classList.remove("stale");
    byId("output-empty").hidden = translation !== null;
    this.#showActions(translation);
    this.#showTime(translation?.time ?? null);
    this.#origin.show(byId("origin"), translation ? reply.model : null);
    byId("notes").textContent = notesOf(reply, translation, this.#pair);
    if (!translation) return;
    announce(t("announced", { text: translation.text.slice(0, READ_OUT) }));
    const { source, target } = this.#pair;
    this.#history.add({ source, target, text: translation.typed, translation: translation.text });
  }

  #showActions(translation) {
    byId("copy").hidden = translation === null;
    for (const id of ["attention", "tip"]) byId(id).hidden = !translation?.sentences.length;
  }

  #showTime(seconds) {
    const place = byId("time");
    place.hidden = seconds === null;
    if (seconds !== null) place.textContent = t("seconds", { seconds: Number(seconds.toPrecision(2)) });
  }

  #busy(busy) {
    byId("output-pane").classList.toggle("busy", busy);
    byId("output").setAttribute("aria-busy", String(busy));
  }

  /** The other translations of one sentence, best first. */
  async #wordings(sentence, signal) {
    if (sentence.wordings === null) {
      const fields = { ...this.#pair, q: sentence.source, alternatives: 4, beam_size: 5, memory: false };
      const reply = await this.#ask(fields, signal);
      sentence.wordings = [...new Set([sentence.text, reply.translatedText, ...(reply.alternatives ?? [])])];
    }
    return sentence.wordings;
  }

  /** Keep the user's own wording of a sentence with the key. */
  #correct(sentence, text) {
    sentence.wordings = null;
    return postJson("suggest", { ...this.#pair, q: sentence.source, s: text });
  }

  #reword(sentence, text) {
    const number = this.#place(sentence);
    if (number < 0) return; // another translation came meanwhile
    if (sentence.text !== text) Object.assign(sentence, { text, links: null, tokens: null, doubtful: [], weak: false, reworded: true });
    this.#output.redraw(number);
    this.#output.focus(number);
    announce(t("chosen", { text }));
  }

  /** Which sentence of the translation that is shown it is; -1 = none. */
  #place(sentence) {
    return this.#output.translation?.sentences.indexOf(sentence) ?? -1;
  }

  /** Ask which words of one sentence belong together; a wording that was chosen is given as what is to be written. */
  async #align(sentence) {
    if (sentence.aligning === sentence.text) return sentence.waiting;
    sentence.aligning = sentence.text;
    sentence.waiting = this.#alignment(sentence).then(({ links, tokens }) => {
      if (sentence.aligning !== sentence.text) return;
      Object.assign(sentence, { links, tokens });
      const number = this.#place(sentence);
      if (number >= 0) this.#output.redraw(number);
    });
    return sentence.waiting;
  }

  async #alignment({ source, text, reworded }) {
    const nothing = { links: [], tokens: null };
    if (reworded && countCharacters(text) > MAX_PREFIX) return nothing;
    try {
      const fields = { ...this.#pair, q: source, alignments: true, prefix: reworded ? text : null };
      const found = new Translation(source, await this.#ask(fields));
      return found.text === text && found.sentences.length === 1 ? found.sentences[0] : nothing;
    } catch {
      return nothing; // an extra that is missing is no error to people
    }
  }

  async #showAttention() {
    const { translation, sentence } = this.#output;
    await this.#heat.open(translation.sentences, sentence, async (number) => {
      const one = translation.sentences[number];
      if (!one.tokens?.weights) await this.#align(one);
      return one.tokens;
    });
  }

  async #copy() {
    const done = await copyText(this.#output.translation.text);
    if (!done) return this.#problem.say(t("copyFailed"));
    const label = byId("copy").querySelector("span");
    label.textContent = t("copied");
    announce(t("copied"));
    setTimeout(() => (label.textContent = t("copy")), 2000);
  }
}

function plain(count) {
  return count === 1 ? t("countOne") : t("count", { count });
}

