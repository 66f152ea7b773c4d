// Starts the page: reads what the server offers, then each tab for itself.

import { key, readServer } from "./api.js";
import { closeDialogs, KeyDialog, TermsDialog } from "./dialogs.js";
import { byId, forThisTab, make, remembered } from "./dom.js";
import { FilesTab } from "./files.js";
import { History } from "./history.js";
import { Languages } from "./languages.js";
import { Origin } from "./origin.js";
import { Problem } from "./problems.js";
import { fill, language, LANGUAGES, t } from "./strings.js";
import { SummarizeTab } from "./summarize.js";
import { TranslateTab } from "./translate.js";

document.documentElement.lang = language;
document.title = t("title");
fill();
closeDialogs();
themeSwitch();
languageSwitch();
start();

async function start() {
  const problem = new Problem(byId("start-problem"), () => {});
  problem.clear();
  let server;
  try {
    server = await readServer();
  } catch (error) {
    return problem.show(error, start);
  }
  const { settings } = server;
  const models = server.models.filter(({ task }) => task); // the others are not loaded
  const languages = new Languages(server.languages, models);
  const keys = new KeyDialog(settings.keyRequired === true || settings.apiKeys === true);
  const shared = { settings, languages, origin: new Origin(models), askForKey: (then) => keys.open(then) };
  const summarizers = models.filter(({ task }) => task === "summarize");
  new TranslateTab({ ...shared, terms: new TermsDialog(languages), history: new History() });
  if (summarizers.length) new SummarizeTab({ ...shared, models: summarizers });
  const files = await FilesTab.offered(shared);
  tabs({ translate: true, summarize: summarizers.length > 0, files });
  document.body.dataset.ready = key.get() ? "key" : "open";
}

/** The tabs that the server can serve; the address keeps which one is open. */
function tabs(offered) {
  const all = [...document.querySelectorAll("[role=tab]")];
  const shown = all.filter(({ dataset }) => offered[dataset.tab]);
  for (const tab of all) tab.hidden = !shown.includes(tab);
  byId("tabs").hidden = shown.length < 2;
  const open = (wanted, focus = false) => {
    for (const tab of shown) {
      const selected = tab === wanted;
      tab.setAttribute("aria-selected", String(selected));
      tab.tabIndex = selected ? 0 : -1;
      byId(tab.getAttribute("aria-controls")).hidden = !selected;
    }
    // Text and files share the pickers: they move to the tab that is open.
    byId(wanted.getAttribute("aria-controls")).querySelector("[data-languages]")?.append(byId("languages"));
    history.replaceState(null, "", `#${wanted.dataset.tab}`);
    if (focus) wanted.focus();
  };
  for (const [number, tab] of shown.entries()) {
    tab.addEventListener("click", () => open(tab));
    tab.addEventListener("keydown", ({ key: pressed }) => {
      const wanted = { ArrowRight: number + 1, ArrowLeft: number - 1, Home: 0, End: shown.length - 1 }[pressed];
      if (wanted !== undefined) open(shown[(wanted + shown.length) % shown.length], true);
    });
  }
  const named = () => shown.find(({ dataset }) => location.hash === `#${dataset.tab}`);
  window.addEventListener("hashchange", () => named() && open(named()));
  if (named()) open(named());
}

function themeSwitch() {
  const button = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const label = () => {
    button.title = dark() ? t("themeLight") : t("themeDark");
    button.setAttribute("aria-label", button.title);
  };
  button.addEventListener("click", () => {
    const theme = dark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    // Who goes back to the system's own theme follows the system again.
    const followed = (theme === "dark") === system.matches;
    remembered.set("theme", followed ? null : theme);
    if (followed) delete document.documentElement.dataset.theme;
    label();
  });
  system.addEventListener("change", label);
  label();
}

/** The page's own language: it is read anew in another one, with what was typed. */
function languageSwitch() {
  const fields = ["source-text", "sum-text"].map(byId);
  const typed = forThisTab.get("typed", []);
  forThisTab.set("typed", null);
  for (const [number, field] of fields.entries()) field.value ||= typed[number] ?? "";
  const choice = byId("interface");
  choice.replaceChildren(...Object.entries(LANGUAGES).map(([value, name]) => make("option", { value, lang: value }, name)));
  choice.value = language;
  choice.addEventListener("change", () => {
    remembered.set("language", choice.value);
    forThisTab.set("typed", fields.map(({ value }) => value));
    location.reload();
  });
}
