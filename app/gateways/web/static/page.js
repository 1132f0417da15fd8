"use strict";
// All that agents and tools wrote is put in as text, never as HTML.
const at = (id) => document.getElementById(id);
let seen = null;
const typed = new Map();
const busy = new Set();

function made(name, words = "", kind = "", ...children) {
  const element = document.createElement(name);
  if (words) element.textContent = words;
  if (kind) element.className = kind;
  element.append(...children);
  return element;
}

function button(words, kind, work) {
  const element = made("button", words, kind);
  element.type = "button";
  element.addEventListener("click", work);
  return element;
}

function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 120) return `${whole} s`;
  if (whole < 7200) return `${Math.floor(whole / 60)} min`;
  return `${Math.floor(whole / 3600)} h`;
}

function say(words) { at("said").textContent = words; }

async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (answer.status === 401) location.replace("/login");
  return { ok: answer.ok, ...(await answer.json()) };
}

async function send(key, path, body) {
  if (busy.has(key)) return;
  busy.add(key);
  draw();
  try {
    const answer = await post(path, body);
    say(answer.message);
    if (answer.ok) typed.delete(key);
  } catch (error) {
    say("The server does not answer; look whether it was done.");
  } finally {
    busy.delete(key);
    draw();
  }
}

function card(need) {
  const key = `${need.agent} ${need.kind} ${need.thing} ${need.event}`;
  const box = made("article", "", need.urgent ? "card urgent" : "card");
  box.dataset.thing = need.thing;
  box.append(made("h3", `${need.agent}: ${need.title ? `may ${need.title} run?` : need.kind}`));
  const times = made("p", "", "dim");
  if (need.since) times.append(made("span", "", "since"));
  if (need.until) times.append(" · ", made("span", "", "left"));
  times.dataset.since = need.since;
  times.dataset.until = need.until;
  box.append(times);
  if (need.text) {
    box.append(made("pre", need.text));
    box.append(made("ul", "", "", ...need.notes.map((note) => made("li", note))));
  } else box.append(made("p", need.what));
  if (seen.you.answers) box.append(...answers(need, key));
  return box;
}

function answers(need, key) {
  const about = { agent: need.agent, kind: need.kind, thing: need.thing, event: need.event };
  const approval = need.kind === "approval";
  if (!approval && need.kind !== "request") return [made("p", "This is answered in the cockpit.", "dim")];
  const text = made("input");
  text.placeholder = approval ? "Reason, where you deny" : "Your answer";
  text.setAttribute("aria-label", text.placeholder);
  text.maxLength = 2000;
  text.value = typed.get(key) ?? "";
  text.addEventListener("input", () => typed.set(key, text.value));
  const answer = (more) => send(key, "/answer", { ...about, text: text.value, ...more });
  const row = made("div", "", "row");
  if (approval) {
    const allow = button("Approve once", "go", () => answer({ allow: true, text: "" }));
    allow.disabled = need.cut !== false;
    row.append(allow, button("Deny", "no", () => answer({ allow: false })));
    if (need.cut) row.append(made("p", "Too long to be seen whole here: approve it in the cockpit.", "dim"));
  } else {
    need.options.forEach((words, place) => row.append(button(words, "", () => answer({ option: place + 1 }))));
    row.append(button("Send answer", "go", () => answer({})));
  }
  if (busy.has(key)) row.querySelectorAll("button").forEach((each) => { each.disabled = true; });
  return [text, row];
}

function agent(row) {
  const box = made("article", "", "card between");
  const words = made("div", "", "", made("h3", row.agent), made("p", row.goal || "no goal"));
  words.append(made("p", row.about, "dim"));
  box.append(words);
  if (seen.you.answers && row.stops) {
    const key = `stop ${row.agent}`;
    const stop = button("Stop", "stop", () => send(key, "/stop", { agent: row.agent }));
    stop.disabled = busy.has(key);
    stop.setAttribute("aria-label", `Stop ${row.agent}`);
    box.append(stop);
  }
  return box;
}

function draw() {
  if (seen === null) return;
  const field = document.activeElement?.closest?.("article")?.dataset.thing;
  const typing = document.activeElement?.tagName === "INPUT" ? document.activeElement.selectionStart : null;
  at("workspace").textContent = seen.workspace;
  document.title = `${seen.needs?.length ? `(${seen.needs.length}) ` : ""}${seen.workspace}`;
  at("you").textContent = `You are ${seen.you.name}, with a token to ${seen.you.scope}.`;
  if (seen.lost) {
    say(`The engine cannot be reached: ${seen.lost}`);
    return;
  }
  at("count").textContent = seen.needs.length ? `(${seen.needs.length + seen.more})` : "";
  at("needs").replaceChildren(...seen.needs.map(card));
  if (!seen.needs.length) at("needs").append(made("p", "Nothing waits for you.", "dim"));
  at("agents").replaceChildren(...seen.agents.map(agent));
  at("stop").hidden = !(seen.you.answers && seen.agents.some((row) => row.stops));
  if (typing !== null && field !== undefined) {
    const again = [...document.querySelectorAll("article")].find((box) => box.dataset.thing === field);
    const input = again?.querySelector("input");
    input?.focus();
    input?.setSelectionRange(typing, typing);
  }
  tick();
}

function tick() {
  const now = Date.now();
  document.querySelectorAll("[data-since]").forEach((times) => {
    const since = times.querySelector(".since");
    const left = times.querySelector(".left");
    if (since) since.textContent = `waits ${duration((now - Date.parse(times.dataset.since)) / 1000)}`;
    if (left) left.textContent = `denied in ${duration((Date.parse(times.dataset.until) - now) / 1000)}`;
  });
}

at("logout").addEventListener("click", () => post("/logout", {}).finally(() => location.replace("/login")));
at("stop").addEventListener("click", () => {
  if (confirm("Stop all agents, and end what they run?")) send("stop", "/stop", { agent: "" });
});
setInterval(tick, 1000);

const source = new EventSource("/events");
source.addEventListener("message", (event) => {
  if (seen?.lost) say("");
  seen = JSON.parse(event.data);
  draw();
});
source.addEventListener("error", () => {
  say("The connection is lost; trying again.");
  fetch("/state").then((answer) => { if (answer.status === 401) location.replace("/login"); }).catch(() => {});
  if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 3000);
});
source.addEventListener("open", () => say(""));
