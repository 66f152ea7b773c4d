// Whose models answer, and whose text they were trained on: in one line beside a result, and in full below the page.

import { byId, make } from "./dom.js";
import { directions } from "./languages.js";
import { languageName, t } from "./strings.js";

/** Directions of a model that are listed one by one. */
const MOST_PAIRS = 6;

export class Origin {
  #models;

  /** `models`: those of GET /models that are loaded. */
  constructor(models) {
    this.#models = models;
    const entries = models.map((model) => make("li", {}, ...described(model)));
    byId("models-list").replaceChildren(...(entries.length ? entries : [make("li", {}, t("modelNone"))]));
  }

  /** Fill the line of a result. `answered`: the models as a reply names them; null = none, and no line. */
  show(place, answered) {
    place.replaceChildren();
    if (!answered) return;
    const names = answered.split(", ");
    const licences = this.#models.filter(({ name }) => names.includes(name)).map(({ licence }) => licence);
    const facts = [t("originModel", { models: answered })];
    if (licences.length) facts.push(t("modelLicence", { licence: [...new Set(licences)].join(", ") }));
    const more = make("a", { href: "#models", onclick: unfold }, t("originMore"));
    place.append(`${facts.join(" · ")} · `, more);
  }
}

/** Open the list below the page. The address keeps which tab is open, so it is no plain link. */
function unfold(event) {
  event.preventDefault();
  const models = byId("models");
  models.open = true;
  models.scrollIntoView({ block: "nearest" });
  models.querySelector("summary").focus();
}

function described(model) {
  return [
    make("strong", {}, purpose(model)),
    make("span", { class: "name" }, model.name),
    model.origin ? imported(model.origin) : folded(t("modelTrained", { attribution: model.attribution.join("; ") || "–" })),
    make("span", {}, t("modelLicence", { licence: model.licence })),
  ];
}

/** Where a model comes from that was not trained here: a link, where it says one. */
function imported({ form, url }) {
  const said = t("modelImported", { form });
  if (!/^https?:/.test(url ?? "")) return make("span", {}, said);
  return make("span", {}, `${said}, `, make("a", { href: url, rel: "noreferrer" }, url));
}

/** A text, or its beginning and the rest of it when somebody asks for that. */
function folded(text, shown = 200) {
  if (text.length <= shown) return make("span", {}, text);
  return make("details", {}, make("summary", {}, `${text.slice(0, shown)} …`), `… ${text.slice(shown)}`);
}

/** What a model does, in words. Each direction by itself, unless there are many: a public model may have thousands. */
function purpose(model) {
  const task = { translate: "modelPair", summarize: "modelSummary", postedit: "modelPostedit" }[model.task];
  if (!task) return model.name;
  const pairs = model.task === "translate" ? directions(model) : [];
  if (pairs.length > 0 && pairs.length <= MOST_PAIRS) {
    return pairs.map(({ source, target }) => t(task, { source: languageName(source), target: languageName(target) })).join(", ");
  }
  const target = languageName(model.target_language);
  return t(task, { source: model.source_languages.map(languageName).join(", "), target });
}
