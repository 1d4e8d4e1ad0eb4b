"use strict";
// Conveniences only: without this script the page shows all that there is.
(() => {
  const list = document.getElementById("alarm-list");
  const tools = document.getElementById("alarm-tools");
  if (list && tools && list.children.length > 1) {
    const cards = [...list.children];
    const byText = (key) => (a, b) => a.dataset[key].localeCompare(b.dataset[key], undefined, { numeric: true });
    const byNumber = (key) => (a, b) => Number(a.dataset[key]) - Number(b.dataset[key]);
    const orders = [["most abnormal first", byNumber("order")], ["by row", byNumber("row")]];
    if (cards.some((card) => card.dataset.id)) orders.push(["by id", byText("id")]);
    orders.push(["by first reason", byText("first")]);

    const label = document.createElement("label");
    const select = document.createElement("select");
    orders.forEach(([name], at) => select.add(new Option(name, String(at))));
    select.addEventListener("change", () => {
      const inOrder = byNumber("order");
      const chosen = orders[Number(select.value)][1];
      list.append(...cards.sort((a, b) => chosen(a, b) || inOrder(a, b)));
    });
    label.append("Order ", select);

    const find = document.createElement("input");
    find.type = "search";
    find.placeholder = "Find a row, an id or a column";
    find.setAttribute("aria-label", find.placeholder);
    find.addEventListener("input", () => {
      const sought = find.value.trim().toLowerCase();
      for (const card of cards) card.hidden = !card.textContent.toLowerCase().includes(sought);
    });

    const all = document.createElement("button");
    all.type = "button";
    const name = () => { all.textContent = cards.every((card) => card.open) ? "Close all" : "Open all"; };
    all.addEventListener("click", () => {
      const open = !cards.every((card) => card.open);
      for (const card of cards) card.open = open;
      name();
    });
    for (const card of cards) card.addEventListener("toggle", name);
    name();
    tools.append(label, find, all);
    tools.hidden = false;
  }

  // On paper nothing can be opened.
  const folded = () => document.querySelectorAll("details.case");
  addEventListener("beforeprint", () => {
    for (const part of folded()) { part.dataset.was = String(part.open); part.open = true; }
  });
  addEventListener("afterprint", () => {
    for (const part of folded()) part.open = part.dataset.was === "true";
  });
})();
