// What was changed, by whom, newest first: each with its diff, and the way back.

import { ask } from "./api.js";
import { el, focusHeading, many, named, number, problem, prose, say, show, shown } from "./dom.js";

const SHOWN = 50;

export async function changesView(signal) {
  const found = await ask("changes", { limit: SHOWN }, signal);
  show("Changes",
    el("h1", {}, "Changes"),
    found.changes.map((one) => change(one, signal)),
    found.changes.length ? null : el("p", {}, "No command and no program has changed a file yet."),
    found.left ? el("p", { class: "soft" }, `and ${number(found.left)} older: filestore changes`) : null);
  focusHeading();
}

function change(one, signal) {
  const below = el("div");
  const name = shown(one.what || one.id);
  const tried = async (what) => {
    try {
      await what();
    } catch (error) {
      if (error.name !== "AbortError") below.replaceChildren(problem(error));
    }
  };
  const diff = el("button", {
    type: "button",
    "aria-label": `Diff of ${name}`,
    onclick: () => tried(async () => {
      const { changes: [found] } = await ask("changes", { id: one.id }, signal);
      below.replaceChildren(el("pre", { class: "diff", tabindex: "0", "aria-label": `Diff of ${name}` },
        (found.diff || "").split("\n").map((line) => `${prose(line)}\n`)));
    }),
  }, "Diff");
  const undo = el("button", {
    type: "button",
    onclick: () => {
      if (undo.textContent === "Undo") {
        undo.textContent = `Undo ${many(one.files, "file")} now`;
        return;
      }
      tried(async () => {
        await ask("undo", { id: one.id }, signal);
        await changesView(signal);
        say(`undone: ${name}`);
      });
    },
  }, "Undo");
  return el("section", { class: "finding" },
    el("h2", {}, name, el("span", { class: "count" }, " by ", one.by === null ? "you" : named(`“${one.by}”`))),
    el("p", { class: "soft" }, `${shown(one.when.replace("T", " ").slice(0, 16))} UTC, ${shown(one.state)}, ${many(one.files, "file")}`),
    one.problem ? el("p", { dir: "auto" }, prose(one.problem)) : el("p", { class: "steps" },
      diff, one.state === "undone" ? null : undo, el("code", {}, `filestore undo ${shown(one.id)}`)),
    below);
}
