// The two language pickers: filled from what the server translates, with detection and swap.

import { byId, make, remembered } from "./dom.js";
import { languageName, t } from "./strings.js";

const AUTO = "auto";

export class Languages {
  #languages;
  #source = byId("source-language");
  #target = byId("target-language");
  #swap = byId("swap");
  #detected = null;
  #picked = false; // whether the user chose the target
  #listeners = [];

  /** `languages`: the reply of GET /languages. */
  constructor(languages) {
    this.#languages = languages.filter((language) => language.targets.length);
    const kept = remembered.get("pair", {});
    this.#source.replaceChildren(
      make("option", { value: AUTO }, t("detect")),
      ...this.#languages.map(({ code, name }) => make("option", { value: code }, name || languageName(code))),
    );
    this.#source.value = this.#languages.some(({ code }) => code === kept.source) ? kept.source : AUTO;
    this.#fillTargets(kept.target);
    this.#source.addEventListener("change", () => this.#changed());
    this.#target.addEventListener("change", () => {
      this.#picked = true;
      this.#changed();
    });
    this.#swap.addEventListener("click", () => this.swap());
  }

  get none() {
    return this.#languages.length === 0;
  }

  /** What is to be translated into what; `source` may be "auto". */
  get pair() {
    return { source: this.#source.value, target: this.#target.value };
  }

  /** The pair with the detected language in the place of "auto", where there is one. */
  get knownPair() {
    const { source, target } = this.pair;
    return { source: source === AUTO ? (this.#detected ?? AUTO) : source, target };
  }

  /** Languages that a text can be in, the chosen one first. */
  get sources() {
    const codes = this.#languages.map(({ code }) => code);
    const chosen = this.knownPair.source;
    return codes.includes(chosen) ? [chosen, ...codes.filter((code) => code !== chosen)] : codes;
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
    this.#source.value = target;
    this.#fillTargets(source);
    this.#changed(true);
  }

  #changed(swapped = false) {
    this.showDetected(null);
    this.#fillTargets(this.#target.value);
    remembered.set("pair", this.pair);
    for (const listener of this.#listeners) listener(swapped);
  }

  #fillTargets(wanted) {
    const { source } = this.pair;
    const served = this.#languages.filter(({ code }) => source === AUTO || code === source);
    const sources = (target) => served.filter(({ targets }) => targets.includes(target)).length;
    const codes = [...new Set(served.flatMap(({ targets }) => targets))].sort();
    this.#target.replaceChildren(...codes.map((code) => make("option", { value: code }, this.#name(code))));
    const usual = codes.reduce((best, code) => (sources(code) > sources(best) ? code : best), codes[0]);
    if (codes.length) this.#target.value = codes.includes(wanted) ? wanted : usual;
    this.#showSwap();
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
    return this.#languages.find((language) => language.code === code)?.name || languageName(code);
  }
}
