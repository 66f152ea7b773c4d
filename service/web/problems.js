// Errors in words, beside what caused them: with a countdown where waiting helps, and the way to a key where one does.

import { key } from "./api.js";
import { icon, make } from "./dom.js";
import { languageName, t } from "./strings.js";

/** What an error says to people. `asked`: {source, target} of a text, {name} of a file, or what it is {about}. */
export function inWords(error, asked = {}) {
  const words = sentence(error, asked);
  const about = asked.name ?? asked.about;
  return about ? `${about}: ${words}` : words;
}

function sentence(error, asked) {
  const { status, code, detail, message } = error;
  if (status === 0) return t("errorNetwork");
  if (status === 401 || (error.wantsKey && !key.get())) return t("errorKeyMissing");
  if (status === 403) return error.wantsKey ? t("errorKeyInvalid") : t("errorForbidden");
  if (status === 413) return asked.name ? t("errorFileTooLarge") : tooLarge(detail);
  if (status === 429) return code === "quota_exceeded" ? t("errorQuota") : t("errorRate");
  if (status === 456) return t("errorQuota");
  if (status === 503) return code === "draining" ? t("errorDraining") : t("errorBusy");
  if (status === 504) return t("errorDeadline");
  if ((code === "pair_not_served" || code === "language_not_served") && asked.target) return notServed(error, asked);
  if (status >= 500) return t("errorServer");
  return t("errorOther", { message });
}

function tooLarge(detail) {
  if (typeof detail?.bound === "number" && typeof detail?.value === "number") return t("errorTooLarge", detail);
  return t("errorTooLargePlain");
}

function notServed(error, { source, target }) {
  const found = error.detail?.detected?.language;
  const names = { source: languageName(found ?? source), target: languageName(target) };
  if (source !== "auto") return t("errorPair", names);
  return found ? t("errorDetectedPair", names) : t("errorOther", { message: error.message });
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
    const text = make("p", { role: "alert" }, inWords(error, asked));
    const actions = make("p", { class: "actions" });
    if (error.wantsKey) {
      actions.append(this.#button(t("keyEnter"), () => this.#askForKey(again)));
    } else if (error.passes) {
      this.#countDown(actions, error.retryAfter ?? 5, again);
    } else if (error.status === 0 || error.status >= 500) {
      actions.append(this.#button(t("again"), again));
    }
    const id = error.status >= 500 && !error.passes && error.id ? make("small", {}, t("errorId", { id: error.id })) : null;
    this.#fill(text, actions, id);
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
