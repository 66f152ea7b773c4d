// The files tab: send a file, watch its translation, stop it, fetch the result.

import { ApiError, getBlob, getJson, key, remove, superseded, upload } from "./api.js";
import { announce, byId, forThisTab, icon, make } from "./dom.js";
import { inWords, Problem } from "./problems.js";
import { language, t } from "./strings.js";

const WAITS = [500, 1000, 2000, 4000]; // milliseconds between two questions about a file, growing
const ENDED = ["done", "failed", "cancelled", "expired"];

export class FilesTab {
  #languages;
  #askForKey;
  #list = byId("files-list");
  #input = byId("file-input");

  /** Set up the tab where the server takes files; returns whether it does. */
  static async offered(shared) {
    const { settings } = shared;
    if (settings.filesTranslation !== true || shared.languages.none) return false;
    new FilesTab(shared).#start(await sentFiles(), settings);
    return true;
  }

  constructor({ languages, askForKey }) {
    this.#languages = languages;
    this.#askForKey = askForKey;
  }

  #start(jobs, settings) {
    const kinds = (settings.supportedFilesFormat ?? []).map((kind) => (kind.startsWith(".") ? kind : `.${kind}`));
    this.#input.accept = kinds.join(",");
    byId("file-kinds").textContent = kinds.join("  ");
    this.#input.addEventListener("change", () => {
      this.#sendAll(this.#input.files);
      this.#input.value = "";
    });
    const zone = byId("file-zone");
    zone.addEventListener("dragover", (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      zone.classList.remove("over");
      this.#sendAll(event.dataTransfer.files);
    });
    for (const job of jobs.reverse()) this.#entry(job.name).watch(job);
    this.#showEmpty();
  }

  #sendAll(files) {
    for (const file of files) this.#entry(file.name).send(file, () => this.#languages.pair);
  }

  #entry(name) {
    const entry = new FileEntry(name, () => this.#showEmpty(), this.#askForKey);
    this.#list.prepend(entry.element);
    this.#showEmpty();
    return entry;
  }

  #showEmpty() {
    byId("files-empty").hidden = this.#list.children.length > 0;
  }
}

/** One file in the list, with its own errors. */
class FileEntry {
  #name;
  #state = make("span", { class: "state" });
  #bar = make("progress", { max: 1 });
  #actions = make("span", { class: "buttons" });
  #timer = 0;
  #sending = null;
  #gone;
  #problem;

  constructor(name, gone, askForKey) {
    const problem = make("div", { class: "problem", hidden: true });
    this.#name = name;
    this.#gone = gone;
    this.#problem = new Problem(problem, askForKey);
    this.#bar.setAttribute("aria-label", t("fileProgress", { name }));
    this.element = make(
      "li",
      {},
      make("span", { class: "name", dir: "auto" }, name),
      this.#state,
      this.#actions,
      this.#bar,
      problem,
    );
  }

  /** Send the file, then watch what becomes of it. `pairOf()`: its languages, as they are chosen when it is sent. */
  async send(file, pairOf) {
    const pair = pairOf();
    try {
      await this.#upload(file, pair);
    } catch (error) {
      if (superseded(error)) return this.remove();
      this.#refused(t("fileFailed"));
      this.#problem.show(error, () => this.send(file, pairOf), { ...pair, file: this.#name });
    }
  }

  async #upload(file, pair) {
    const form = new FormData();
    for (const [name, value] of Object.entries(pair)) if (value) form.append(name, value);
    form.append("file", file);
    this.#problem.clear();
    this.#show(t("fileUploading", { percent: 0 }), 0);
    this.#offer(this.#button("cancel", "close", "fileCancelOne", () => this.#sending.abort()));
    this.#sending = upload("files", form, (share) => this.#show(t("fileUploading", { percent: Math.floor(share * 100) }), share));
    const job = await this.#sending.reply;
    forThisTab.set("files", [job.id, ...forThisTab.get("files", [])]);
    this.watch(job);
  }

  /** Show a job of the server, and ask after it until it has ended. */
  watch(job, asked = 0) {
    const state = stateOf(job);
    this.#show(state.text, state.share);
    if (ENDED.includes(state.name)) return this.#ended(job, state);
    if (asked === 0) {
      this.#offer(this.#button("cancel", "close", "fileCancelOne", () => this.#delete(job.id)));
    }
    this.#timer = setTimeout(() => this.#ask(job.id, asked + 1), WAITS[Math.min(asked, WAITS.length - 1)]);
  }

  remove() {
    clearTimeout(this.#timer);
    this.#problem.clear();
    this.element.remove();
    this.#gone();
  }

  async #ask(id, asked) {
    try {
      this.watch(await getJson(`files/${encodeURIComponent(id)}`), asked);
    } catch (error) {
      if (error.passes || error.status === 0) {
        const wait = 1000 * (error.retryAfter ?? 5);
        this.#show(inWords(error), null);
        this.#timer = setTimeout(() => this.#ask(id, asked), wait);
      } else {
        this.#refused(error.status === 404 ? t("fileExpired") : inWords(error));
      }
    }
  }

  /** Show that nothing will become of it; all that can be done is to take it off the list. */
  #refused(text) {
    this.#show(text, undefined);
    this.#offer(this.#button("remove", "close", "fileRemoveOne", () => this.remove()));
  }

  #ended(job, state) {
    announce(t("fileAnnounced", { name: this.#name, state: state.text }));
    const remove = this.#button("remove", "close", "fileRemoveOne", () => this.#delete(job.id));
    const download = this.#button("fileDownload", "download", "fileDownloadOne", () => this.#download(job));
    this.#offer(...(state.name === "done" ? [download, remove] : [remove]));
    if (state.name === "failed" && job.code) this.#tell(new ApiError(422, { error: job.error, code: job.code }));
  }

  async #download(job) {
    this.#problem.clear();
    try {
      // Fetched by script and not by a link, because a link cannot carry the key.
      const url = URL.createObjectURL(await getBlob(`files/${encodeURIComponent(job.id)}/result`));
      const link = make("a", { href: url, download: job.result_name });
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    } catch (error) {
      this.#tell(error, () => this.#download(job));
    }
  }

  async #delete(id) {
    try {
      await remove(`files/${encodeURIComponent(id)}`);
    } catch (error) {
      if (error.status !== 404) return this.#tell(error, () => this.#delete(id));
    }
    forThisTab.set("files", forThisTab.get("files", []).filter((one) => one !== id));
    this.remove();
  }

  #tell(error, again) {
    this.#problem.show(error, again, { file: this.#name });
  }

  /** `share`: 0 to 1; null = unknown, still going on; undefined = nothing goes on. */
  #show(text, share) {
    this.#state.textContent = text;
    this.#bar.hidden = share === undefined;
    if (typeof share === "number") this.#bar.value = share;
    else this.#bar.removeAttribute("value");
  }

  #offer(...buttons) {
    const focused = this.#actions.contains(document.activeElement);
    this.#actions.replaceChildren(...buttons);
    if (focused) buttons[0]?.focus();
  }

  #button(label, symbol, spoken, work) {
    const button = make("button", { type: "button", class: "plain", onclick: work }, icon(symbol), make("span", {}, t(label)));
    button.setAttribute("aria-label", t(spoken, { name: this.#name }));
    return button;
  }
}

/**
 * The files that were sent before, the newest first. The server lists those of a key; who has none names the ids, which
 * this tab remembers.
 */
async function sentFiles() {
  const ids = forThisTab.get("files", []).slice(0, 100);
  const query = ids.map((id) => `id=${encodeURIComponent(id)}`).join("&");
  try {
    if (key.get()) return await getJson("files");
    return ids.length ? await getJson(`files?${query}`) : [];
  } catch {
    return []; // new ones can be sent all the same
  }
}

/** What a job's state is called here, what it says to people, and how far it is. */
function stateOf(job) {
  const until = job.expires ? `, ${t("fileUntil", { time: clock(job.expires) })}` : "";
  switch (job.status) {
    case "done":
      return { name: "done", text: t("fileDone") + until, share: undefined };
    case "failed":
      return { name: "failed", text: t("fileFailed"), share: undefined };
    case "cancelled":
      return { name: "cancelled", text: t("fileCancelled"), share: undefined };
    case "expired":
      return { name: "expired", text: t("fileExpired"), share: undefined };
    case "queued":
      return { name: "queued", text: t("fileQueued"), share: null };
    default: {
      const share = typeof job.progress === "number" ? job.progress : null;
      const text = share === null ? t("fileRunningPlain") : t("fileRunning", { percent: Math.floor(share * 100) });
      return { name: "running", text, share };
    }
  }
}

function clock(value) {
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" }).format(new Date(value));
}
