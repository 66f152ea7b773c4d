// What is to be said of a translation besides the text: what the server could not do as it was asked, and what to check.

import { languageName, t } from "./strings.js";

/** The notes on a reply, in one line. `pair`: with the language that was detected; null = nothing was translated. */
export function notesOf(reply, translation, pair) {
  const lost = (reply.protected ?? []).filter(({ kept }) => !kept).map(({ text }) => text);
  const missing = (reply.glossary ?? []).filter(({ found }) => !found).map(({ target }) => target);
  const some = (test) => translation?.sentences.some(test) ?? false;
  const notes = [
    pair && reply.detectedLanguage?.language === pair.target ? t("already", { language: languageName(pair.target) }) : "",
    reply.via ? t("through", { language: languageName(reply.via) }) : "",
    lost.length ? t("notKept", { texts: lost.join(", ") }) : "",
    missing.length ? t("notFound", { terms: missing.join(", ") }) : "",
    some(({ repetition }) => repetition) ? t("repetition") : "",
    some(({ reworded }) => reworded) ? t("remembered") : "",
    some(({ weak }) => weak) ? t("weak") : "",
    some(({ doubtful }) => doubtful.length) ? t("doubtful") : "",
  ];
  return notes.filter(Boolean).join(" ");
}
