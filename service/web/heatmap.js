// Where the model looked while it wrote a sentence: one row per written token, one column per token that it read.

import { byId, make } from "./dom.js";
import { t } from "./strings.js";

const SHOWN = 60; // characters of a sentence in the picker

export class HeatMap {
  #dialog = byId("heat");
  #picker = byId("heat-sentence");
  #grid = byId("heat-grid");
  #readout = byId("heat-readout");
  #tokensOf = null;
  #tokens = null;

  constructor() {
    this.#picker.addEventListener("change", () => this.#show(Number(this.#picker.value)));
    this.#grid.addEventListener("keydown", (event) => this.#move(event));
    for (const kind of ["pointerover", "focusin"]) {
      this.#grid.addEventListener(kind, ({ target }) => this.#read(target.closest("td")));
    }
  }

  /** Show one of several sentences; `tokensOf(number)` is a promise of its tokens and weights. */
  async open(sentences, number, tokensOf) {
    this.#tokensOf = tokensOf;
    this.#picker.replaceChildren(
      ...sentences.map(({ source }, index) => {
        const text = source.length > SHOWN ? `${source.slice(0, SHOWN)}…` : source;
        return make("option", { value: String(index) }, t("heatSentenceOf", { number: index + 1, count: sentences.length, text }));
      }),
    );
    this.#picker.value = String(number);
    byId("heat-pick").hidden = sentences.length < 2;
    this.#dialog.showModal();
    await this.#show(number);
  }

  async #show(number) {
    this.#grid.replaceChildren();
    this.#readout.textContent = "";
    const tokens = await this.#tokensOf(number);
    if (Number(this.#picker.value) !== number) return;
    this.#tokens = tokens;
    const known = Boolean(tokens?.weights?.length);
    this.#readout.textContent = known ? t("heatHint") : t("heatMissing");
    byId("heat-scale").hidden = !known;
    if (known) this.#draw(tokens);
  }

  #draw({ source, target, weights }) {
    const head = make("tr", { role: "row" }, make("th", { scope: "col", role: "columnheader", class: "corner" }, t("heatCorner")));
    for (const token of source) {
      head.append(make("th", { scope: "col", role: "columnheader" }, make("span", { dir: "auto" }, visible(token))));
    }
    const rows = target.map((token, row) => {
      const line = make("tr", { role: "row" }, make("th", { scope: "row", role: "rowheader", dir: "auto" }, visible(token)));
      weights[row].forEach((weight, column) => line.append(this.#cell(weight, row, column)));
      return line;
    });
    this.#grid.append(make("thead", { role: "rowgroup" }, head), make("tbody", { role: "rowgroup" }, ...rows));
  }

  #cell(weight, row, column) {
    const text = make("span", { class: "offscreen" }, t("heatCell", this.#places(row, column, weight)));
    const cell = make("td", { role: "gridcell", tabIndex: row === 0 && column === 0 ? 0 : -1, "data-at": `${row},${column}` }, text);
    // Small weights would be invisible on a linear scale.
    cell.style.setProperty("--weight", Math.sqrt(Math.max(0, Math.min(1, weight))).toFixed(3));
    return cell;
  }

  #places(row, column, weight) {
    const { source, target } = this.#tokens;
    const share = Math.round(weight * 1000) / 10;
    return { source: visible(source[column]), target: visible(target[row]), percent: share };
  }

  #read(cell) {
    if (!cell) return;
    const [row, column] = cell.dataset.at.split(",").map(Number);
    this.#readout.textContent = t("heatCell", this.#places(row, column, this.#tokens.weights[row][column]));
    for (const marked of this.#grid.querySelectorAll(".pointed")) marked.classList.remove("pointed");
    this.#grid.tBodies[0].rows[row].cells[0].classList.add("pointed");
    this.#grid.tHead.rows[0].cells[column + 1].classList.add("pointed");
  }

  #move(event) {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const cell = event.target.closest("td");
    if (!cell) return;
    const [row, column] = cell.dataset.at.split(",").map(Number);
    const [down, right] = steps[event.key] ?? [0, 0];
    const wanted = { Home: [row, 0], End: [row, Infinity] }[event.key] ?? [row + down, column + right];
    if (!(event.key in steps) && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    const { source, target } = this.#tokens;
    const [r, c] = [Math.max(0, Math.min(target.length - 1, wanted[0])), Math.max(0, Math.min(source.length - 1, wanted[1]))];
    const next = this.#grid.tBodies[0].rows[r].cells[c + 1];
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}

/** A piece as people read it: the mark of a word's beginning becomes a space, and a space is shown. */
function visible(token) {
  const text = token.replaceAll("▁", " ");
  return text.trim() === "" ? "␣" : text.trim();
}
