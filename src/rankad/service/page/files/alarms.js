// The alarms one by one: reasons are asked for when a page of them is shown.
"use strict";
import { get, lastOnly, Refused } from "./api.js";
import { valueStrip, weightBar } from "./charts.js";
import { $, count, counted, el, fill, options, say } from "./dom.js";

let shown = null; // { answers, alpha, total, begin }
let picked = () => {};

const gistOf = (row) => row.cells.map(([name, value]) => `${name} ${value}`).join(" · ");

export function caseOf(row, reasons, open = false) {
  const gist = el("span", { class: "gist" }, reasons?.gist || gistOf(row));
  const body = el("div", { class: "body" }, reasons ? reasonsOf(row, reasons) : el("p", { class: "hint" }, "Looking for reasons …"));
  const who = row.id ? [el("b", {}, row.id), " ", el("span", { class: "muted nobreak" }, `row ${count(row.row + 1)}`)] : el("b", {}, `Row ${count(row.row + 1)}`);
  return el("details", { class: "case", "data-row": row.row, open },
    el("summary", {}, el("span", { class: "rank" }, row.place ?? ""), el("span", { class: "who" }, who), gist, el("span", { class: "p" }, el("span", { class: "muted" }, "p "), row.p_value)), body);
}

function reasonsOf(row, card) {
  const parts = [];
  if (card.strange.length) parts.push(el("ul", { class: "strange" }, card.strange.map((odd) => el("li", {}, el("b", {}, odd.column), " ", odd.value ? el("q", {}, odd.value) : null, `: ${odd.what}`))));
  if (card.reasons.length) parts.push(el("ol", { class: "reasons" }, card.reasons.map((reason) => el("li", {},
    el("div", { class: "fact" }, el("b", {}, reason.column), el("span", { class: `value${reason.matters ? " reason" : ""}` }, reason.value), el("span", { class: "muted" }, `usually ${reason.usual}`)),
    el("div", { class: "strip" }, valueStrip(reason.strip, `${reason.value}, usually ${reason.usual}`)),
    el("div", { class: "weight" }, weightBar(reason.weight, `weight of ${reason.column}: ${Math.round(100 * reason.weight)} % of the greatest`), el("span", { class: "muted" }, `if usual: p ${reason.p_value}`))))));
  if (card.more && card.reasons.length) parts.push(el("p", { class: "hint" }, card.more === 1 ? "1 more column weighs little or nothing." : `${card.more} more columns weigh little or nothing.`));
  if (card.change.length) parts.push(el("p", { class: "change" }, el("b", {}, "To be normal: "),
    card.change.map((step, at) => el("span", { class: "step" }, `${step.column} from `, el("del", {}, step.before), " to ", el("ins", {}, step.after), at < card.change.length - 1 ? ", " : " ")),
    el("span", { class: "muted" }, `(p-value then ${card.changed_p_value})`)));
  if (card.nearest.length) parts.push(el("details", { class: "near" }, el("summary", {}, "Normal rows most like it, and its score"), el("p", { class: "hint" }, `Score ${card.score}; higher is more normal.`), nearTable(row, card)));
  return parts;
}

function nearTable(row, card) {
  const head = card.nearest.map((near) => el("th", { scope: "col" }, `Normal row ${near.row}`, el("span", { class: "under" }, `distance ${near.distance}`)));
  const lines = card.columns.map((column, at) => el("tr", {}, el("th", { scope: "row" }, column), el("td", { class: `own${card.marked[at] ? " reason" : ""}` }, card.values[at]), card.nearest.map((near) => el("td", {}, near.values[at]))));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Normal rows near row ${row.row + 1}` },
    el("table", { class: "values" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Column"), el("th", { scope: "col" }, "This row"), head)), el("tbody", {}, lines)));
}

// Cells and reasons of one row that was picked in the plot.
export const pick = lastOnly(async (signal, answers, row, alpha) => {
  if (!answers.explains) return;
  const { rows } = await get(`page/answers/${answers.id}/reasons`, { rows: row, alpha }, signal);
  fill($("picked"), caseOf({ row, id: rows[0].id, p_value: rows[0].p_value, cells: [] }, rows[0], true));
});

const explain = lastOnly(async (signal, answers, alpha, rows, cases) => {
  if (!rows.length) return;
  if (!answers.explains) { cases.forEach((each) => fill(each.querySelector(".body"), el("p", { class: "hint" }, "The model was saved without the rows that reasons need."))); return; }
  try {
    const { rows: cards } = await get(`page/answers/${answers.id}/reasons`, { rows: rows.map((row) => row.row).join(","), alpha }, signal);
    cards.forEach((card, at) => {
      fill(cases[at].querySelector(".body"), reasonsOf(rows[at], card));
      if (card.gist) cases[at].querySelector(".gist").textContent = card.gist;
    });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    cases.forEach((each) => fill(each.querySelector(".body"), el("p", { class: "caution" }, error.message)));
  }
});

async function append(told, begin) {
  const open = new Set([...$("list").querySelectorAll("details[open]")].map((each) => each.dataset.row));
  const rows = told.rows.map((row, at) => ({ ...row, place: begin + at + 1 }));
  const cases = rows.map((row) => caseOf(row, null, open.has(String(row.row))));
  cases.forEach((each, at) => each.addEventListener("toggle", () => { if (each.open) picked(rows[at].row); }));
  if (begin) $("list").append(...cases); else fill($("list"), cases);
  const left = told.total - begin - rows.length;
  $("more").hidden = left <= 0;
  say("more", `Show more (${count(left)} left)`);
  await explain(shown.answers, shown.alpha, rows, cases);
}

function asked(begin) {
  const [by, down] = JSON.parse($("order").value);
  return { alpha: shown.alpha, by, down: down ? 1 : null, begin };
}

// List the alarms at alpha; returns what is said of their number.
export const listAlarms = lastOnly(async (signal, answers, alpha) => {
  shown = { answers, alpha };
  const told = await get(`page/answers/${answers.id}/alarms`, asked(0), signal);
  say("alarms-title", told.total ? counted(told.total, "alarm") : "No alarms at this rate");
  $("download").disabled = told.total === 0;
  append(told, 0).catch(wrong);
  return told;
});

export function prepareAlarms(answers, onpick) {
  picked = onpick;
  fill($("list"));
  fill($("picked"));
  const orders = [[[null, false], "most abnormal first"], [[null, true], "least abnormal first"]];
  for (const column of answers.columns) orders.push([[column.name, false], `${column.shown}, rising`], [[column.name, true], `${column.shown}, falling`]);
  options($("order"), orders.map(([value, text]) => [JSON.stringify(value), text]));
}

async function more() {
  const begin = $("list").children.length;
  await append(await get(`page/answers/${shown.answers.id}/alarms`, asked(begin)), begin);
}

const wrong = (error) => say("alarms-lead", error.message);
$("more").addEventListener("click", () => more().catch(wrong));
$("order").addEventListener("change", () => { if (shown) listAlarms(shown.answers, shown.alpha).catch(wrong); });
