// What was translated in this browser: kept here only, and only where its user asks for that.

import { byId, countCharacters, make, remembered } from "./dom.js";
import { languageName, t } from "./strings.js";

const MOST = 50; // translations
const LIMIT = 5000; // characters of a text or a translation; longer ones are not kept

export class History {
  #dialog = byId("history");
  #list = byId("history-list");
  #keep = byId("history-keep");

  constructor() {
    byId("history-about").textContent = t("historyAbout", { limit: LIMIT });
    byId("history-button").addEventListener("click", () => this.#open());
    byId("history-clear").addEventListener("click", () => this.#set([]));
    this.#keep.addEventListener("change", () => remembered.set("history.kept", this.#keep.checked || null));
  }

  /** `listener({source, target, text})` is called when one of the translations was chosen. */
  onChoose(listener) {
    this.#list.addEventListener("click", ({ target }) => {
      const number = target.closest("button")?.dataset.number;
      if (number === undefined) return;
      this.#dialog.close();
      listener(this.#kept[Number(number)]);
    });
  }

  /** Keep a translation: {source, target, text, translation}. Going on with the newest text takes its place. */
  add(entry) {
    if (!this.#wanted || [entry.text, entry.translation].some((text) => countCharacters(text) > LIMIT)) return;
    const [newest, ...older] = this.#kept;
    const others = newest && continues(entry, newest) ? older : this.#kept;
    const again = ({ text, source, target }) => text === entry.text && source === entry.source && target === entry.target;
    this.#set([entry, ...others.filter((one) => !again(one))].slice(0, MOST));
  }

  get #wanted() {
    return remembered.get("history.kept", false) === true;
  }

  get #kept() {
    const kept = remembered.get("history", []);
    return Array.isArray(kept) ? kept : [];
  }

  #set(entries) {
    remembered.set("history", entries.length ? entries : null);
    this.#draw();
  }

  #open() {
    this.#keep.checked = this.#wanted;
    this.#draw();
    this.#dialog.showModal();
  }

  #draw() {
    const entries = this.#kept;
    this.#list.replaceChildren(...entries.map((entry, number) => make("li", {}, drawn(entry, number))));
    byId("history-empty").hidden = entries.length > 0;
    byId("history-clear").hidden = entries.length === 0;
  }
}

function drawn({ source, target, text, translation }, number) {
  return make(
    "button",
    { type: "button", "data-number": String(number) },
    make("small", { class: "muted" }, `${languageName(source)} → ${languageName(target)}`),
    make("span", { lang: source, dir: "auto" }, text),
    make("span", { lang: target, dir: "auto", class: "muted" }, translation),
  );
}

/** Whether one text is the other with more typed, or with some of it taken back. */
function continues(entry, newest) {
  const { source, target, text } = newest;
  return (
    source === entry.source &&
    target === entry.target &&
    (entry.text.startsWith(text) || text.startsWith(entry.text))
  );
}
