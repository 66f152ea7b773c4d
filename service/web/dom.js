// Small helpers: elements, announcements, storage, and characters as the server counts them.

/** The element of that id. */
export const byId = (id) => document.getElementById(id);

/**
 * A new element. Properties are set as properties, `data-` and `aria-` and the like as attributes; children are
 * elements or texts, never markup.
 */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name in element && name !== "list" && name !== "role") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** One of the icons that index.html defines. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#i-${name}`);
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

/** Say something to people who listen to the page instead of seeing it. */
export function announce(text) {
  const live = byId("live");
  // The same text twice is said twice only where it changes in between.
  live.textContent = live.textContent === text ? `${text}\u00a0` : text;
}

/** Browser storage that may be switched off: nothing is remembered then. */
export const remembered = store(() => localStorage);
export const forThisTab = store(() => sessionStorage);

function store(area) {
  return {
    get(name, otherwise = null) {
      try {
        const value = area().getItem(`tandem.${name}`);
        return value === null ? otherwise : JSON.parse(value);
      } catch {
        return otherwise;
      }
    },
    set(name, value) {
      try {
        if (value === null) area().removeItem(`tandem.${name}`);
        else area().setItem(`tandem.${name}`, JSON.stringify(value));
      } catch {
        // Nothing to do: the page works without.
      }
    },
  };
}

/** Characters as the server counts them: Unicode code points. */
export function countCharacters(text) {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

// What the server removes before it counts offsets: control characters but tab and newline, lone surrogates, the
// byte-order mark, and the noncharacters.
const REMOVED = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\ufeff\p{Surrogate}\p{Noncharacter_Code_Point}]/u;
const CLUSTER = /\P{M}\p{M}*|\p{M}+/gu;

/**
 * Where each character that the server saw stands in the text that was typed.
 *
 * The server reads text in Unicode NFC without control characters, and counts code points; JavaScript counts UTF-16
 * units. Returns the offsets in UTF-16 units, one per code point and one for the end; null where the normal form
 * cannot be followed character by character (conjoining Hangul), and offsets would be off.
 */
export function offsetsOf(text) {
  const offsets = [];
  let normal = "";
  for (const { 0: cluster, index } of text.matchAll(CLUSTER)) {
    const kept = [...cluster].filter((character) => !REMOVED.test(character)).join("").normalize("NFC");
    normal += kept;
    let inside = index;
    for (const character of kept) {
      offsets.push(Math.min(inside, index + cluster.length - 1));
      inside += character.length;
    }
  }
  offsets.push(text.length);
  return normal === normal.normalize("NFC") ? offsets : null;
}

/** Run a function once things have been quiet for so many milliseconds; `now` and `cancel` cut the wait short. */
export function debounced(work, wait) {
  let timer = 0;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(work, wait);
  };
  later.cancel = () => clearTimeout(timer);
  later.now = () => {
    clearTimeout(timer);
    return work();
  };
  return later;
}

/** Copy a text; returns whether the browser let it. Works without https, where the clipboard's interface is missing. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea", { value: text, class: "offscreen", readOnly: true, "aria-hidden": "true" });
    const focused = document.activeElement;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    focused?.focus();
    return done;
  }
}
