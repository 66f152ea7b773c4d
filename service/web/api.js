// The server, and what its errors mean.

import { forThisTab } from "./dom.js";

/** An error that the server answered, or that there was no answer (status 0). */
export class ApiError extends Error {
  constructor(status, body = {}, retryAfter = null) {
    super(body.error ?? "");
    this.status = status;
    this.code = body.code ?? "";
    this.detail = body.detail;
    this.id = body.request_id ?? "";
    this.retryAfter = retryAfter;
  }

  /** Whether a key, or another one, would help. */
  get wantsKey() {
    return this.status === 401 || (this.status === 403 && this.code !== "admin_required");
  }

  /** Whether the same request is worth sending again after a while. */
  get passes() {
    return (this.status === 429 && this.code !== "quota_exceeded") || this.status === 503;
  }
}

/** Whether an error only says that a newer request took this one's place. */
export const superseded = (error) => error?.name === "AbortError";

export const key = {
  get: () => forThisTab.get("key", ""),
  set: (value) => forThisTab.set("key", value || null),
};

function headers(more = {}) {
  const value = key.get();
  return value ? { ...more, Authorization: `Bearer ${value}` } : more;
}

async function failure(response) {
  const body = await response.json().catch(() => ({}));
  const seconds = Number.parseFloat(response.headers.get("Retry-After"));
  return new ApiError(response.status, body, Number.isFinite(seconds) ? Math.max(1, Math.ceil(seconds)) : null);
}

/** The reply to a request. Raises ApiError; AbortError where `signal` says so. */
async function send(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: headers(options.headers), cache: "no-store" });
  } catch (error) {
    if (superseded(error)) throw error;
    throw new ApiError(0);
  }
  if (!response.ok) throw await failure(response);
  return response;
}

export async function getJson(path, signal) {
  return (await send(path, { signal })).json();
}

export async function postJson(path, body, signal) {
  const options = { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal };
  return (await send(path, options)).json();
}

/**
 * The reply to a request whose parts are wanted as soon as they are finished.
 *
 * `onPart(name, data)` gets each server-sent event but the last one; the reply is what came with that.
 */
export async function postForEvents(path, body, onPart, signal) {
  const asked = { "Content-Type": "application/json", Accept: "text/event-stream" };
  const response = await send(path, { method: "POST", body: JSON.stringify(body), headers: asked, signal });
  let pending = "";
  try {
    for await (const text of chunks(response.body)) {
      const events = (pending + text).split("\n\n");
      pending = events.pop();
      for (const event of events) {
        const { name, data } = read(event);
        if (name === "done") return data;
        if (name === "error") throw new ApiError(LATE[data.code] ?? 500, data);
        if (name) onPart(name, data);
      }
    }
  } catch (error) {
    if (superseded(error) || error instanceof ApiError) throw error;
    throw new ApiError(0);
  }
  throw new ApiError(0); // the connection ended before the reply did
}

/** The statuses of errors that come after the first event, where the response has its status already. */
const LATE = { deadline: 504, draining: 503, overloaded: 503 };

async function* chunks(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    reader.cancel().catch(() => {});
  }
}

function read(event) {
  const fields = event.split("\n").map((line) => /^(event|data): ?(.*)$/.exec(line)).filter(Boolean);
  const of = (name) => fields.filter((field) => field[1] === name).map((field) => field[2]).join("\n");
  return { name: of("event"), data: JSON.parse(of("data") || "null") };
}

export const remove = (path) => send(path, { method: "DELETE" });

export async function getBlob(path) {
  return (await send(path)).blob();
}

/**
 * Send a form with its progress, which `fetch` cannot tell.
 *
 * `onProgress` gets the share that was sent, 0 to 1. Returns {reply, abort}: a promise of the reply's JSON, and a
 * function that stops it.
 */
export function upload(path, form, onProgress) {
  const request = new XMLHttpRequest();
  const reply = new Promise((resolve, reject) => {
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) onProgress(event.loaded / event.total);
    });
    request.addEventListener("load", () => {
      const body = parsed(request.responseText);
      const seconds = Number.parseFloat(request.getResponseHeader("Retry-After"));
      if (request.status >= 200 && request.status < 300) resolve(body);
      else reject(new ApiError(request.status, body, Number.isFinite(seconds) ? Math.ceil(seconds) : null));
    });
    request.addEventListener("error", () => reject(new ApiError(0)));
    request.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError")));
    request.open("POST", path);
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.send(form);
  });
  return { reply, abort: () => request.abort() };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** What the server tells about itself; parts that it does not tell are null or empty. */
export async function readServer() {
  const [settings, languages, models] = await Promise.allSettled([
    getJson("frontend/settings"),
    getJson("languages"),
    getJson("models"),
  ]);
  if (languages.status === "rejected") throw languages.reason;
  return {
    settings: settings.value ?? {},
    languages: languages.value,
    models: models.value ?? [],
  };
}
