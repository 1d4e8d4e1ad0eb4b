// The page: a table and a model chosen, alpha moved, everything else follows.
"use strict";
import { listAlarms, pick, prepareAlarms } from "./alarms.js";
import { download, get, hasKey, numbers, post, Refused, upload, useKey } from "./api.js";
import { histogram, upTo } from "./charts.js";
import { nothingSaid, showColumns } from "./columns.js";
import { $, count, el, figure, fill, options, percent, say, settled } from "./dom.js";
import { runFit } from "./fit.js";
import { showHistory, showModel } from "./model.js";
import { chooseRow, plot, recolor } from "./scatter.js";

const HIGHEST = 0.5;
const RATES = [0.1, 0.05, 0.01, 0.001];
const HISTORY_AGAIN = 10_000;
let start = null, tables = [], busy = false;
let said = new Map(); // corrections by table
let current = null; // { answers, p, sorted, alpha, lowest, fit }

// ------------------------------------------------------------------------------------------------ words

function tell(text, wrong = false) {
  say("said", text);
  $("said").classList.toggle("caution", wrong);
}

function askForKey(why) {
  $("key-form").hidden = false;
  say("key-why", why);
  $("key").focus();
}

function refused(error) {
  const keys = error instanceof Refused && (error.status === 401 || error.code === "role");
  if (keys) askForKey(error.message);
  tell(error.message, true);
}

const trying = (task) => async (...given) => { try { return await task(...given); } catch (error) { refused(error); return undefined; } };

// ---------------------------------------------------------------------------------------------- choosing

const mode = () => document.querySelector("input[name=mode]:checked").value;
const tableOf = (id) => tables.find((table) => table.id === id);
const fits = (model, table) => (model.columns.length ? model.columns.every((name) => table.names.includes(name)) : table.columns === model.n_columns);
const corrections = () => { const id = $("table").value; if (!said.has(id)) said.set(id, nothingSaid()); return said.get(id); };

function showChoice() {
  const chosen = $("table").value || tables[0]?.id, table = tableOf(chosen), then = $("then").value, model = $("with").value;
  options($("table"), tables.length ? tables.map((each) => [each.id, `${each.name}, ${count(each.rows)} rows`]) : [["", "none yet: upload one"]], chosen);
  const named = start.models.map((each) => [each.name, table && !fits(each, table) ? `${each.name} (has other columns)` : each.name]);
  const fitting = table && start.models.find((each) => fits(each, table));
  const kept = start.models.find((each) => each.name === model);
  options($("with"), named, kept && table && fits(kept, table) ? kept.name : fitting?.name ?? model);
  const others = tables.filter((each) => each.id !== chosen), alike = others.filter((each) => table.names.every((name) => each.names.includes(name)));
  const scored = alike.length ? alike : others;
  options($("then"), scored.length ? scored.map((each) => [each.id, each.name]) : [["", "upload another table first"]], then);
  say("go", { score: "Score", find: "Find", learn: "Learn and score" }[mode()]);
  $("go").disabled = busy || !table || (mode() === "learn" && !others.length);
  $("understood").hidden = mode() === "score" || !table;
}

const showUnderstood = trying(async () => {
  if ($("understood").hidden) return;
  const id = $("table").value, mine = corrections();
  const found = await post(`page/tables/${id}/columns`, mine);
  if (id !== $("table").value) return;
  const focused = document.activeElement?.getAttribute("aria-label");
  showColumns($("columns"), found, mine, async () => { if (await showUnderstood()) tell(""); });
  if (focused) [...$("columns").querySelectorAll("[aria-label]")].find((node) => node.getAttribute("aria-label") === focused)?.focus();
  return true;
});

const changed = () => { showChoice(); tell(""); return showUnderstood(); };

const take = trying(async (file) => {
  if (!file) return;
  if (file.size > start.limits.bytes) throw new Error(`${file.name} has more than ${count(Math.round(start.limits.bytes / 2 ** 20))} MiB; use the command rankad for it.`);
  tell(`Reading ${file.name} …`);
  const table = await upload(file);
  tables = [table, ...tables];
  showChoice();
  $("table").value = table.id;
  if (mode() === "score" && !start.models.some((model) => fits(model, table))) $("mode-find").checked = true;
  await changed();
  tell(`${table.name}: ${count(table.rows)} rows, ${count(table.columns)} columns.`);
});

// ------------------------------------------------------------------------------------------------- going

const go = trying(async () => {
  if (busy) return;
  busy = true;
  $("go").disabled = true;
  try {
    const id = $("table").value, what = mode();
    let request = { table: id, model: $("with").value }, fit = null;
    if (what !== "score") {
      tell("");
      fit = await runFit({ table: id, mixed: what === "find", corrections: corrections() });
      request = { table: what === "find" ? id : $("then").value, fit: fit.id };
    }
    tell("Scoring …");
    await show(await post("page/answers", request), fit);
    tell(fit?.notes.length ? fit.notes.join(" ") : "");
  } finally {
    busy = false;
    showChoice();
  }
});

async function show(answers, fit) {
  const p = await numbers(`page/answers/${answers.id}/p-values`), sorted = Float64Array.from(p).sort();
  if (fit) answers.model.name = fit.name;
  const lowest = Math.min(Math.max(answers.least, 1e-5), 0.01);
  current = { answers, p, sorted, fit, lowest, alpha: Math.max(current?.alpha ?? answers.alpha, lowest) };
  $("shown").hidden = false;
  for (const link of document.querySelectorAll("nav .later")) link.hidden = false;
  const own = answers.own;
  say("n-rows", count(p.length));
  say("of", `${answers.table.name}, by ${own ? "itself" : answers.model.name}`);
  say("even-words", own ? "They are the places of the rows in this table, so they are even by design." : "Those of normal rows spread evenly along the dashed line; a heap at the left is abnormal rows.");
  prepareAlarms(answers, chooseRow);
  showModel(answers.model, fit);
  move(current.alpha);
  await Promise.all([follow(), plot(answers, p, current.alpha, choose), showHistory(!fit && start.history ? answers.model.name : null)]);
}

const choose = trying(async (row) => { chooseRow(row); await pick(current.answers, row, current.alpha); });

// -------------------------------------------------------------------------------------------------- alpha

const nice = (alpha) => Number(alpha.toPrecision(alpha < 0.1 ? 2 : 3));
const placeOf = (alpha) => Math.round((1000 * Math.log(alpha / current.lowest)) / Math.log(HIGHEST / current.lowest));
const rateAt = (place) => nice(current.lowest * (HIGHEST / current.lowest) ** (place / 1000));

// The usual rates side by side; each is a button.
function showRates(alpha, n) {
  const lines = RATES.map((rate) => el("tr", { class: rate === alpha ? "chosen" : null },
    el("th", { scope: "row" }, el("button", { type: "button", class: "plain", "data-rate": rate }, percent(rate))),
    rate < current.answers.least ? el("td", { colspan: 2, class: "muted" }, current.answers.own ? "too few rows for this rate" : "too few normal rows for this rate") : [el("td", {}, count(upTo(current.sorted, rate))), el("td", {}, expected(rate * n))]));
  const focused = document.activeElement?.dataset?.rate;
  fill($("rates"), el("thead", {}, el("tr", {}, ["Rate", "Alarms", "Asked for"].map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, lines));
  if (focused) $("rates").querySelector(`[data-rate="${focused}"]`)?.focus();
}

const expected = (n) => (n >= 10 ? count(Math.round(n)) : figure(n, 2));

// All that is known here: thousands of rows are decided again at once.
function move(alpha, { typed = false, slid = false } = {}) {
  current.alpha = alpha;
  const n = current.p.length, alarms = upTo(current.sorted, alpha);
  if (!slid) $("alpha").value = placeOf(alpha);
  if (!typed) $("percent").value = nice(100 * alpha);
  $("alpha").setAttribute("aria-valuetext", `${percent(alpha)}: ${count(alarms)} alarms`);
  say("obtained", `${count(alarms)} of ${count(n)}`);
  say("n-alarms", count(alarms));
  say("share", `${percent(n ? alarms / n : 0, 2)} of all rows`);
  say("n-asked", expected(alpha * n));
  showRates(alpha, n);
  fill($("histogram"), histogram(current.sorted, alpha, current.answers.least));
  recolor(alpha);
}

const follow = trying(async () => {
  const told = await listAlarms(current.answers, current.alpha);
  if (!told) return;
  say("verdict-title", told.title);
  say("promise", told.promise);
  say("model-promise", told.promise);
  say("usual", told.usual ? `if all were normal; usually ${told.usual[0]} to ${told.usual[1]}` : current.answers.own ? "by design" : "if all were normal");
  $("state").className = `state ${told.kind ?? ""} ${told.off ? "off" : ""}`;
});
const later = settled(follow);

// -------------------------------------------------------------------------------------------------- wires

$("alpha").addEventListener("input", () => { move(rateAt(Number($("alpha").value)), { slid: true }); later(); });
$("percent").addEventListener("input", () => {
  const alpha = Number($("percent").value) / 100;
  if (alpha > 0 && alpha < 1) { move(alpha, { typed: true }); later(); }
});
// What is no rate gives way to the rate that is shown.
$("percent").addEventListener("change", () => { if (current) $("percent").value = nice(100 * current.alpha); });
$("choice").addEventListener("submit", (event) => { event.preventDefault(); go(); });
for (const id of ["table", "mode-score", "mode-find", "mode-learn"]) $(id).addEventListener("change", changed);
$("with").addEventListener("change", () => { $("mode-score").checked = true; changed(); });
$("then").addEventListener("change", () => { $("mode-learn").checked = true; changed(); });
$("file").addEventListener("change", async () => { const [file] = $("file").files; await take(file); $("file").value = ""; });
$("download").addEventListener("click", trying(() => download(`page/answers/${current.answers.id}/alarms.csv`, { alpha: current.alpha })));
$("download-model").addEventListener("click", trying(() => download(`page/fits/${current.fit.id}/model`)));
$("key-form").addEventListener("submit", (event) => { event.preventDefault(); useKey($("key").value); $("key").value = ""; $("key-form").hidden = true; begin(); });
$("forget").addEventListener("click", () => { useKey(""); location.reload(); });

$("rates").addEventListener("click", (event) => {
  const { rate } = event.target.dataset;
  if (rate) { move(Number(rate)); later(); }
});
// Rows may come from elsewhere.
setInterval(() => { if (!document.hidden && !$("history").hidden) showHistory(current.answers.model.name).catch(() => {}); }, HISTORY_AGAIN);

const dragging = (event, on) => { event.preventDefault(); $("choice").classList.toggle("over", on); };
addEventListener("dragover", (event) => dragging(event, true));
addEventListener("dragleave", (event) => dragging(event, false));
addEventListener("drop", (event) => { dragging(event, false); if (start) take(event.dataTransfer.files[0]); });

const begin = trying(async () => {
  start = await get("page/start");
  $("forget").hidden = !hasKey();
  tables = [...tables.filter((table) => !start.tables.some((each) => each.id === table.id)), ...start.tables];
  const { bytes, rows } = start.limits;
  say("limits", `CSV, Excel, Parquet, Arrow or JSON; up to ${count(Math.round(bytes / 2 ** 20))} MiB and ${count(rows)} rows. Drop a file anywhere on this page. It stays on this server, and is deleted after a while.`);
  say("where", `service ${start.version}`);
  if (!start.models.length) { $("mode-find").checked = true; $("mode-score").disabled = true; }
  showChoice();
  await showUnderstood();
  const table = tables[0];
  if (table && mode() === "score" && start.models.some((model) => fits(model, table))) await go();
});
begin();
