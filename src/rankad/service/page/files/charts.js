// Small charts as SVG: places along them in per cent, heights in pixels, colours as classes of the style sheet.
"use strict";
import { count, counted, figure, percent, svg } from "./dom.js";

const LEFT = 10;
const BINS = 20;
const FEWEST = 20;

const rect = (x, y, width, height, kind) => svg("rect", { x: `${x}%`, y, width: `${width}%`, height, class: kind });
const line = (x1, y1, x2, y2, kind) => svg("line", { x1: `${x1}%`, y1, x2: `${x2}%`, y2, class: kind });
const text = (x, y, words, anchor, kind) => svg("text", { x: `${x}%`, y, "text-anchor": anchor, class: kind }, words);
const bar = (x, y, width, height, kind) => (height > 0 ? rect(x + 0.08 * width, y, 0.84 * width, height, kind) : null);
const titled = (words, ...parts) => svg("g", {}, svg("title", {}, words), ...parts);
const roundUp = (share) => [0.02, 0.04, 0.06, 0.1, 0.2, 0.4, 0.6, 0.8].find((each) => each >= share) ?? 1;

function drawing(height, label, ...parts) {
  return svg("svg", { class: "chart histogram", width: "100%", height, role: "img", "aria-label": label }, ...parts);
}

function rules(top, y) {
  return [0, top / 2, top].flatMap((share) => [line(LEFT, y(share), 100, y(share), "rule"), text(LEFT - 1.2, y(share) + 4, percent(share), "end")]);
}

// How many sorted numbers are at most this.
export function upTo(sorted, limit) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= limit) low = middle + 1; else high = middle;
  }
  return low;
}

export function histogram(sorted, alpha, least) {
  const n = Math.max(sorted.length, 1), alarms = upTo(sorted, alpha), wide = (100 - LEFT) / BINS;
  const ends = Array.from({ length: BINS }, (_, at) => upTo(sorted, (at + 1) / BINS));
  const places = Math.round(1 / least);
  const chances = ends.map((_, at) => (Math.floor(((at + 1) / BINS) * places + 1e-9) - Math.floor((at / BINS) * places + 1e-9)) / places);
  const top = roundUp(Math.max(...ends.map((end, at) => (end - (ends[at - 1] ?? 0)) / n), ...chances));
  const high = 190, base = 208, y = (share) => base - (share / top) * high;
  const bars = ends.map((end, at) => {
    const begin = ends[at - 1] ?? 0, red = Math.max(Math.min(alarms, end) - begin, 0), all = end - begin;
    const x = LEFT + at * wide, split = y(red / n), over = y(all / n);
    const words = `p-value above ${figure(at / BINS)}, up to ${figure((at + 1) / BINS)}: ${counted(all, "row")}${red ? `, ${counted(red, "alarm")} among them` : ""}`;
    return titled(words, rect(x, base - high, wide, high, "hit"), bar(x, split, wide, base - split, "alarm"), bar(x, over, wide, split - over, "scored"));
  });
  const even = chances.flatMap((chance, at) => [
    line(LEFT + at * wide, y(chance), LEFT + (at + 1) * wide, y(chance), "even"),
    at && chance !== chances[at - 1] ? line(LEFT + at * wide, y(chances[at - 1]), LEFT + at * wide, y(chance), "even") : null,
  ]);
  const cut = LEFT + alpha * (100 - LEFT);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((at) => text(LEFT + at * (100 - LEFT), base + 17, `${at}`, at === 0 ? "start" : at === 1 ? "end" : "middle"));
  return drawing(base + 22, `Histogram of ${count(sorted.length)} p-values in ${BINS} bins, ${counted(alarms, "alarm")}`, rules(top, y), bars, even, line(cut, base - high, cut, base, "cut"), ticks);
}

// Shares of alarms in stretches of the same length, each against the rate that was asked for then.
export function courseBars(stretches, words) {
  const width = stretches[0].end - stretches[0].begin, last = stretches[stretches.length - 1].end;
  const first = Math.min(stretches[0].begin, last - FEWEST * width), n = Math.round((last - first) / width), wide = (100 - LEFT) / n;
  const rate = (each, of) => (each.rows ? each[of] / each.rows : 0), asked = (each) => rate(each, "alarms_if_all_rows_were_normal");
  const top = roundUp(Math.max(...stretches.map((each) => Math.max(rate(each, "alarms"), 2 * asked(each))), 0.02)), high = 110, base = 126;
  const y = (share) => base - (share / top) * high;
  const place = (each) => LEFT + Math.round((each.begin - first) / width) * wide;
  const grounds = stretches.map((each) => rect(place(each), base - high, wide, high, "ground"));
  const bars = stretches.map((each) => {
    const x = place(each), up = Math.max(base - y(rate(each, "alarms")), each.alarms ? 2 : 0);
    const told = `${counted(each.alarms, "alarm")} among ${counted(each.rows, "row")}, ${figure(each.alarms_if_all_rows_were_normal, 2)} asked for`;
    return titled(`${words(each.begin)} to ${words(each.end)}: ${told}`, rect(x, base - high, wide, high, "hit"), bar(x, base - up, wide, up, "alarm"), line(x, y(asked(each)), x + wide, y(asked(each)), "even"));
  });
  return drawing(base + 22, "Share of alarms over time, against the rate asked for", rect(LEFT, base - high, 100 - LEFT, high, "gap"), grounds, rules(top, y), bars, text(LEFT, base + 17, words(first), "start"), text(100, base + 17, words(last), "end"));
}

export function weightBar(share, words) {
  return svg("svg", { class: "chart gain", width: "100%", height: 8, role: "img", "aria-label": words }, rect(0, 0, 100, 8, "track"), rect(0, 0, 100 * Math.min(Math.max(share, 0), 1), 8, "alarm"));
}

// A value beside what is usual; far out it is an arrow at the border.
export function valueStrip(numbers, words) {
  if (!numbers) return null;
  const scale = Math.max(...numbers.map(Math.abs));
  if (scale === 0) return null;
  const [at, usual, least, most] = numbers.map((each) => each / scale), width = most - least;
  const reach = width > 0 ? 7 * width : 2 * Math.abs(at - usual);
  let begin = Math.max(Math.min(at, least), least - reach), end = Math.min(Math.max(at, most), most + reach);
  if (!(end > begin)) return null;
  const pad = 0.08 * (end - begin);
  begin -= pad; end += pad;
  const x = (place) => 100 * Math.min(Math.max((place - begin) / (end - begin), 0), 1);
  const far = at <= begin || at >= end;
  return svg("svg", { class: "chart strip", width: "100%", height: 18, role: "img", "aria-label": words },
    line(0, 9, 100, 9, "axis"), rect(x(least), 4, Math.max(x(most) - x(least), 0.8), 10, "nominal"), line(x(usual), 2, x(usual), 16, "typical"),
    far ? text(x(at), 14, at < usual ? "◀" : "▶", at < usual ? "start" : "end", "arrow") : svg("circle", { cx: `${x(at)}%`, cy: 9, r: 4.5, class: "alarm" }));
}
