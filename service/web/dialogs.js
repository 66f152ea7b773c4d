// What all dialogs share, the API key's dialog, and the one with the terms.

import { key } from "./api.js";
import { byId, icon, make, remembered } from "./dom.js";
import { languageName, t } from "./strings.js";

/** A click on the dimmed page, or on a button with `data-close`, closes a dialog; Escape does by itself. */
export function closeDialogs() {
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", ({ target }) => {
      if (target === dialog || target.closest("[data-close]")) dialog.close();
    });
  }
}

/** The dialog for the API key. */
export class KeyDialog {
  #dialog = byId("key-dialog");
  #field = byId("key-field");
  #then = null;

  /** `wanted`: whether the server asks for keys; else the button shows once one was asked for. */
  constructor(wanted) {
    byId("key-button").hidden = !wanted && !key.get();
    byId("key-button").addEventListener("click", () => this.open());
    byId("key-forget").addEventListener("click", () => this.#keep(""));
    byId("key-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#keep(this.#field.value.trim());
    });
  }

  /** Ask for a key; `then` is called once there is one. */
  open(then = null) {
    this.#then = then;
    this.#field.value = key.get();
    byId("key-forget").hidden = !key.get();
    byId("key-button").hidden = false;
    this.#dialog.showModal();
    this.#field.select();
  }

  #keep(value) {
    key.set(value);
    const then = this.#then;
    this.#then = null;
    this.#dialog.close();
    if (value) then?.();
  }
}

/** The dialog for terms that are always translated in one way; one list per pair of languages. */
export class TermsDialog {
  #dialog = byId("terms-dialog");
  #rows = byId("terms-rows");
  #languages;
  #pair = null;
  #listeners = [];

  constructor(languages) {
    this.#languages = languages;
    byId("terms").addEventListener("click", () => this.#open());
    byId("terms-add").addEventListener("click", () => this.#add().focus());
    byId("terms-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    languages.onChange(() => this.showCount());
    this.showCount();
  }

  /** `listener()` is called once the terms have changed. */
  onChange(listener) {
    this.#listeners.push(listener);
  }

  /** The fields of a request for a pair of languages; as long as the source is "auto", there are no terms. */
  fields(pair) {
    const terms = this.#terms(pair);
    return {
      ...(terms.length ? { glossary: Object.fromEntries(terms) } : {}),
      ...(this.#protects ? { protect: ["placeholders", "urls", "emails"] } : {}),
    };
  }

  get #protects() {
    return remembered.get("protect", false) === true;
  }

  #terms({ source, target }) {
    const terms = remembered.get(`terms.${source}-${target}`, []);
    return Array.isArray(terms) ? terms : [];
  }

  /** Show on the button how many terms hold for the pair that is chosen or detected. */
  showCount() {
    const count = this.#terms(this.#languages.knownPair).length + (this.#protects ? 1 : 0);
    byId("terms").querySelector("span").textContent = count ? t("termsOn", { count }) : t("terms");
  }

  #open() {
    const { source, target } = this.#languages.knownPair;
    this.#pair = { source: source === "auto" ? this.#languages.sources[0] : source, target };
    const names = { source: languageName(this.#pair.source), target: languageName(this.#pair.target) };
    byId("terms-about").textContent = t("termsAbout", names);
    byId("terms-protect").checked = this.#protects;
    this.#rows.replaceChildren();
    for (const term of [...this.#terms(this.#pair), ["", ""]]) this.#add(...term);
    this.#dialog.showModal();
  }

  /** One more line of the table; returns its first field. */
  #add(source = "", target = "") {
    const number = this.#rows.rows.length + 1;
    const field = (value, label, language) =>
      make("input", { value, maxLength: 500, autocomplete: "off", lang: language, dir: "auto", "aria-label": t(label, { number }) });
    const first = field(source, "termSourceOf", this.#pair.source);
    const remove = make("button", { type: "button", class: "round", "aria-label": t("termRemove", { number }) }, icon("close"));
    const row = make(
      "tr",
      {},
      make("td", {}, first),
      make("td", {}, field(target, "termTargetOf", this.#pair.target)),
      make("td", {}, remove),
    );
    remove.addEventListener("click", () => {
      row.remove();
      byId("terms-add").focus();
    });
    this.#rows.append(row);
    return first;
  }

  #save() {
    const terms = [...this.#rows.rows]
      .map((row) => [...row.querySelectorAll("input")].map(({ value }) => value.trim()))
      .filter(([source, target]) => source && target);
    remembered.set(`terms.${this.#pair.source}-${this.#pair.target}`, terms.length ? terms : null);
    remembered.set("protect", byId("terms-protect").checked || null);
    this.#dialog.close();
    this.showCount();
    for (const listener of this.#listeners) listener();
  }
}
