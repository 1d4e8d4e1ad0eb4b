// What each column was understood as, and what the user says instead.
"use strict";
import { el, fill, say } from "./dom.js";

const KINDS = { number: "number", category: "category", time: "time", id: "id, names rows", drop: "leave out" };
const TAKEN = { ...KINDS, id: "id", drop: "left out", text: "free text", empty: "empty", unknown: "not known" };

export const nothingSaid = () => ({ kinds: {}, decimal: null, day_first: null, missing: {}, missing_everywhere: [] });

const marks = (text) => text.split(",").map((each) => each.trim()).filter(Boolean);

function choice(label, entries, chosen, onchange) {
  const select = el("select", { onchange: () => onchange(select.value) }, entries.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
  return el("label", {}, label, " ", select);
}

// Draw the corrections; `changed` is called with them after each change.
export function showColumns(node, found, said, changed) {
  const change = (edit) => { edit(); changed(said); };
  const general = el("div", { class: "tools" },
    choice("Decimal mark", [["", "as found"], [".", "point: 1.5"], [",", "comma: 1,5"]], said.decimal ?? "", (value) => change(() => { said.decimal = value || null; })),
    choice("03/04 is in", [["", "as found"], ["no", "March"], ["yes", "April"]], said.day_first == null ? "" : said.day_first ? "yes" : "no", (value) => change(() => { said.day_first = value ? value === "yes" : null; })),
    el("label", {}, "Missing everywhere ", el("input", { size: 8, placeholder: "-999, n/a", value: said.missing_everywhere.join(", "), onchange: (event) => change(() => { said.missing_everywhere = marks(event.target.value); }) })));
  const rows = found.columns.map((column) => one(column, said, change));
  const notes = found.notes.length ? el("ul", { class: "notes" }, found.notes.map((note) => el("li", {}, note))) : null;
  const problem = found.problem ? el("p", { class: "caution" }, found.problem) : null;
  fill(node, general, problem, notes, el("ul", { class: "columns" }, rows));
  const doubts = found.columns.filter((column) => column.doubt).length;
  say("doubts", found.problem ? "something to correct first" : doubts ? `${doubts === 1 ? "one" : doubts} to check` : "nothing doubtful");
}

function one(column, said, change) {
  const guess = column.asked ? "as found" : `found: ${TAKEN[column.kind] ?? column.kind}`;
  const select = el("select", {
    "aria-label": `${column.shown} is`,
    onchange: () => change(() => { if (select.value) said.kinds[column.name] = select.value; else delete said.kinds[column.name]; }),
  }, el("option", { value: "" }, guess), Object.entries(KINDS).map(([value, text]) => el("option", { value, selected: column.asked === value }, text)));
  const missing = el("input", {
    size: 8, placeholder: "none", "aria-label": `Values of ${column.shown} that mean missing`, value: (said.missing[column.name] ?? []).join(", "),
    onchange: () => change(() => { const values = marks(missing.value); if (values.length) said.missing[column.name] = values; else delete said.missing[column.name]; }),
  });
  return el("li", { class: `column-line${column.doubt ? " doubtful" : ""}` },
    el("div", { class: "name" }, el("b", {}, column.shown), el("span", { class: "muted cells" }, column.cells.join(" · "))),
    el("div", { class: "kind" }, select),
    el("label", { class: "gone muted" }, "missing if ", missing),
    el("p", { class: "hint" }, column.doubt || `${column.used}${column.sure && column.sure !== "sure" ? ` (${column.sure})` : ""}`));
}
