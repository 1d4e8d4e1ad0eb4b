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

const LATEST = 20;
// A time, and its day if that is not today.
function clock(seconds) {
  const time = new Date(1000 * seconds), today = time.toDateString() === new Date().toDateString();
  return time.toLocaleString([], today ? { timeStyle: "short" } : { dateStyle: "short", timeStyle: "short" });
}
// The columns in `wide` are left out on a phone.
const line = (tag, cells, wide) => el("tr", {}, cells.map((cell, at) => el(at ? tag : "th", { scope: at ? (tag === "th" ? "col" : null) : tag === "th" ? "col" : "row", class: wide.includes(at) ? "wide" : null }, cell)));
const table = (node, heads, rows, wide) => fill(node, el("thead", {}, line("th", heads, wide)), el("tbody", {}, rows.map((row) => line("td", row, wide))));

export async function showHistory(name) {
  $("history").hidden = !name;
  document.querySelector('nav a[href="#history"]').hidden = !name;
  if (!name) return;
  const path = encodeURIComponent(name), told = await get(`models/${path}/history`, { alarms: LATEST });
  const stretches = told.over_time;
  const rate = told.rows ? percent(told.alarm_rate, 2) : "–", asked = told.rows ? percent(told.rate_asked_for, 2) : "–";
  fill($("history-tiles"), tile("Realised", rate, `${counted(told.alarms, "alarm")} so far`, "strong"), tile("Promised", asked, `${figure(told.alarms_if_all_rows_were_normal, 2)} alarms if all rows were normal`), tile("Rows scored", count(told.rows), `in ${counted(told.requests, "request")}`));
  $("history-figure").hidden = !stretches.length;
  if (stretches.length) {
    const minutes = Math.round((stretches[0].end - stretches[0].begin) / 6) / 10;
    fill($("history-words"), el("b", {}, "Alarms over time. "), `The share of rows that were alarms, a bar for each ${minutes === 1 ? "minute" : `${figure(minutes)} minutes`}. Where all rows are normal, bars keep to the dashed line, give or take chance.`);
    fill($("history-chart"), courseBars(stretches, clock));
  }
  $("drift").textContent = !told.drift ? "" : told.drift.drifted ? "The drift monitor has raised an alarm: normal rows are not what they were when the model was fitted." : `The drift monitor is quiet after ${counted(told.drift.rows, "row")}.`;
  $("kept").hidden = !told.promise?.length;
  table($("kept"), ["Rate asked for", "Rows", "Alarms", "Realised", "Usually, 99 times in 100"], (told.promise ?? []).map((each) => [percent(each.alpha), count(each.rows), count(each.alarms), each.rows ? percent(each.rate, 2) : "–", `${count(each.usual_low)} to ${count(each.usual_high)}`]), [3]);
  table($("latest"), ["Time", "Request", "Row", "P-value"], told.latest_alarms.map((alarm) => [clock(alarm.time), el("code", {}, String(alarm.request).slice(0, 12)), count(alarm.row + 1), figure(alarm.p_value, 2)]), [1]);
}
