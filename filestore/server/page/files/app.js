// Starts the page: the token, which view is shown, keys, what changes meanwhile.

import { Refused, ask, chooseStore, events, generation, keepToken, store, storeNames, takeToken, token } from "./api.js";
import { read } from "./address.js";
import { changesView } from "./changes.js";
import { cameFrom, documentView, leave, step, toggle } from "./document.js";
import { el, problem, say, show } from "./dom.js";
import { forget, searchView, similarView, submit, typed } from "./search.js";
import { statusView } from "./status.js";

const $ = (id) => document.getElementById(id);
const STORE = "filestore-store";
const SINGLE_KEYS = "filestore-single-keys";

let running = new AbortController();
let listening = new AbortController();
let before = "";
let ready = false;

const VIEWS = {
  search: searchView,
  similar: similarView,
  document: documentView,
  status: (_, signal) => statusView(signal),
  changes: (_, signal) => changesView(signal),
};

/** Show what the address says; what was being asked for another one is given up. */
async function route(isTyping = false) {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  const { page, values } = read();
  const view = Object.hasOwn(VIEWS, page) ? VIEWS[page] : VIEWS.search;
  const returning = before === "document" && (page === "search" || page === "similar");
  before = page;
  if (page === "search" || page === "similar") cameFrom(location.hash);
  for (const name of ["status", "changes"]) {
    if (page === name) $(`to-${name}`).setAttribute("aria-current", "page");
    else $(`to-${name}`).removeAttribute("aria-current");
  }
  if (!isTyping) $("main").setAttribute("aria-busy", "true");
  delete $("main").dataset.query;
  try {
    await view(values, signal, returning, isTyping);
  } catch (error) {
    if (error.name === "AbortError" || signal.aborted) return;
    if (error instanceof Refused && error.status === 401) return tokenView(true);
    if (!(error instanceof Refused)) console.error(error);
    show("Error", el("h1", {}, "This did not work"), problem(error, () => route()),
      page === "search" && !values.has("q") ? null : el("p", {}, el("a", { href: "#/" }, "What is here")));
  }
  if (!signal.aborted) $("main").removeAttribute("aria-busy");
}

/** Ask for the token that the server printed when it started. */
function tokenView(refused = false) {
  listening.abort();
  ready = false;
  const input = el("input", {
    id: "token", type: "password", autocomplete: "off", required: true, maxlength: "4096",
    "aria-describedby": "token-help", "aria-invalid": refused ? "true" : null,
  });
  show("Token",
    el("h1", {}, "Token"),
    refused ? el("p", { class: "problem", role: "alert" }, "The server does not take this token.") : null,
    el("form", {
      class: "token",
      onsubmit: (event) => {
        event.preventDefault();
        keepToken(input.value.trim());
        start();
      },
    },
    el("p", { id: "token-help" }, el("code", {}, "filestore serve"), " printed an address that has the token: open that. ",
      "Where its output is no terminal, it named the file that has it, which is usually ",
      el("code", {}, "~/.config/filestore/server-token"), "; a token of your own is the one in ", el("code", {}, "FILESTORE_TOKEN"), "."),
    el("p", {}, "This tab keeps the token until it is closed, and sends it to this server alone."),
    el("label", { for: "token" }, "Token"), input, el("button", { type: "submit" }, "Open")));
  $("main").removeAttribute("aria-busy");
  input.focus();
}

function remembered(name) {
  try {
    return sessionStorage.getItem(name) || "";
  } catch {
    return "";
  }
}

function remember(name, value) {
  try {
    sessionStorage.setItem(name, value);
  } catch { /* for this page alone */ }
}

async function start() {
  let names;
  try {
    names = await storeNames();
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return tokenView(token() !== "");
    show("Error", el("h1", {}, "This did not work"), problem(error, start));
    return undefined;
  }
  const chosen = names.includes(remembered(STORE)) ? remembered(STORE) : names[0] || "";
  chooseStore(chosen);
  $("stores").hidden = names.length < 2;
  $("store").replaceChildren(...names.map((name) => el("option", { value: name, selected: name === chosen }, name)));
  ready = true;
  listen();
  await route();
  if (read().page === "search") $("query").focus();
  return undefined;
}

// What changes meanwhile

const LONGEST_PAUSE_MS = 30_000;

async function listen() {
  listening.abort();
  if (document.hidden) return;
  listening = new AbortController();
  const { signal } = listening;
  let pause = 1000;
  while (!signal.aborted) {
    try {
      for await (const event of events(signal)) {
        pause = 1000;
        happened(event);
      }
    } catch (error) {
      // Where nothing tells of changes, the page does without.
      if (signal.aborted || (error instanceof Refused && error.status >= 400 && error.status < 500)) return;
    }
    await new Promise((resolve) => { setTimeout(resolve, pause); });
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
  }
}

/** A page that nobody sees listens to nothing: a browser has few connections to one server. */
async function seen() {
  if (document.hidden) return listening.abort();
  if (!ready) return undefined;
  listen();
  const before = generation();
  try {
    // The cheapest question: a page of names that ends with the first.
    await ask("list", { after: "/", most: 1 });
  } catch {
    return undefined;
  }
  return before && generation() !== before ? happened({ event: "catalog" }) : undefined;
}

function happened(event) {
  // What a sync did comes as a changed catalog, too, unless it found nothing to do.
  if (!["changed", "catalog", "lagging"].includes(event.event)) return;
  forget();
  if (!$("changed").hidden) return;
  $("changed").replaceChildren(
    el("span", {}, event.event === "changed" ? "Files of the store changed. " : "The index changed. "),
    el("button", { type: "button", id: "reload", onclick: reload }, "Show what is there now"));
  $("changed").hidden = false;
}

function reload() {
  $("changed").hidden = true;
  route();
  $("main").focus();
}

// What is typed

const SETTLED_MS = 500;
let isAnswering = false;
let hasMore = false;
let settling = 0;

/** Answer what is typed so far: one answer at a time, the next is of what is typed by then. */
async function type() {
  if (!ready || !typed($("query").value)) return;
  clearTimeout(settling);
  hasMore = true;
  if (isAnswering) return;
  isAnswering = true;
  while (hasMore) {
    hasMore = false;
    await route(true);
  }
  isAnswering = false;
  // Once nothing more comes the filters count over more than the first hits.
  const answered = location.hash;
  settling = setTimeout(() => {
    if (location.hash === answered && read().values.has("begun")) route();
  }, SETTLED_MS);
}

// Keys

const isTyped = (target) => target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");

function singleKeys() {
  try {
    return localStorage.getItem(SINGLE_KEYS) !== "off";
  } catch {
    return true;
  }
}

function pressed(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  const { page } = read();
  if (event.key === "Escape") return escaped(event, page);
  if (event.target === $("query") && event.key === "ArrowDown") return walk(event, 1);
  if (isTyped(event.target)) return undefined;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    // Elsewhere they scroll.
    if (event.target.matches(WALKED)) walk(event, event.key === "ArrowDown" ? 1 : -1);
    return undefined;
  }
  if (!singleKeys()) return undefined;
  const act = {
    "/": () => { $("query").focus(); $("query").select(); },
    "?": () => $("keys").showModal(),
    j: () => walk(event, 1),
    k: () => walk(event, -1),
    n: page === "document" ? () => step(1) : null,
    p: page === "document" ? () => step(-1) : null,
    s: page === "document" ? toggle : null,
  }[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
  return undefined;
}

function escaped(event, page) {
  if (page === "document" || page === "similar") {
    event.preventDefault();
    leave();
  } else if (event.target === $("query")) {
    event.preventDefault();
    (document.querySelector(WALKED) || $("main")).focus();
  } else {
    $("query").focus();
    $("query").select();
  }
}

/** Results, and the lines of the tree. */
const WALKED = "a.open, .walked";

function walk(event, by) {
  const all = [...document.querySelectorAll(WALKED)].filter((one) => one.checkVisibility());
  if (!all.length) return;
  event.preventDefault();
  const at = all.indexOf(document.activeElement);
  if (at === 0 && by < 0) $("query").focus();
  else all[Math.min(at + by, all.length - 1) < 0 ? 0 : Math.min(at + by, all.length - 1)].focus();
}

function prepare() {
  $("search").addEventListener("submit", (event) => {
    event.preventDefault();
    if (ready) submit();
  });
  $("query").addEventListener("input", type);
  $("skip").addEventListener("click", (event) => {
    event.preventDefault();
    $("main").focus();
  });
  $("store").addEventListener("change", () => {
    remember(STORE, $("store").value);
    chooseStore($("store").value);
    forget();
    listen();
    $("changed").hidden = true;
    say(`store ${store()}`);
    route();
  });
  $("keys-button").addEventListener("click", () => $("keys").showModal());
  $("keys-close").addEventListener("click", () => $("keys").close());
  $("single-keys").checked = singleKeys();
  $("single-keys").addEventListener("change", () => {
    try {
      localStorage.setItem(SINGLE_KEYS, $("single-keys").checked ? "on" : "off");
    } catch { /* until the page is left */ }
  });
  document.addEventListener("keydown", pressed);
  document.addEventListener("visibilitychange", seen);
  addEventListener("hashchange", () => {
    if (location.hash.startsWith("#token=")) {
      takeToken();
      start();
    } else if (ready) route();
  });
}

takeToken();
prepare();
start();
