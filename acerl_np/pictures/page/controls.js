/* Buttons, keys and the pointer of a replay. */

import { find, get, make, tellPoints } from "./dom.js";
import { LEAST_SPAN, SPEEDS } from "./times.js";
import { formatNumber } from "./words.js";

/** Tell of a pointer that goes down, moves and comes up again without having moved, in px.
 * @param {HTMLCanvasElement} canvas @param {(x: number) => void} begin
 * @param {(x: number, start: number) => void} move @param {(x: number) => void} click */
function followDrag(canvas, begin, move, click) {
  let start = NaN, isMoved = false;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    [start, isMoved] = [event.offsetX, false];
    begin(start);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (Number.isNaN(start) || !canvas.hasPointerCapture(event.pointerId)) return;
    isMoved ||= Math.abs(event.offsetX - start) > 3;
    if (isMoved) move(event.offsetX, start);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!Number.isNaN(start) && !isMoved) click(event.offsetX);
    start = NaN;
  });
}

/** In a chart a click goes to that moment, dragging moves the charts, and the wheel shows more or less.
 * @param {Player} player @param {TimeView} view */
function moveCharts(player, view) {
  const { canvas } = view, { span } = player;
  let from = 0;
  followDrag(canvas, () => { from = span.from; }, (x, start) => {
    const seconds = ((start - x) * span.length) / (view.right - view.left);
    span.show(from + seconds, from + seconds + span.length);
    player.show();
  }, (x) => player.seek(view.toTime(x)));
  canvas.addEventListener("wheel", (event) => {
    const { deltaX, deltaY } = event, goesAside = event.shiftKey || Math.abs(deltaX) > Math.abs(deltaY);
    // What would change nothing is left to the page, which scrolls.
    if (event.ctrlKey || (span.isWhole && (goesAside || deltaY > 0))) return;
    event.preventDefault();
    const by = event.deltaMode === 0 ? 1 : 30;
    if (goesAside) span.move((by * (deltaX || deltaY) * span.length) / view.width);
    else span.zoom(1.002 ** (by * deltaY), view.toTime(event.offsetX));
    player.show();
  }, { passive: false });
}

/** On the day, dragging shows a part of it, moves that part or one of its ends; a double click shows all.
 * @param {Player} player @param {DayView} day */
function moveSpan(player, day) {
  const { canvas } = day, { span } = player;
  let handle = day.findHandle(0), from = 0, to = 0;
  followDrag(canvas, (x) => {
    [handle, from, to] = [day.findHandle(x), span.from, span.to];
  }, (x, start) => {
    const now = day.toTime(x), then = day.toTime(start);
    if (handle === "all") span.show(from + now - then, to + now - then);
    else if (handle === "from") span.show(Math.min(now, to - LEAST_SPAN), to);
    else if (handle === "to") span.show(from, Math.max(now, from + LEAST_SPAN));
    else span.show(Math.min(now, then), Math.max(now, then));
    player.show();
  }, (x) => {
    const middle = day.toTime(x);
    span.show(middle - span.length / 2, middle + span.length / 2);
    player.show();
  });
  canvas.addEventListener("pointermove", (event) => {
    const over = day.findHandle(event.offsetX);
    canvas.style.cursor = over === null ? "crosshair" : over === "all" ? "grab" : "ew-resize";
  });
  canvas.addEventListener("dblclick", () => player.zoom("whole"));
}

/** Keys as they are shown, what they do, and how. @type {[string, string, Record<string, (player: Player, event: KeyboardEvent) => void>][]} */
const KEYS = [
  ["space", "play or pause", { " ": (player) => player.toggle() }],
  ["← →", "10 s back or on; with shift 100 s", {
    ArrowLeft: (player, { shiftKey }) => player.seek(player.time - (shiftKey ? 100 : 10)),
    ArrowRight: (player, { shiftKey }) => player.seek(player.time + (shiftKey ? 100 : 10)) }],
  [", . or J K", "decision before, next decision", {
    ",": (player) => player.stepDecision(-1), j: (player) => player.stepDecision(-1),
    ".": (player) => player.stepDecision(1), k: (player) => player.stepDecision(1) }],
  ["+ - or ↑ ↓", "faster, slower", {
    ArrowUp: (player) => player.changeSpeed(1), "+": (player) => player.changeSpeed(1), "=": (player) => player.changeSpeed(1),
    ArrowDown: (player) => player.changeSpeed(-1), "-": (player) => player.changeSpeed(-1) }],
  ["I O 0", "charts: zoom in, zoom out, the whole episode", {
    i: (player) => player.zoom("in"), o: (player) => player.zoom("out"), 0: (player) => player.zoom("whole") }],
  ["H L", "charts: earlier, later", { h: (player) => player.zoom("earlier"), l: (player) => player.zoom("later") }],
  ["Home End", "to the start, to the end", { Home: (player) => player.seek(0), End: (player) => player.seek(player.episode.end) }],
  ["T", "light or dark", { t: () => find("#theme").click() }],
  ["?", "this list", { "?": () => find("#help").click() }],
];

/** Whether an element needs this key itself. @param {Element} element @param {string} key */
function ownsKey(element, key) {
  if (element.closest("dialog, select")) return true;
  if (key === " ") return element.closest("button, summary") !== null;
  // Boxes scroll; the slider's arrows move by the page's own steps.
  return element.closest(".box") !== null && /^(Arrow|Home|End)/.test(key);
}

/** @param {Player} player */ export function listen(player) {
  const slider = get("#time", document, HTMLInputElement), list = get("#speed", document, HTMLSelectElement);
  const keys = get("#keys", document, HTMLDialogElement), actions = Object.assign({}, ...KEYS.map(([, , own]) => own));
  find("tbody", keys).append(...KEYS.map(([shown, words]) => make("tr",
    make("th", ...shown.split(" ").flatMap((key) => (key === "or" ? [" or "] : [make("kbd", key), " "]))), make("td", words))));
  /** @type {Record<string, () => void>} */
  const buttons = {
    play: () => player.toggle(), restart: () => player.seek(0), help: () => keys.showModal(),
    back: () => player.stepDecision(-1), forward: () => player.stepDecision(1),
  };
  find("#help").hidden = false;
  for (const [id, action] of Object.entries(buttons)) find(`#${id}`).addEventListener("click", action);
  slider.max = String(player.episode.end);
  slider.addEventListener("input", () => player.seek(Number(slider.value)));
  for (const speed of SPEEDS) list.add(new Option(`${formatNumber(speed)}×`, String(speed)));
  list.addEventListener("change", () => player.setSpeed(Number(list.value)));
  document.addEventListener("keydown", (event) => {
    const { key, target } = event, action = actions[key.length === 1 ? key.toLowerCase() : key];
    if (event.ctrlKey || event.metaKey || event.altKey || !(target instanceof Element) || ownsKey(target, key) || !action) return;
    event.preventDefault();
    action(player, event);
  });
  for (const panel of player.panels) {
    const { floor, gantt, curves, day, root, details } = panel;
    tellPoints([floor, gantt, curves, day], () => player.time);
    for (const view of [gantt, curves]) moveCharts(player, view);
    moveSpan(player, day);
    for (const button of root.querySelectorAll("button")) {
      button.addEventListener("click", () => player.zoom(button.dataset.zoom ?? ""));
    }
    details.addEventListener("toggle", () => panel.writeVehicles(player.time));
  }
  window.addEventListener("resize", () => player.resize());
}
