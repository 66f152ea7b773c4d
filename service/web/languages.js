// The two language pickers: filled from what the server translates, with detection and swap.

import { byId, make, remembered } from "./dom.js";
import { language, languageName, t } from "./strings.js";

const AUTO = "auto";

export class Languages {
  #languages;
  #source = byId("source-language");
  #target = byId("target-language");
  #swap = byId("swap");
  #model = byId("model");
  #models;
  #detected = null;
  #picked = false; // whether the user chose the target
  #listeners = [];

  /** `languages`: the reply of GET /languages. `models`: those of GET /models that are loaded. */
  constructor(languages, models = []) {
    this.#models = models.filter(({ task }) => task === "translate");
    this.#languages = languages.filter((language) => language.targets.length);
    const kept = remembered.get("pair", {});
    this.#source.replaceChildren(
      make("option", { value: AUTO }, t("detect")),
      ...this.#languages.map(({ code, name }) => make("option", { value: code }, named(code, name))),
    );
    this.#source.value = this.#languages.some(({ code }) => code === kept.source) ? kept.source : AUTO;
    this.#fillTargets(kept.target);
    this.#source.addEventListener("change", () => this.#changed());
    this.#target.addEventListener("change", () => {
      this.#picked = true;
      this.#changed();
    });
    this.#swap.addEventListener("click", () => this.swap());
    this.#model.addEventListener("change", () => this.#tell(false));
  }

  get none() {
    return this.#languages.length === 0;
  }

  /** What is to be translated into what, and the model where one was chosen; `source` may be "auto". */
  get pair() {
    return { source: this.#source.value, target: this.#target.value, model: this.#model.value };
  }

  /** The pair with the detected language in the place of "auto", where there is one. */
  get knownPair() {
    const pair = this.pair;
    return { ...pair, source: pair.source === AUTO ? (this.#detected ?? AUTO) : pair.source };
  }

  /**
   * Whether a model was chosen for a language that was detected. The next text may be in another one: who asks for that
   * first, and shows it, has a pair without a model that does not translate it.
   */
  get guessing() {
    return this.pair.source === AUTO && this.pair.model !== "";
  }

  /** Languages that a text can be in: the chosen one first, else those that are translated into the target. */
  get sources() {
    const codes = this.#languages.map(({ code }) => code);
    const { source, target } = this.knownPair;
    const first = codes.includes(source) ? [source] : codes.filter((code) => this.#serves(code, target));
    return [...new Set([...first, ...codes])];
  }

  /** The names of the languages that can be typed: the chosen one, else all of them. */
  get typed() {
    const { source } = this.pair;
    return source === AUTO ? this.#languages.map(({ code }) => languageName(code)) : [languageName(source)];
  }

  /** The pair for a text in that language: into the present target, else into the language chosen as the text's, else
   * the first there is. null = that language is not translated here. */
  pairFrom(code) {
    const { source, target } = this.pair;
    const found = this.#languages.find((language) => language.code === code);
    const into = [target, source, found?.targets[0]].find((one) => this.#serves(code, one));
    return into === undefined ? null : { source: code, target: into };
  }

  /** `listener(swapped)` is called after a change by the user. */
  onChange(listener) {
    this.#listeners.push(listener);
  }

  /** Show the language that the server detected: {language, confidence}; null = none. */
  showDetected(detected) {
    this.#detected = detected?.language ?? null;
    const option = this.#source.options[0];
    option.textContent = detected ? t("detected", { language: this.#name(detected.language) }) : t("detect");
    const confidence = Math.round(detected?.confidence ?? 0);
    this.#source.title = detected && this.#source.value === AUTO ? t("detectedTitle", { confidence }) : "";
    this.#showSwap();
    this.#fillModels();
  }

  /**
   * With "auto", turn to a target that the detected language is translated into, where the present one is none of them
   * and was not picked by the user. Returns whether it did.
   */
  redirect(detected) {
    const { source, target } = this.pair;
    if (source !== AUTO || this.#picked || this.#serves(detected, target)) return false;
    const other = this.#languages.find(({ code }) => code === detected)?.targets[0];
    if (!other) return false;
    this.#target.value = other;
    return true;
  }

  /** Swap the languages, where the other direction is served. */
  swap() {
    const { source, target } = this.knownPair;
    if (!this.#serves(target, source)) return;
    this.choose({ source: target, target: source }, true);
  }

  /** Turn to a pair of languages, where it is served. */
  choose({ source, target }, swapped = false) {
    if (!this.#serves(source, target)) return;
    this.#source.value = source;
    this.#fillTargets(target);
    this.#changed(swapped);
  }

  #changed(swapped = false) {
    this.showDetected(null);
    this.#fillTargets(this.#target.value);
    const { source, target } = this.pair;
    remembered.set("pair", { source, target });
    this.#tell(swapped);
  }

  #tell(swapped) {
    for (const listener of this.#listeners) listener(swapped);
  }

  #fillTargets(wanted) {
    const { source } = this.pair;
    const served = this.#languages.filter(({ code }) => source === AUTO || code === source);
    const sources = (target) => served.filter(({ targets }) => targets.includes(target)).length;
    const codes = [...new Set(served.flatMap(({ targets }) => targets))].sort();
    this.#target.replaceChildren(...codes.map((code) => make("option", { value: code }, this.#name(code))));
    const usual = codes.reduce((best, code) => (sources(code) > sources(best) ? code : best), codes[0]);
    // Who opens the page reads its language, so most likely wants that.
    if (codes.length) this.#target.value = [wanted, language].find((code) => codes.includes(code)) ?? usual;
    this.#showSwap();
    this.#fillModels();
  }

  /** The models of the pair, where there are several to choose from. */
  #fillModels() {
    const { source, target, model: chosen } = this.knownPair;
    const serve = (model) => directions(model).some((one) => one.source === source && one.target === target);
    const names = this.#models.filter(serve).map(({ name }) => name);
    this.#model.replaceChildren(
      make("option", { value: "" }, t("modelUsual")),
      ...names.map((name) => make("option", { value: name }, name)),
    );
    this.#model.value = names.includes(chosen) ? chosen : "";
    byId("model-field").hidden = names.length < 2;
  }

  #showSwap() {
    const { source, target } = this.knownPair;
    const can = this.#serves(target, source);
    const names = { source: this.#name(target), target: this.#name(source) };
    // Not `disabled`: the reason would be out of reach for keyboard and screen reader.
    this.#swap.setAttribute("aria-disabled", String(!can));
    this.#swap.title = can || source === AUTO ? t("swap") : t("swapNot", names);
    this.#swap.setAttribute("aria-label", this.#swap.title);
  }

  #serves(source, target) {
    return this.#languages.some(({ code, targets }) => code === source && targets.includes(target));
  }

  #name(code) {
    return named(code, this.#languages.find((language) => language.code === code)?.name);
  }
}

/** A language's name as the browser knows it, else as the server does; it begins with a capital in lists. */
function named(code, served) {
  const own = languageName(code);
  const name = own === code ? served || code : own;
  return name.charAt(0).toLocaleUpperCase(language) + name.slice(1);
}

/** What a model translates into what. */
export function directions({ pairs, source_languages: sources, target_language: target }) {
  return pairs ?? sources.map((source) => ({ source, target }));
}
