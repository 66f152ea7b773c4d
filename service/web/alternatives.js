// Other wordings of a sentence, in a small panel beside it, and one of the user's own, where a key keeps it.

import { key, superseded } from "./api.js";
import { byId, icon, make } from "./dom.js";
import { inWords } from "./problems.js";
import { t } from "./strings.js";

export class Alternatives {
  #panel = byId("alternatives");
  #list = byId("alternatives-list");
  #find;
  #pick;
  #failed;
  #sentence = null;
  #anchor = null;
  #running = null;

  /**
   * `find(sentence, signal)`: a promise of its wordings. `pick(sentence, text)`: one was chosen.
   * `correct(sentence, text)`: a promise that one of the user's own was kept. `failed(error, text, again)`: it was not,
   * and the panel that would say so is closed.
   */
  constructor(find, pick, correct, failed) {
    this.#find = find;
    this.#pick = pick;
    this.#failed = failed;
    byId("correct-open").addEventListener("click", () => this.#correcting(true));
    byId("correct").addEventListener("submit", (event) => {
      event.preventDefault();
      const text = byId("correct-text").value.trim();
      if (text) this.#correct(correct, this.#sentence, text);
    });
    this.#panel.addEventListener("toggle", ({ newState }) => this.#toggled(newState === "open"));
    this.#panel.addEventListener("keydown", (event) => this.#move(event));
    window.addEventListener("resize", () => this.close());
  }

  /** Show the wordings of a sentence next to its element. */
  async open(sentence, anchor) {
    this.close();
    this.#anchor = anchor;
    this.#sentence = sentence;
    byId("correct").hidden = !key.get();
    byId("correct-text").value = sentence.text;
    this.#correcting(false);
    const running = (this.#running = new AbortController());
    this.#list.replaceChildren(make("li", { class: "muted" }, t("alternativesLoading")));
    this.#panel.showPopover();
    this.#place();
    this.#panel.focus();
    anchor.setAttribute("aria-expanded", "true");
    try {
      const wordings = await this.#find(sentence, running.signal);
      if (this.#running === running) this.#fill(sentence, wordings);
    } catch (error) {
      if (superseded(error) || this.#running !== running) return;
      this.#list.replaceChildren(make("li", { role: "alert" }, inWords(error)));
    }
  }

  close() {
    if (this.#panel.matches(":popover-open")) this.#panel.hidePopover();
  }

  #fill(sentence, wordings) {
    const others = wordings.length > 1 ? wordings : [];
    this.#list.replaceChildren(
      ...others.map((text) => make("li", {}, this.#button(sentence, text))),
      ...(others.length ? [] : [make("li", { class: "muted" }, t("alternativesNone"))]),
    );
    this.#place();
    (this.#list.querySelector("[aria-current]") ?? this.#panel).focus();
  }

  #button(sentence, text) {
    const choose = () => {
      this.close();
      this.#pick(sentence, text);
    };
    const button = make("button", { type: "button", onclick: choose, dir: "auto" }, icon("check"), make("span", {}, text));
    if (text === sentence.text) button.setAttribute("aria-current", "true");
    return button;
  }

  #correcting(open) {
    byId("correct-open").hidden = open;
    for (const id of ["correct-field", "correct-save"]) byId(id).hidden = !open;
    byId("correct-problem").textContent = "";
    if (!open) return;
    this.#place();
    byId("correct-text").focus();
  }

  async #correct(correct, sentence, text) {
    const shown = () => this.#anchor !== null && this.#sentence === sentence;
    try {
      await correct(sentence, text);
      if (shown()) this.close();
      this.#pick(sentence, text);
    } catch (error) {
      if (shown()) byId("correct-problem").textContent = inWords(error);
      else this.#failed(error, text, () => this.#correct(correct, sentence, text));
    }
  }

  #toggled(open) {
    if (open || !this.#anchor) return;
    this.#running?.abort();
    this.#running = null;
    this.#anchor.setAttribute("aria-expanded", "false");
    if (this.#panel.contains(document.activeElement) || document.activeElement === document.body) this.#anchor.focus();
    this.#anchor = null;
  }

  /** Below the sentence's last line where there is room, else above its first one. */
  #place() {
    const lines = this.#anchor.getClientRects();
    const [first, last] = [lines[0], lines[lines.length - 1]];
    const { width, height } = this.#panel.getBoundingClientRect();
    const room = document.documentElement.clientWidth;
    const left = Math.max(8, Math.min(last.left, room - width - 8));
    const below = last.bottom + 6;
    const fits = below + height <= window.innerHeight - 8 || first.top - height - 6 < 8;
    this.#panel.style.left = `${left + window.scrollX}px`;
    this.#panel.style.top = `${(fits ? below : first.top - height - 6) + window.scrollY}px`;
  }

  #move(event) {
    if (event.target === byId("correct-text")) return;
    const buttons = [...this.#list.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at < 0 ? buttons.length - 1 : at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (next === undefined || !buttons.length) return;
    event.preventDefault();
    buttons[(next + buttons.length) % buttons.length].focus();
  }
}
