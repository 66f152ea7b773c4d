// The texts of the page in the language that the browser asks for, and what is offered as an example.

import { remembered } from "./dom.js";
import DE from "./texts-de.js";
import EN from "./texts-en.js";
import FR from "./texts-fr.js";

/** For "Try an example", by source language; of others the button is hidden. The shipped models get them right. */
export const EXAMPLES = {
  cs: "Kde je nádraží? Čekám na své přátele.",
  de: "Wo ist der Bahnhof? Ich warte auf meine Freunde.",
  en: "Where is the station? I am waiting for my friends.",
  es: "¿Dónde está la estación? Estoy esperando a mis amigos.",
  fr: "Où est la gare ? J’attends mes amis.",
  it: "Dov’è la stazione? Sto aspettando i miei amici.",
};

export const SUMMARY_EXAMPLE =
  "We propose a method to estimate the depth of a scene from a single image. A convolutional network is trained on " +
  "pairs of images without any labels. Experiments on a public dataset show that it is more accurate than supervised " +
  "methods.";

/** The languages that the page speaks, in their own words. */
export const LANGUAGES = { en: "English", de: "Deutsch", fr: "Français" };
const TEXTS = { en: EN, de: DE, fr: FR };

/** The language of the page: what was chosen, else the first of the browser's that there is. */
export const language = [remembered.get("language"), ...navigator.languages]
  .map((code) => String(code).split("-")[0])
  .concat("en")
  .find((code) => Object.hasOwn(TEXTS, code));

const strings = TEXTS[language];
const numbers = new Intl.NumberFormat(language);
const names = typeof Intl.DisplayNames === "function" ? new Intl.DisplayNames([language], { type: "language" }) : null;

/** The text of that key, with its `{places}` filled; numbers are written as the language writes them. */
export function t(key, places = {}) {
  const text = strings[key];
  if (text === undefined) throw new Error(`no text is named ${key}`);
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in places ? written(places[name]) : whole));
}

function written(value) {
  return typeof value === "number" ? numbers.format(value) : String(value);
}

/** The name of a language, from the browser; the code where it knows none. */
export function languageName(code) {
  try {
    return names?.of(code) ?? code;
  } catch {
    return code;
  }
}

/** Names as a choice: "German, English or French". */
export function oneOf(words) {
  return new Intl.ListFormat(language, { type: "disjunction" }).format(words);
}

/** Fill the page's fixed texts: `data-t` names an element's text, `data-t-*` an attribute's. */
export function fill(root = document) {
  for (const element of root.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
  const attributes = { tLabel: "aria-label", tPlaceholder: "placeholder", tTitle: "title" };
  for (const [data, attribute] of Object.entries(attributes)) {
    const name = data.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    for (const element of root.querySelectorAll(`[data-${name}]`)) {
      element.setAttribute(attribute, t(element.dataset[data]));
    }
  }
}
