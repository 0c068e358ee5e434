// What drifted and what is damaged: by code, with what repairs it.

import { ask } from "./api.js";
import { el, focusHeading, many, named, number, problem, prose, say, show, shown } from "./dom.js";

const SEVERITY = { E: "Error", W: "Warning", I: "Note" };
const LEVELS = { fast: "names, sizes and dates", full: "every byte and row", deep: "also ask the model" };
const SHOWN = 100;

export async function statusView(signal, quiet) {
  const status = await ask("status", {}, signal);
  const findings = el("div", { id: "findings" });
  show("Status",
    el("h1", {}, "Status"),
    el("p", { id: "verdict", class: `verdict${status.clean ? "" : " drifted"}` },
      status.clean ? "Checking…" : "Not clean: see the findings."),
    facts(status),
    form(findings, signal),
    findings);
  if (!quiet) focusHeading();
  // Longer than the rest: that is shown meanwhile.
  check("fast", findings, signal);
}

function facts(status) {
  const { embedder, index } = status;
  const rows = [
    ["Generation", number(status.generation)],
    ...Object.entries(status.counts).map(([name, count]) => [name, number(count)]),
    ["Model", `${embedder.name}${embedder.problem ? `: ${embedder.problem}` : ""}`],
    status.beside ? ["Second model", status.beside.name] : null,
    index ? ["Vectors", `${number(index.vectors)}, ${index.kind}`] : null,
    ...status.accepted.slice(0, SHOWN).map((one) => ["Accepted", `${one.code} ${one.path}`]),
  ].filter(Boolean);
  return el("dl", { class: "facts" }, rows.map(([name, value]) => el("div", {},
    el("dt", {}, shown(name)), el("dd", { dir: "auto" }, shown(value)))));
}

function form(findings, signal) {
  const level = el("select", { id: "level" },
    Object.entries(LEVELS).map(([name, words]) => el("option", { value: name }, `${name}: ${words}`)));
  return el("p", { class: "steps" },
    el("label", { for: "level" }, "Check"), level,
    el("button", { type: "button", onclick: () => check(level.value, findings, signal) }, "Verify"));
}

async function check(level, into, signal) {
  into.replaceChildren(el("p", { class: "soft" }, "Checking…"));
  say("checking");
  try {
    const found = await ask("verify", { level }, signal);
    into.replaceChildren(...drawn(found));
    verdict(found);
    say(found.findings.length ? many(found.findings.length, "finding") : "no findings");
  } catch (error) {
    if (error.name === "AbortError") return;
    into.replaceChildren(problem(error, () => check(level, into, signal)));
    verdict({ failed: true });
  }
}

/** One sentence that the findings below it bear out. */
function verdict({ clean, findings, failed }) {
  const node = document.getElementById("verdict");
  if (!node) return;
  node.className = `verdict ${clean ? "clean" : "drifted"}`;
  if (failed) node.textContent = "Not checked: see below.";
  else if (!clean) node.textContent = "Not clean: see the findings.";
  else if (findings.length) node.textContent = "No errors and no warnings beyond what is accepted.";
  else node.textContent = "Clean: the index is up to date with the files.";
}

function drawn(found) {
  const groups = new Map();
  for (const one of found.findings) {
    if (!groups.has(one.code)) groups.set(one.code, []);
    groups.get(one.code).push(one);
  }
  const order = ["E", "W", "I"];
  const sorted = [...groups].sort(([, [one]], [, [other]]) => order.indexOf(one.severity) - order.indexOf(other.severity));
  return [
    el("h2", {}, found.findings.length ? many(found.findings.length, "finding") : "No findings"),
    ...sorted.map(([code, all]) => group(code, all)),
    el("p", { class: "soft" }, `Checked at level ${shown(found.level)}: ${found.checked.map(shown).join("; ")}.`),
    found.not_checked.length
      ? el("p", { class: "soft" }, `Not checked: ${found.not_checked.map(shown).join("; ")}.`) : null,
  ].filter(Boolean);
}

function group(code, all) {
  const [first] = all;
  const some = all.slice(0, SHOWN);
  const repairs = [...new Set(all.map((one) => one.repair))].filter(Boolean).slice(0, 3);
  return el("section", { class: "finding" },
    el("h3", {}, el("span", { class: `severity ${first.severity}` }, SEVERITY[first.severity] || first.severity),
      " ", shown(code), el("span", { class: "count" }, ` ${many(all.length, "file")}`)),
    repairs.map((one) => el("p", { class: "repair", dir: "auto" }, "Repair: ", prose(one))),
    el("ul", {}, some.map((one) => el("li", {}, named(one.path),
      one.detail ? el("span", { class: "soft", dir: "auto" }, ` ${prose(one.detail)}`) : null,
      one.accepted ? el("span", { class: "soft" }, " accepted") : null))),
    all.length > some.length ? el("p", { class: "soft" }, `and ${number(all.length - some.length)} more`) : null);
}
