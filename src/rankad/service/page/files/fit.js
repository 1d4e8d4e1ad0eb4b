// A fit that runs on the server: how far it is, and how to stop it.
"use strict";
import { get, post } from "./api.js";
import { $, count, say } from "./dom.js";

const LOOK_AGAIN = 300;
const pause = (wait) => new Promise((go) => setTimeout(go, wait));

function show(state) {
  const bar = $("bar");
  if (state.total) { bar.max = state.total; bar.value = state.done; } else bar.removeAttribute("value");
  const steps = state.total ? `, ${count(state.done)} of ${count(state.total)}` : "";
  say("step", `${state.label}${steps} · ${Math.round(state.seconds)} s`);
}

// Fit, and return the fitted model's state; an error says why there is none.
export async function runFit(request) {
  let state = await post("page/fits", request);
  const stop = () => { post(`page/fits/${state.id}/cancel`).catch(() => {}); };
  $("cancel").addEventListener("click", stop);
  $("progress").hidden = false;
  try {
    while (state.state === "running") {
      show(state);
      await pause(LOOK_AGAIN);
      state = await get(`page/fits/${state.id}`);
    }
  } finally {
    $("progress").hidden = true;
    $("cancel").removeEventListener("click", stop);
  }
  if (state.state === "cancelled") throw new Error("The fit was cancelled.");
  if (state.state === "failed") throw new Error(state.message);
  return state;
}
