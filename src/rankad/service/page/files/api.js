// Requests to the server of this page, and to no other.
"use strict";

const KEY = "rankad-key";
let key = sessionStorage.getItem(KEY) ?? "";

export class Refused extends Error {
  constructor(status, code, message) { super(message); this.status = status; this.code = code; }
}

export const hasKey = () => key !== "";
export function useKey(given) {
  key = given.trim();
  if (key) sessionStorage.setItem(KEY, key); else sessionStorage.removeItem(KEY);
}

async function send(path, { method = "GET", body, signal } = {}) {
  const headers = {};
  if (key) headers.authorization = `Bearer ${key}`;
  if (method !== "GET") headers["x-rankad-page"] = "1";
  let answer;
  try {
    answer = await fetch(path, { method, body, headers, signal, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "unreachable", "The service does not answer. Is it still running?");
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  const { code = "http", message = `The service answered ${answer.status}.` } = told.error ?? {};
  throw new Refused(answer.status, code, message);
}

const query = (asked) => {
  const text = new URLSearchParams(Object.entries(asked ?? {}).filter(([, value]) => value != null)).toString();
  return text ? `?${text}` : "";
};

export const get = async (path, asked, signal) => (await send(path + query(asked), { signal })).json();
export const post = async (path, value) => (await send(path, { method: "POST", body: JSON.stringify(value ?? {}) })).json();
export const upload = async (file) => (await send(`page/tables${query({ name: file.name })}`, { method: "POST", body: file })).json();
export const numbers = async (path) => new Float64Array(await (await send(path)).arrayBuffer());

export async function download(path, asked) {
  const answer = await send(path + query(asked));
  const name = /filename="([\w.-]+)"/.exec(answer.headers.get("content-disposition") ?? "")?.[1] ?? "rankad";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// A function that gives up its last request when it makes the next.
export function lastOnly(task) {
  let before = null;
  return async (...given) => {
    before?.abort();
    const mine = before = new AbortController();
    try {
      return await task(mine.signal, ...given);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
      return undefined;
    }
  };
}
