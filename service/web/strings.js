// Every text of the page. A translation of the interface is another object like EN; see `language` below.

const EN = {
  title: "Tandem: translate and summarize",
  skip: "Skip to the text",
  sections: "What to do",
  translate: "Translate",
  summarize: "Summarize",
  files: "Files",
  close: "Close",
  cancel: "Cancel",
  save: "Save",
  remove: "Remove",

  themeDark: "Use dark colours",
  themeLight: "Use light colours",

  from: "Translate from",
  to: "Translate into",
  detect: "Detect language",
  detected: "{language} (detected)",
  detectedTitle: "Detected with {confidence} % confidence",
  swap: "Swap languages",
  swapNot: "Languages cannot be swapped: this server does not translate {source} into {target}",
  sourceText: "Text to translate",
  sourcePlaceholder: "Type or paste text",
  example: "Try an example",
  targetText: "Translation",
  targetEmpty: "The translation appears here as you type.",
  tip: "Point at a word to see what it comes from. Choose a sentence for other wordings.",
  sentenceHelp: "Enter shows other wordings, arrow keys go from word to word.",
  wordFrom: "{word}, from {origin}",
  wordAlone: "{word}, aligned with nothing",
  announced: "Translation: {text}",
  clear: "Clear the text",
  copy: "Copy",
  copied: "Copied",
  copyFailed: "The browser did not let the text be copied. Select it and copy it yourself.",
  attention: "Attention",
  terms: "Terms",
  termsOn: "Terms ({count})",

  count: "{count} characters",
  countOne: "1 character",
  countOf: "{count} of {limit} characters",
  tooLong: "{over} too many for one request. Shorten the text, or send it in parts.",
  seconds: "{seconds} s",
  secondsTitle: "Time that the server took",

  alternatives: "Other wordings",
  alternativesLoading: "Looking for other wordings…",
  alternativesNone: "The model has no other wording for this sentence.",
  chosen: "Wording changed: {text}",

  already: "This text seems to be in {language} already.",
  through: "No model here translates this pair directly: it went through {language}.",
  notKept: "Not kept as it was: {texts}",
  notFound: "Not found in the translation: {terms}",
  repetition: "The model began to repeat itself in one sentence; that sentence was cut short.",

  heatTitle: "Attention",
  heatAbout:
    "Each row is a token that was written, each column a token that was read. The stronger the colour, the more the model looked there.",
  heatSentence: "Sentence",
  heatSentenceOf: "{number} of {count}: {text}",
  heatCell: "“{target}” looked at “{source}”: {percent} %",
  heatHint: "Point at a cell, or go through the table with the arrow keys.",
  heatMissing: "The server sent no attention for this sentence.",
  heatLess: "less",
  heatMore: "more",
  heatCorner: "written ↓ read →",

  sumText: "Text to summarize",
  sumPlaceholder: "Paste an article or an abstract",
  sumEmpty: "The summary appears here.",
  sumButton: "Summarize",
  sumLength: "Length",
  short: "Short",
  medium: "Medium",
  long: "Long",
  sumLanguage: "Language of the text",
  sumTruncated: "The text is longer than this model reads: only its beginning was summarized.",
  sumOther: "Another summary",
  sumVersion: "Version {number} of {count}",
  sumAnnounced: "Summary: {text}",
  sumShortcut: "Ctrl + Enter",

  fileChoose: "Choose a file",
  fileDrop: "or drop it here",
  fileList: "Your files",
  fileNone: "No file yet. The translation can be downloaded as soon as it is finished.",
  fileUploading: "Sending, {percent} %",
  fileQueued: "Waiting",
  fileRunning: "Translating, {percent} %",
  fileRunningPlain: "Translating",
  fileDone: "Finished",
  fileFailed: "Failed",
  fileCancelled: "Cancelled",
  fileExpired: "Expired: the server keeps it no longer",
  fileDownload: "Download",
  fileCancelOne: "Cancel {name}",
  fileRemoveOne: "Remove {name}",
  fileDownloadOne: "Download the translation of {name}",
  fileProgress: "Progress of {name}",
  fileUntil: "kept until {time}",
  fileAnnounced: "{name}: {state}",

  termsTitle: "Terms",
  termsAbout: "Words that are always to be translated in one way, from {source} into {target}. They are kept in this browser.",
  termSource: "Term",
  termTarget: "Its translation",
  termSourceOf: "Term {number}",
  termTargetOf: "Translation of term {number}",
  termAdd: "Add a term",
  termRemove: "Remove term {number}",
  termsProtect: "Keep links, e-mail addresses and placeholders such as {name} as they are",

  key: "API key",
  keyTitle: "API key",
  keyAbout: "This server may ask for a key. It is kept until you close this tab, and sent to this server only.",
  keyForget: "Forget the key",
  keyEnter: "Enter a key",

  models: "Models and training text",
  modelPair: "{source} to {target}",
  modelSummary: "Summaries, {source}",
  modelPostedit: "Post-editing, {source} to {target}",
  modelTrained: "Trained on: {attribution}",
  modelLicence: "Licence: {licence}",
  modelNone: "The server names no models.",
  apiDocs: "API documentation",

  again: "Try again",
  againNow: "Try now",
  againIn: "Trying again in {seconds} s.",
  errorNetwork: "The server cannot be reached. Check the connection.",
  errorKeyMissing: "This server asks for an API key.",
  errorKeyInvalid: "The server does not accept this API key.",
  errorForbidden: "This key does not allow that.",
  errorTooLarge: "The text is too long: at most {bound} are taken at once, and this is {value}.",
  errorTooLargePlain: "The text is too long for one request. Send it in parts.",
  errorFileTooLarge: "The file is too large for this server.",
  errorRate: "Too many requests in a short time.",
  errorQuota: "The quota of this key is used up.",
  errorBusy: "The server is busy.",
  errorDraining: "The server is being restarted.",
  errorDeadline: "This took too long and was stopped. Send less text at once.",
  errorServer: "Something went wrong on the server.",
  errorPair: "This server does not translate {source} into {target}.",
  errorDetectedPair: "This looks like {source}, which this server does not translate into {target}. Choose the language yourself if that is wrong.",
  errorOther: "The server refused this: {message}",
  errorId: "Report it with this id: {id}",
  errorNothing: "No translation model is loaded on this server.",
};

/** One sentence for "Try an example" and the like, by source language; missing ones hide the button. */
export const EXAMPLES = {
  cs: "Kde je prosím nejbližší nádraží?",
  de: "Wo ist der nächste Bahnhof? Ich habe meinen Schlüssel im Zug vergessen.",
  en: "Where is the nearest station? I left my key on the train.",
  es: "¿Dónde está la estación más cercana? He olvidado mi llave en el tren.",
  fr: "Où est la gare la plus proche ? J’ai oublié ma clé dans le train.",
  it: "Dov’è la stazione più vicina? Ho dimenticato la chiave sul treno.",
};

export const SUMMARY_EXAMPLE =
  "We propose a method to estimate the depth of a scene from a single image. A convolutional network is trained on " +
  "pairs of images without any labels. Experiments on a public dataset show that it is more accurate than supervised " +
  "methods.";

const strings = EN;
export const language = "en";

const numbers = new Intl.NumberFormat(language);
const names = typeof Intl.DisplayNames === "function" ? new Intl.DisplayNames([language], { type: "language" }) : null;

/** The text of that key, with its `{places}` filled; numbers are written as the language writes them. */
export function t(key, places = {}) {
  const text = strings[key];
  if (text === undefined) throw new Error(`no text is named ${key}`);
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in places ? written(places[name]) : whole));
}

function written(value) {
  return typeof value === "number" ? numbers.format(value) : String(value);
}

/** The name of a language, from the browser; the code where it knows none. */
export function languageName(code) {
  try {
    return names?.of(code) ?? code;
  } catch {
    return code;
  }
}

/** Fill the page's fixed texts: `data-t` names an element's text, `data-t-*` an attribute's. */
export function fill(root = document) {
  for (const element of root.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
  const attributes = { tLabel: "aria-label", tPlaceholder: "placeholder", tTitle: "title" };
  for (const [data, attribute] of Object.entries(attributes)) {
    const name = data.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    for (const element of root.querySelectorAll(`[data-${name}]`)) {
      element.setAttribute(attribute, t(element.dataset[data]));
    }
  }
}
