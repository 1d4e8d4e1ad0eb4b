// Rows in two columns or in a projection, coloured by p-value, with the part of the plane that is normal.
"use strict";
import { get, lastOnly } from "./api.js";
import { $, count, counted, figure, options, say, settled } from "./dom.js";
import { outline, thresholdAt } from "./region.js";

// What can be plotted beside columns; no column has such a name.
const PROJECTION = "\u0000", ROW = "\u0001", PVALUE = "\u0002";
const MARGIN = { left: 52, right: 12, top: 10, bottom: 30 };
const REACH = 14;
const canvas = $("scatter");
let now = null; // { answers, p, alpha, dots, region, window, row, onpick }
let quiet = false;

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const blend = (from, to, share) => `rgb(${parts(from).map((each, at) => Math.round(each + share * (parts(to)[at] - each))).join(" ")})`;

// Most of the range: a few far values must not press all others into a corner.
function range(values, whole) {
  const sorted = Float64Array.from(values).sort(), n = sorted.length;
  if (!n) return [0, 1];
  let [low, high] = [sorted[0], sorted[n - 1]];
  if (!whole) {
    const [a, b] = [sorted[Math.floor(0.02 * (n - 1))], sorted[Math.ceil(0.98 * (n - 1))]], reach = 0.75 * (b - a) || Math.abs(a) || 1;
    low = Math.max(low, a - reach); high = Math.min(high, b + reach);
  }
  const pad = 0.06 * (high - low) || Math.abs(high) * 0.1 || 1;
  return [low - pad, high + pad];
}

function steps(low, high, most) {
  const raw = (high - low) / most, unit = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map((k) => k * unit).find((each) => each >= raw);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + 1e-9 * step; at += step) found.push(Math.abs(at) < 1e-9 * step ? 0 : at);
  return found;
}

function layout() {
  const width = canvas.clientWidth, height = canvas.clientHeight, { left, right, top, bottom } = now.window;
  const across = (value) => MARGIN.left + ((value - left) / (right - left)) * (width - MARGIN.left - MARGIN.right);
  const up = (value) => height - MARGIN.bottom - ((value - bottom) / (top - bottom)) * (height - MARGIN.top - MARGIN.bottom);
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const dot = (at) => [across(clamp(now.dots.x[at], left, right)), up(clamp(now.dots.y[at], bottom, top))];
  return { width, height, across, up, dot };
}

export function draw() {
  if (!now?.dots) return;
  const ratio = devicePixelRatio || 1, { width, height, across, up, dot } = layout();
  canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const shade = Object.fromEntries(["alarm", "nominal", "scored", "line", "soft", "ink", "good", "panel"].map((name) => [name, color(name)]));
  axes(pen, shade, width, height, across, up);
  pen.save();
  pen.beginPath();
  pen.rect(MARGIN.left - 6, MARGIN.top - 6, width - MARGIN.left - MARGIN.right + 12, height - MARGIN.top - MARGIN.bottom + 12);
  pen.clip();
  if (now.region) normalPart(pen, shade, across, up);
  const log = Math.log(now.alpha), blends = Array.from({ length: 17 }, (_, at) => blend(shade.nominal, shade.scored, at / 16));
  for (const red of [false, true]) {
    for (let at = 0; at < now.dots.rows.length; at += 1) {
      const p = now.p[now.dots.rows[at]];
      if (p <= now.alpha !== red) continue;
      const [x, y] = dot(at);
      pen.globalAlpha = red ? 0.95 : 0.7;
      pen.fillStyle = red ? shade.alarm : blends[Math.round(16 * Math.min(Math.log(p) / log, 1))];
      pen.beginPath();
      pen.arc(x, y, red ? 4 : 2.4, 0, 7);
      pen.fill();
    }
  }
  pen.globalAlpha = 1;
  const chosen = now.dots.rows.indexOf(now.row);
  if (chosen >= 0) {
    pen.strokeStyle = shade.ink; pen.lineWidth = 2;
    pen.beginPath(); pen.arc(...dot(chosen), 8, 0, 7); pen.stroke();
  }
  pen.restore();
}

function axes(pen, shade, width, height, across, up) {
  pen.font = `11.5px ${color("sans")}`; pen.fillStyle = shade.soft; pen.strokeStyle = shade.line; pen.lineWidth = 1;
  const { left, right, top, bottom } = now.window, [first, second] = now.dots.labels;
  const write = (value, labels, step) => (labels ? labels[value] ?? "" : figure(value, Math.max(3, Math.ceil(Math.log10(Math.abs(value || 1) / step)) + 1)));
  const marks = (low, high, labels, most) => (labels ? labels.map((_, at) => at) : steps(low, high, most));
  const clip = (text, room) => { while (text.length > 1 && pen.measureText(text).width > room) text = `${text.slice(0, -2)}…`; return text; };
  const horizontal = marks(left, right, first, 5), vertical = marks(bottom, top, second, 5);
  pen.textAlign = "center";
  for (const value of horizontal) {
    const x = across(value);
    pen.beginPath(); pen.moveTo(x, MARGIN.top); pen.lineTo(x, height - MARGIN.bottom); pen.stroke();
    const label = clip(now.labelled.x(value) ?? write(value, first, right - left), (width - MARGIN.left) / horizontal.length);
    pen.fillText(label, Math.min(x, width - pen.measureText(label).width / 2), height - 10);
  }
  pen.textAlign = "right";
  for (const value of vertical) {
    const y = up(value);
    pen.beginPath(); pen.moveTo(MARGIN.left, y); pen.lineTo(width - MARGIN.right, y); pen.stroke();
    pen.fillText(clip(now.labelled.y(value) ?? write(value, second, top - bottom), MARGIN.left - 8), MARGIN.left - 6, y + 4);
  }
}

function normalPart(pen, shade, across, up) {
  const { size } = now.region, { left, right, bottom, top } = now.window;
  const place = ([i, j]) => [across(left + (i / (size - 1)) * (right - left)), up(bottom + (j / (size - 1)) * (top - bottom))];
  const { area, edge } = outline(now.region, thresholdAt(now.region, now.alpha), place);
  pen.fillStyle = shade.good; pen.globalAlpha = 0.13; pen.fill(area);
  pen.globalAlpha = 1; pen.strokeStyle = shade.good; pen.lineWidth = 1.5; pen.stroke(edge);
}

const askRegion = lastOnly(async (signal) => {
  const [x, y] = [$("x").value, $("y").value], numeric = (name) => now.answers.axes.find((axis) => axis.name === name)?.number;
  now.region = null;
  $("region-key").hidden = true;
  if (x === PROJECTION || x === y || !numeric(x) || !numeric(y)) return draw();
  // At first, the slice through the most normal row.
  const row = now.row ?? now.dots.rows.reduce((best, each) => (best === undefined || now.p[each] > now.p[best] ? each : best), undefined);
  if (row === undefined) return draw();
  const region = await get(`page/answers/${now.answers.id}/region`, { x, y, row, ...now.window }, signal);
  now.region = region;
  $("region-key").hidden = false;
  const empty = Math.max(...region.scores) < thresholdAt(region, now.alpha);
  say("region-words", region.whole ? "the level set: where rows are normal" : empty ? `nowhere normal: another column of row ${count(row + 1)} is to blame` : `where ${now.row == null ? "the most normal row" : "row"} (${count(row + 1)}) would be normal, its other columns as they are`);
  draw();
});

const askDots = lastOnly(async (signal) => {
  const x = $("x").value, y = $("y").value, projected = x === PROJECTION, column = (name) => (name === ROW || name === PVALUE ? now.answers.axes[0].name : name);
  $("y-label").hidden = projected;
  const dots = await get(`page/answers/${now.answers.id}/places`, projected ? {} : { x: column(x), y: column(y) }, signal);
  if (x === ROW) { dots.x = dots.rows.map((row) => row + 1); dots.labels[0] = null; }
  if (!projected && y === PVALUE) { dots.y = dots.rows.map((row) => now.p[row]); dots.labels[1] = null; }
  const [first, second] = dots.labels;
  const [left, right] = first ? [-0.6, first.length - 0.4] : range(dots.x, x === ROW), [bottom, top] = second ? [-0.6, second.length - 0.4] : range(dots.y, y === PVALUE);
  const time = (name) => { const axis = now.answers.axes.find((each) => each.name === name); return axis && axis.time ? (value) => new Date(value * 1000).toISOString().slice(0, 10) : () => undefined; };
  Object.assign(now, { dots, region: null, window: { left, right, bottom, top }, labelled: { x: time(projected ? "" : x), y: time(projected ? "" : y) } });
  const rest = [dots.left_out ? `${counted(dots.left_out, "row")} of the more normal ones left out` : "", dots.absent ? `${counted(dots.absent, "row")} missing here` : ""].filter(Boolean).join("; ");
  say("scatter-words", `${projected ? "The plane in which normal rows vary most. " : ""}Click a dot, or use the arrow keys, for its reasons.${rest ? ` ${rest}.` : ""}`);
  draw();
  await askRegion();
});

function nearest(event) {
  const box = canvas.getBoundingClientRect(), { dot } = layout();
  let best = -1, least = REACH;
  for (let at = now.dots.rows.length - 1; at >= 0; at -= 1) {
    const [x, y] = dot(at), distance = Math.hypot(x - (event.clientX - box.left), y - (event.clientY - box.top));
    if (distance < least) { least = distance; best = at; }
  }
  return best;
}

canvas.addEventListener("pointermove", (event) => {
  if (!now?.dots) return;
  const at = nearest(event), tip = $("tip");
  tip.hidden = at < 0;
  if (at < 0) return;
  const [x, y] = layout().dot(at);
  tip.textContent = `row ${count(now.dots.rows[at] + 1)}, p ${figure(now.p[now.dots.rows[at]], 2)}`;
  tip.style.left = `${Math.min(x + 10, canvas.clientWidth - 130)}px`;
  tip.style.top = `${Math.max(y - 30, 0)}px`;
});
canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
canvas.addEventListener("click", (event) => { const at = now?.dots ? nearest(event) : -1; if (at >= 0) now.onpick(now.dots.rows[at]); });
canvas.addEventListener("keydown", (event) => {
  const step = { ArrowRight: -1, ArrowDown: -1, ArrowLeft: 1, ArrowUp: 1 }[event.key];
  if (!step || !now?.dots?.rows.length) return;
  event.preventDefault();
  const rows = now.dots.rows, at = rows.indexOf(now.row);
  now.onpick(rows[at < 0 ? rows.length - 1 : Math.min(Math.max(at + step, 0), rows.length - 1)]);
});

export function chooseRow(row) {
  if (!now || now.row === row) return;
  now.row = row;
  say("chosen", `Row ${count(row + 1)}, p ${figure(now.p[row], 2)}.`);
  draw();
  if (!now.region?.whole) askRegion().catch(wrong);
}

export function recolor(alpha) { if (now) { now.alpha = alpha; if (!quiet) { quiet = true; requestAnimationFrame(() => { quiet = false; draw(); }); } } }

export async function plot(answers, p, alpha, onpick) {
  say("chosen", "");
  now = { answers, p, alpha, onpick, dots: null, region: null, row: null, labelled: { x: () => undefined, y: () => undefined } };
  const axes = answers.axes.map((axis) => [axis.name, axis.shown]), two = answers.axes.filter((axis) => axis.number), plain = two.length > 1 ? two : answers.axes;
  options($("x"), [...axes, ...(axes.length > 1 ? [[PROJECTION, "a projection of all columns"]] : []), [ROW, "the number of the row"]], plain[0]?.name);
  options($("y"), [...axes, [PVALUE, "the p-value"]], plain[1]?.name ?? PVALUE);
  await askDots();
}

const wrong = (error) => say("scatter-words", error.message);
$("x").addEventListener("change", () => askDots().catch(wrong));
$("y").addEventListener("change", () => askDots().catch(wrong));
new ResizeObserver(settled(draw, 60)).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
