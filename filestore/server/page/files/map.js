// The texts of the store as points: near ones mean alike. Each resource has a shape and a colour.

import { ask } from "./api.js";
import { go, to } from "./address.js";
import { el, focusHeading, many, named, number, prose, say, show, shown } from "./dom.js";
import { lastAnswer } from "./search.js";

const MOST = 5000;
const SHAPES = ["circle", "square", "up", "diamond", "down", "cross", "plus", "ring"];
const MARGIN = 16;

export async function mapView(signal) {
  const found = await ask("map", { most: MOST }, signal);
  const groups = grouped(found.points);
  const canvas = el("canvas", {
    tabindex: "0", role: "application", "aria-label": "Map of vectors",
    "aria-describedby": "map-help",
  });
  const card = el("p", { class: "card", id: "map-card" }, "No point is chosen.");
  const state = { canvas, card, found, groups, current: -1, hidden: new Set(), near: hits() };
  show("Map",
    el("h1", {}, "Map of vectors"),
    found.points.length ? el("p", { class: "soft" }, counted(found)) : null,
    found.points.length ? [
      el("p", { class: "soft", id: "map-help" },
        "Similar passages are close together. Arrow keys go from point to point, Enter opens one.",
        state.near.size ? " Hits of the last search have a ring." : ""),
      card, el("div", { class: "map" }, canvas), legend(state),
    ] : el("p", { class: "empty" }, "There are no vectors yet: filestore sync makes them."));
  focusHeading();
  if (found.points.length) watch(state, signal);
}

function counted(found) {
  const some = found.left_out ? `${number(found.points.length)} of ${number(found.total)} passages` : many(found.total, "passage");
  const share = Math.round(100 * (found.explained[0] + found.explained[1]));
  return `${some}${found.left_out ? `; ${number(found.left_out)} are left out` : ""}. `
    + `The 2-D view shows ${share} % of the variance.`;
}

const hits = () => new Set((lastAnswer()?.hits || []).map((hit) => hit.path));

function grouped(points) {
  const counts = new Map();
  for (const point of points) counts.set(point.resource, (counts.get(point.resource) || 0) + 1);
  const names = [...counts].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
  const places = new Map(names.map(([name], at) => [name, Math.min(at, SHAPES.length - 1)]));
  const rest = names.slice(SHAPES.length - 1);
  const shownNames = names.slice(0, SHAPES.length - 1).map(([name, count]) => ({ name, count, place: places.get(name) }));
  if (rest.length) {
    const count = rest.reduce((sum, one) => sum + one[1], 0);
    shownNames.push({ name: rest.length === 1 ? rest[0][0] : `${many(rest.length, "other")}`, count, place: SHAPES.length - 1 });
  }
  return { places, list: shownNames };
}

function legend(state) {
  return el("fieldset", { class: "legend" },
    el("legend", {}, "Shown"),
    state.groups.list.map(({ name, count, place }) => el("label", { class: "choice" },
      el("input", {
        type: "checkbox", checked: true,
        onchange: (event) => {
          if (event.target.checked) state.hidden.delete(place);
          else state.hidden.add(place);
          draw(state);
        },
      }),
      el("canvas", { class: "sign", "data-place": place, "aria-hidden": "true" }),
      named(name), el("span", { class: "count" }, number(count)))));
}

function watch(state, signal) {
  const again = () => draw(state);
  const size = new ResizeObserver(again);
  size.observe(state.canvas.parentElement);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", again, { signal });
  signal.addEventListener("abort", () => size.disconnect());
  const { canvas } = state;
  canvas.addEventListener("mousemove", (event) => choose(state, nearest(state, event)));
  canvas.addEventListener("click", (event) => {
    choose(state, nearest(state, event));
    open(state);
  });
  canvas.addEventListener("keydown", (event) => pressed(state, event));
  canvas.addEventListener("focus", () => { if (state.current < 0) choose(state, visible(state)[0] ?? -1, true); });
}

function placed(state) {
  const { points } = state.found;
  const { width, height } = state.canvas.getBoundingClientRect();
  const xs = points.map((one) => one.x);
  const ys = points.map((one) => one.y);
  const least = [xs.reduce((a, b) => Math.min(a, b), Infinity), ys.reduce((a, b) => Math.min(a, b), Infinity)];
  const most = [xs.reduce((a, b) => Math.max(a, b), -Infinity), ys.reduce((a, b) => Math.max(a, b), -Infinity)];
  const span = [most[0] - least[0] || 1, most[1] - least[1] || 1];
  return points.map((one) => [
    MARGIN + ((one.x - least[0]) / span[0]) * (width - 2 * MARGIN),
    MARGIN + (1 - (one.y - least[1]) / span[1]) * (height - 2 * MARGIN),
  ]);
}

const groupOf = (state, point) => state.groups.places.get(point.resource);

function visible(state) {
  return state.found.points.map((_, at) => at).filter((at) => !state.hidden.has(groupOf(state, state.found.points[at])));
}

function draw(state) {
  const { canvas, found } = state;
  const { width, height } = canvas.getBoundingClientRect();
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const style = getComputedStyle(document.documentElement);
  const colours = SHAPES.map((_, at) => style.getPropertyValue(`--map-${at}`).trim());
  const ink = style.getPropertyValue("--ink").trim();
  state.places = placed(state);
  const size = found.points.length > 1500 ? 3 : found.points.length > 300 ? 4 : 6;
  for (const at of visible(state)) {
    const point = found.points[at];
    const group = groupOf(state, point);
    mark(pen, SHAPES[group], ...state.places[at], size, colours[group]);
    if (state.near.has(point.path)) ring(pen, ...state.places[at], size + 4, ink, 2);
  }
  if (state.current >= 0) ring(pen, ...state.places[state.current], size + 7, ink, 3);
  for (const sign of document.querySelectorAll("canvas.sign")) {
    sign.width = sign.height = 16 * ratio;
    const small = sign.getContext("2d");
    small.scale(ratio, ratio);
    mark(small, SHAPES[Number(sign.dataset.place)], 8, 8, 5, colours[Number(sign.dataset.place)]);
  }
}

function ring(pen, x, y, size, colour, width) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.beginPath();
  pen.arc(x, y, size, 0, 2 * Math.PI);
  pen.stroke();
}

const CORNERS = {
  square: [[-1, -1], [1, -1], [1, 1], [-1, 1]],
  up: [[0, -1.2], [1.2, 1], [-1.2, 1]],
  down: [[0, 1.2], [1.2, -1], [-1.2, -1]],
  diamond: [[0, -1.4], [1.2, 0], [0, 1.4], [-1.2, 0]],
};
const STROKES = {
  cross: [[-1, -1, 1, 1], [-1, 1, 1, -1]],
  plus: [[-1.2, 0, 1.2, 0], [0, -1.2, 0, 1.2]],
};

function mark(pen, shape, x, y, size, colour) {
  pen.fillStyle = pen.strokeStyle = colour;
  pen.lineWidth = Math.max(1.5, size / 2.5);
  pen.beginPath();
  if (shape in CORNERS) {
    for (const [dx, dy] of CORNERS[shape]) pen.lineTo(x + dx * size, y + dy * size);
    pen.fill();
  } else if (shape in STROKES) {
    for (const [x1, y1, x2, y2] of STROKES[shape]) {
      pen.moveTo(x + x1 * size, y + y1 * size);
      pen.lineTo(x + x2 * size, y + y2 * size);
    }
    pen.stroke();
  } else {
    pen.arc(x, y, size, 0, 2 * Math.PI);
    if (shape === "ring") pen.stroke();
    else pen.fill();
  }
}

function nearest(state, event) {
  const { left, top } = state.canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - left, event.clientY - top];
  let best = -1;
  let least = 24 ** 2;
  for (const at of visible(state)) {
    const distance = (state.places[at][0] - x) ** 2 + (state.places[at][1] - y) ** 2;
    if (distance < least) [best, least] = [at, distance];
  }
  return best;
}

function choose(state, at, aloud = false) {
  if (at < 0 || at === state.current) return;
  state.current = at;
  const point = state.found.points[at];
  state.card.replaceChildren(
    el("a", { href: to("document", { path: point.path }) }, el("bdi", {}, point.title ? prose(point.title) : shown(point.path.split("/").pop()))),
    " ", named(point.path));
  draw(state);
  if (aloud) say(`${prose(point.title)} ${shown(point.path)}`);
}

const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function pressed(state, event) {
  if (event.key === "Enter") return open(state);
  const way = WAYS[event.key];
  if (!way || event.ctrlKey || event.metaKey || event.altKey) return undefined;
  event.preventDefault();
  event.stopPropagation();
  const from = state.places[state.current];
  if (!from) return choose(state, visible(state)[0] ?? -1, true);
  let best = -1;
  let least = Infinity;
  for (const at of visible(state)) {
    const [dx, dy] = [state.places[at][0] - from[0], state.places[at][1] - from[1]];
    const along = dx * way[0] + dy * way[1];
    const across = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
    if (at === state.current || along <= 0 || across > 2 * along) continue;
    const cost = along + 2 * across;
    if (cost < least) [best, least] = [at, cost];
  }
  return choose(state, best, true);
}

function open(state) {
  const point = state.found.points[state.current];
  if (point) go("document", { path: point.path });
}
