// A chosen source language that the text is not in: noticed once the text is translated, and the other one offered.

import { postJson } from "./api.js";
import { byId, countCharacters, make } from "./dom.js";
import { languageName, t } from "./strings.js";

const LOOKED_AT = 500; // characters of a text's beginning; more of it would hardly change the verdict
const LEAST = 20; // characters below which detection guesses
const SURE = 90; // percent from which on people are bothered with it

export class LanguageOffer {
  #languages;
  #place = byId("offer");
  #judged = { beginning: "", found: null };
  #asking = null; // AbortController of the question under way
  #shown = "";

  constructor(languages) {
    this.#languages = languages;
  }

  clear() {
    this.#asking?.abort();
    this.#shown = "";
    this.#place.replaceChildren();
  }

  /** Judge a text that was translated from a language; the server is asked where the last verdict says nothing of it. */
  async judge(text, source) {
    this.#asking?.abort();
    const beginning = [...text.trim()].slice(0, LOOKED_AT).join("");
    if (source === "auto" || countCharacters(beginning) < LEAST) return this.clear();
    if (!goesOn(beginning, this.#judged.beginning)) {
      const asking = (this.#asking = new AbortController());
      try {
        const [best] = await postJson("detect", { q: beginning }, asking.signal);
        if (asking !== this.#asking || asking.signal.aborted) return;
        this.#judged = { beginning, found: best?.confidence >= SURE ? best.language : null };
      } catch {
        return; // an extra that is missing is no error to people
      }
    }
    this.#show(this.#judged.found, source);
  }

  #show(found, source) {
    const language = found && languageName(found);
    if (!found || language === found || base(found) === base(source)) return this.clear();
    const pair = this.#languages.pairFrom(found);
    const shown = [found, pair?.source, pair?.target].join(" ");
    if (shown === this.#shown) return; // else it would be read out again
    this.#shown = shown;
    this.#place.replaceChildren(make("span", {}, t("seemsIn", { language })), ...(pair ? [" ", this.#button(pair)] : []));
  }

  #button(pair) {
    const names = { source: languageName(pair.source), target: languageName(pair.target) };
    const take = () => {
      this.#languages.choose(pair);
      byId("source-text").focus();
    };
    return make("button", { type: "button", class: "plain", onclick: take }, t("translateFrom", names));
  }
}

/** Whether a beginning is the judged one with some of it added, taken away or changed, but not most of it. */
function goesOn(beginning, judged) {
  let same = 0;
  while (same < judged.length && beginning[same] === judged[same]) same += 1;
  return judged !== "" && 2 * same >= Math.max(beginning.length, judged.length);
}

function base(code) {
  return code.split("-")[0];
}
