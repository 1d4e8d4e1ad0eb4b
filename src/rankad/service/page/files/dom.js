// Elements from text: nothing that came with a table is ever parsed as HTML.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

function made(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

export const el = (tag, attributes, ...children) => made(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => made(document.createElementNS(SVG, tag), attributes, children);
export const fill = (node, ...children) => node.replaceChildren(...children.flat().filter((child) => child != null && child !== false));
export const say = (id, text) => { $(id).textContent = text ?? ""; };

export function options(select, entries, chosen) {
  fill(select, entries.map(([value, text, attributes]) => el("option", { value, selected: value === chosen, ...attributes }, text)));
}

export const count = (n) => n.toLocaleString("en-US");
export const counted = (n, thing) => `${count(n)} ${thing}${n === 1 ? "" : "s"}`;

export function figure(value, digits = 3) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-5 || size >= 1e7) return value.toExponential(digits - 1).replace(/\.?0+e\+?/, "e").replace("-", "−");
  const places = Math.min(Math.max(digits - 1 - Math.floor(Math.log10(size)), 0), 12);
  const text = value.toFixed(places);
  return (text.includes(".") ? text.replace(/\.?0+$/, "") : text).replace("-", "−");
}

export const percent = (share, digits = 3) => `${figure(100 * share, digits)}\u00a0%`;

// Call the last of several quick calls, once nothing has come for a moment.
export function settled(task, wait = 160) {
  let timer = 0;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => task(...given), wait); };
}
