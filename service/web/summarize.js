// The summarize tab: a text, a length, and a summary with its other versions.

import { postJson, superseded } from "./api.js";
import { announce, byId, copyText, countCharacters, make } from "./dom.js";
import { Problem } from "./problems.js";
import { languageName, SUMMARY_EXAMPLE, t } from "./strings.js";

/** What a length asks for. Bounds in tokens would be right for one model only; a penalty shortens with every one. */
const LENGTHS = { short: { length_penalty: 0 }, medium: {}, long: { min_length: 14, length_penalty: 2 } };
/** At most so many, of the text's own or of the model's, which seldom writes more than one. */
const SENTENCES = { short: 1, medium: 3, long: 6 };
const OTHERS = { alternatives: 2 };

export class SummarizeTab {
  #field = byId("sum-text");
  #button = byId("sum-button");
  #language = byId("sum-language");
  #limit;
  #problem;
  #origin;
  #running = null;
  #versions = [];
  #shown = 0;

  /** `models`: those of GET /models that summarize. */
  constructor({ models, settings, origin, askForKey }) {
    this.#origin = origin;
    this.#limit = settings.summaryCharLimit > 0 ? settings.summaryCharLimit : null;
    this.#problem = new Problem(byId("sum-problem"), askForKey);
    const codes = [...new Set(models.flatMap((model) => model.source_languages))];
    this.#language.replaceChildren(...codes.map((code) => make("option", { value: code }, languageName(code))));
    byId("sum-languages").hidden = codes.length < 2;
    this.#listen(codes);
    this.#typed();
  }

  #listen(codes) {
    this.#field.addEventListener("input", () => this.#typed());
    this.#field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.#summarize();
    });
    byId("sum-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#summarize();
    });
    byId("sum-lengths").addEventListener("change", () => {
      if (this.#versions.length) this.#summarize();
    });
    byId("sum-method").addEventListener("change", () => {
      if (this.#versions.length) this.#summarize();
    });
    byId("sum-other").addEventListener("click", () => this.#turn());
    byId("sum-copy").addEventListener("click", () => this.#copy());
    byId("sum-clear").addEventListener("click", () => this.#set(""));
    byId("sum-example").addEventListener("click", () => {
      this.#language.value = codes.includes("en") ? "en" : codes[0];
      this.#set(SUMMARY_EXAMPLE);
      this.#summarize();
    });
  }

  #set(text) {
    this.#field.value = text;
    this.#typed();
    this.#field.focus();
  }

  #typed() {
    const text = this.#field.value;
    const count = countCharacters(text);
    const over = this.#limit !== null && count > this.#limit;
    const counter = byId("sum-count");
    if (this.#limit === null) counter.textContent = count === 1 ? t("countOne") : t("count", { count });
    else counter.textContent = t("countOf", { count, limit: this.#limit });
    counter.classList.toggle("over", over);
    byId("sum-clear").hidden = text === "";
    byId("sum-example").hidden = text !== "" || ![...this.#language.options].some(({ value }) => value === "en");
    byId("sum-mirror").textContent = `${text || this.#field.placeholder} `;
    if (!text) {
      this.#running?.abort();
      this.#problem.clear();
      this.#show([]);
    }
  }

  async #summarize() {
    this.#running?.abort();
    this.#problem.clear();
    const q = this.#field.value;
    const over = this.#limit === null ? 0 : countCharacters(q) - this.#limit;
    if (!q.trim()) return this.#field.focus();
    if (over > 0) return this.#refuse(t("tooLong", { over }));
    const running = (this.#running = new AbortController());
    const length = new FormData(byId("sum-form")).get("length");
    this.#busy(true);
    try {
      // With one language there is no choice: what is in another is answered with its own sentences.
      const language = this.#language.options.length > 1 ? { language: this.#language.value } : {};
      const method = byId("sum-method").value;
      const fields = { q, method, details: true, sentences: SENTENCES[length], ...language, ...LENGTHS[length] };
      const reply = await postJson("summarize", { ...fields, ...OTHERS }, running.signal);
      this.#show([reply.summary, ...(reply.alternatives ?? [])], reply);
    } catch (error) {
      if (superseded(error) || running !== this.#running) return;
      this.#show([]);
      const summarized = [...this.#language.options].map(({ value }) => value);
      this.#problem.show(error, () => this.#summarize(), { summarized });
    } finally {
      if (running === this.#running) this.#busy(false);
    }
  }

  #refuse(text) {
    this.#show([]);
    this.#problem.say(text);
  }

  #show(versions, reply = null) {
    this.#versions = [...new Set(versions)];
    this.#shown = 0;
    byId("sum-empty").hidden = this.#versions.length > 0;
    byId("sum-extracted").textContent = reply?.method === "extract" ? t("sumExtracted") : "";
    byId("sum-truncated").textContent = reply?.truncated ? t("sumTruncated") : "";
    this.#origin.show(byId("sum-origin"), reply?.method === "extract" ? null : reply?.model);
    const time = byId("sum-time");
    time.hidden = !reply?.time;
    if (reply?.time) time.textContent = t("seconds", { seconds: Number(reply.time.total.toPrecision(2)) });
    byId("sum-copy").hidden = !this.#versions.length;
    byId("sum-other").hidden = this.#versions.length < 2;
    this.#draw();
  }

  #draw() {
    const text = this.#versions[this.#shown] ?? "";
    const output = byId("sum-output");
    output.textContent = text;
    output.lang = this.#language.value;
    const version = { number: this.#shown + 1, count: this.#versions.length };
    byId("sum-other").title = t("sumVersion", version);
    if (!text) return;
    announce(t("sumAnnounced", { text }));
    output.scrollIntoView({ block: "nearest" }); // beside or below a long text, it would be out of sight
  }

  #turn() {
    this.#shown = (this.#shown + 1) % this.#versions.length;
    this.#draw();
  }

  #busy(busy) {
    byId("sum-output-pane").classList.toggle("busy", busy);
    byId("sum-output").setAttribute("aria-busy", String(busy));
  }

  async #copy() {
    const done = await copyText(this.#versions[this.#shown]);
    if (!done) return this.#problem.say(t("copyFailed"));
    const label = byId("sum-copy").querySelector("span");
    label.textContent = t("copied");
    announce(t("copied"));
    setTimeout(() => (label.textContent = t("copy")), 2000);
  }
}
