// Errors in words, beside what caused them: with a countdown where waiting helps, and the way to a key where one does.

import { key } from "./api.js";
import { icon, make } from "./dom.js";
import { languageName, t } from "./strings.js";

/** What is said of an error with that code, whatever else it says of itself in the server's language. */
const BY_CODE = {
  body_timeout: "errorNetwork",
  broken_file: "errorFileBroken",
  deadline: "errorDeadline",
  decoding_failed: "errorServer",
  draining: "errorDraining",
  file_gone: "fileExpired",
  file_too_complex: "errorFileComplex",
  file_too_large: "errorFileTooLarge",
  files_full: "errorFilesFull",
  internal: "errorServer",
  memory_limit: "errorMemory",
  model_not_found: "errorModel",
  overloaded: "errorBusy",
  quota_exceeded: "errorQuota",
  storage_unavailable: "errorServer",
  too_many_files: "errorTooManyFiles",
};
/** What is said of the others, where they come with that status. */
const BY_STATUS = { 0: "errorNetwork", 403: "errorForbidden", 429: "errorRate", 456: "errorQuota", 503: "errorBusy", 504: "errorDeadline" };

/** What an error says to people. `asked`: {source, target} of a text, {summarized} languages, the {file}, or {about}. */
export function inWords(error, asked = {}) {
  const words = sentence(error, asked) ?? t("errorOther");
  return asked.about ? `${asked.about}: ${words}` : words;
}

/** The same without what it is about; null = no more than that it was refused. */
function sentence(error, asked) {
  const { status, code, detail } = error;
  if (status === 401 || (error.wantsKey && !key.get())) return t("errorKeyMissing");
  if (error.wantsKey) return t("errorKeyInvalid");
  if (Object.hasOwn(BY_CODE, code)) return t(BY_CODE[code]);
  if (code === "unsupported_file") return detail?.endings ? t("errorFileKind") : t("errorFileContent");
  if (code === "invalid_field") return badField(detail?.[0]?.field ?? "", asked);
  if (status === 413) return asked.file ? t("errorFileTooLarge") : tooLarge(detail);
  if (Object.hasOwn(BY_STATUS, status)) return t(BY_STATUS[status]);
  if (code === "pair_not_served" || code === "language_not_served") return notServed(detail, asked);
  return status >= 500 ? t("errorServer") : null;
}

/** The page keeps all bounds but those that it cannot know: which texts a model summarizes, and terms of a glossary. */
function badField(field, { summarized }) {
  if (field === "q" && summarized) {
    return t("errorNotSummarized", { languages: summarized.map(languageName).join(", "), method: t("sumAuto") });
  }
  return field.startsWith("glossary") ? t("errorTerms") : null;
}

function tooLarge(detail) {
  if (typeof detail?.bound === "number" && typeof detail?.value === "number") return t("errorTooLarge", detail);
  return t("errorTooLargePlain");
}

function notServed(detail, { source, target }) {
  if (!target) return null;
  const names = { source: languageName(source), target: languageName(target) };
  if (source !== "auto") return t("errorPair", names);
  const found = detail?.detected?.language;
  if (!found) return null;
  const language = languageName(found);
  return language === found ? t("errorDetectedUnknown", names) : t("errorDetectedPair", { ...names, source: language });
}

/** The place where one part of the page shows its error. */
export class Problem {
  #place;
  #askForKey;
  #timer = 0;

  /** `place`: an empty element. `askForKey`: opens the dialog and calls its argument once there is a key. */
  constructor(place, askForKey) {
    this.#place = place;
    this.#askForKey = askForKey;
  }

  clear() {
    clearInterval(this.#timer);
    this.#place.replaceChildren();
    this.#place.hidden = true;
  }

  /** Show an error; `again` sends the request once more. */
  show(error, again, asked) {
    this.clear();
    // Beside its file an error need not name it, but who only hears it has to know.
    const about = asked?.file ? make("span", { class: "offscreen" }, `${asked.file}: `) : null;
    const text = make("p", { role: "alert" }, about, inWords(error, asked));
    const actions = make("p", { class: "actions" });
    if (error.wantsKey) {
      actions.append(this.#button(t("keyEnter"), () => this.#askForKey(again)));
    } else if (error.passes) {
      this.#countDown(actions, error.retryAfter ?? 5, again);
    } else if (error.status === 0 || error.status >= 500) {
      actions.append(this.#button(t("again"), again));
    }
    const id = error.status >= 500 && !error.passes && error.id ? make("small", {}, t("errorId", { id: error.id })) : null;
    const said = sentence(error, asked ?? {}) === null && error.message ? this.#said(error.message) : null;
    this.#fill(text, said, actions, id);
  }

  /** Say something that no request caused. */
  say(text) {
    this.clear();
    this.#fill(make("p", { role: "alert" }, text));
  }

  #fill(...parts) {
    const body = make("div", {}, ...parts.filter((part) => part && (part.tagName !== "P" || part.childNodes.length)));
    this.#place.append(icon("warning"), body);
    this.#place.hidden = false;
  }

  /** The server's own words, for whoever asks for them: they are in English, and about fields of a request. */
  #said(message) {
    return make("details", {}, make("summary", {}, t("errorSaid")), make("span", { lang: "en" }, message));
  }

  #button(label, work) {
    return make("button", { type: "button", class: "plain", onclick: work }, label);
  }

  #countDown(actions, seconds, again) {
    // Not read out every second: the sentence before it was, once.
    const clock = make("span", { "aria-hidden": "true" }, t("againIn", { seconds }));
    const until = Date.now() + seconds * 1000;
    const retry = () => {
      clearInterval(this.#timer);
      again();
    };
    this.#timer = setInterval(() => {
      const left = Math.ceil((until - Date.now()) / 1000);
      if (left <= 0) retry();
      else clock.textContent = t("againIn", { seconds: left });
    }, 250);
    actions.append(clock, this.#button(t("againNow"), retry));
  }
}
