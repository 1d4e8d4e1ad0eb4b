// The model card, and the history of a served model.
"use strict";
import { get } from "./api.js";
import { courseBars } from "./charts.js";
import { $, count, counted, el, fill, figure, percent, say } from "./dom.js";

const fact = (name, ...value) => [el("dt", {}, name), el("dd", {}, ...value)];
const tile = (name, value, under, kind = "") => el("div", { class: `tile ${kind}` }, el("dt", {}, name), el("dd", {}, value), el("dd", { class: "under" }, under));

export function showModel(model, fit) {
  say("model-title", `The model ${model.name}`);
  fill($("facts"),
    fact("Normal rows", count(model.normal_rows)), fact("Calibration", `${model.calibration}, ${counted(model.calibrating_rows, "row")}`),
    fact("Columns", String(model.columns.length || "numbers without names")), fact("Saved", new Date(model.saved).toLocaleString()),
    fact("Versions", Object.entries(model.versions).map(([name, version]) => `${name}\u00a0${version}`).join(", ")), fact("Fingerprint", el("code", {}, model.sha256.slice(0, 16))));
  fill($("encoding"), model.encoding.map((line) => el("li", {}, line)));
  $("download-model").hidden = !fit;
}

const SPANS = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
const spoken = (seconds) => { const [unit, name] = SPANS.find(([size]) => seconds >= size) ?? SPANS[3]; return counted(Math.round((10 * seconds) / unit) / 10, name); };

export async function showHistory(name) {
  const section = $("history");
  section.hidden = !name;
  document.querySelector('nav a[href="#history"]').hidden = !name;
  if (!name) return;
  const [told, latest] = await Promise.all([get(`page/models/${encodeURIComponent(name)}/course`), get(`models/${encodeURIComponent(name)}/history`, { alarms: 50 })]);
  const { whole } = told, span = told.seconds / told.bars.length;
  const rate = whole.rows ? percent(whole.alarm_rate, 2) : "–", asked = whole.rows ? percent(whole.rate_asked_for, 2) : "–";
  fill($("history-tiles"), tile("Realised", rate, `${counted(whole.alarms, "alarm")} so far`, "strong"), tile("Promised", asked, `${figure(whole.alarms_if_all_rows_were_normal, 2)} alarms if all rows were normal`), tile("Rows scored", count(whole.rows), `in ${counted(whole.requests, "request")}`));
  fill($("history-words"), el("b", {}, "Alarms over time. "), `The share of rows that were alarms, one bar for every ${spoken(span)}. Where all rows are normal, bars keep to the dashed line, give or take chance.`);
  const ago = (at) => `${spoken(told.seconds - at * span)} to ${spoken(told.seconds - (at + 1) * span)} ago`;
  fill($("history-chart"), courseBars(told.bars, ago, `${spoken(told.seconds)} ago`, "now"));
  fill($("latest"),
    el("thead", {}, el("tr", {}, ["Time", "Request", "Row", "P-value"].map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, latest.latest_alarms.map((alarm) => el("tr", {}, el("th", { scope: "row" }, new Date(1000 * alarm.time).toLocaleString()), el("td", {}, el("code", {}, String(alarm.request).slice(0, 12))), el("td", {}, count(alarm.row + 1)), el("td", {}, figure(alarm.p_value, 2))))));
}
