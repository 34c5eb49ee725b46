/* What stands on the floor, each in a shape of its own: told apart without colours. */

import { BROKEN, CHARGING, IDLE, LOADED, OUT_OF_SERVICE, PARKED, QUEUED, READYING, TO_PICKUP } from "./scene.js";

/** States in which a vehicle is no arrow. */
export const STANDING = [IDLE, LOADED, BROKEN, PARKED, QUEUED, CHARGING, OUT_OF_SERVICE, READYING];
/** Of kinds of sites. */
const SITE_SHAPES = ["circle", "diamond", "square", "triangle", "cross"];
/** Corners of shapes of radius 1. @type {Record<string, Point[]>} */
const CORNERS = {
  square: [[-1, -1], [1, -1], [1, 1], [-1, 1]],
  diamond: [[-1.3, 0], [0, -1.3], [1.3, 0], [0, 1.3]],
  triangle: [[-1.2, 1], [0, -1.2], [1.2, 1]],
  cross: [[-0.4, -1], [0.4, -1], [0.4, -0.4], [1, -0.4], [1, 0.4], [0.4, 0.4], [0.4, 1], [-0.4, 1], [-0.4, 0.4],
    [-1, 0.4], [-1, -0.4], [-0.4, -0.4]],
  flash: [[0.3, -1], [-0.6, 0.2], [-0.1, 0.2], [-0.3, 1], [0.6, -0.2], [0.1, -0.2]],
  hourglass: [[-1, -1], [1, -1], [-1, 1], [1, 1]],
  arrow: [[1.25, 0], [-1, 1], [-0.45, 0], [-1, -1]],
  tip: [[1, 0], [-1, 1], [-1, -1]],
};

/** @type {(pen: Pen, shape: string, x: number, y: number, r: number, paint: Paint, angle?: number) => void} */
export function drawShape(pen, shape, x, y, r, paint, angle = 0) {
  if (shape === "circle") return pen.circle(x, y, r, paint);
  const c = r * Math.cos(angle), s = r * Math.sin(angle);
  pen.polygon(CORNERS[shape].map(([a, b]) => [x + a * c - b * s, y + a * s + b * c]), paint);
}

/** Shapes of the kinds of sites, the most frequent kind first; a floor of more kinds has one shape for all.
 * @param {{ kind: string }[]} sites */
export function assignShapes(sites) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { kind } of sites) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const kinds = [...counts].sort((a, b) => b[1] - a[1]), few = kinds.length <= SITE_SHAPES.length;
  return new Map(kinds.map(([kind], k) => [kind, SITE_SHAPES[few ? k : 0]]));
}

/** @param {Pen} pen @param {string} shape @param {number} x @param {number} y @param {number} r */
export function drawSite(pen, shape, x, y, r) {
  drawShape(pen, shape, x, y, r, { fill: "panel", stroke: "muted" });
}

/** The letter of a parking place. @param {Pen} pen @param {Colour} colour @param {number} x @param {number} y @param {number} r */
function drawPark(pen, colour, x, y, r) {
  pen.text("P", x, y + 0.56 * r, { colour, align: "center", font: `bold ${Math.round(1.6 * r)}px system-ui, sans-serif` });
}

/** A charger, or a parking place. @param {Pen} pen @param {boolean} charges @param {number} x @param {number} y @param {number} r */
export function drawBerth(pen, charges, x, y, r) {
  drawSite(pen, "square", x, y, r);
  if (charges) drawShape(pen, "flash", x, y, 0.9 * r, { fill: "charge" });
  else drawPark(pen, "muted", x, y, 0.9 * r);
}

/** A machine at its site: a square in a square. @param {Pen} pen @param {number} x @param {number} y @param {number} r */
export function drawMachine(pen, x, y, r) {
  drawSite(pen, "square", x, y, r);
  drawShape(pen, "square", x, y, 0.4 * r, { fill: "mark" });
}

/** A task at a machine: filled while it is processed. @param {Pen} pen @param {boolean} works @param {number} x @param {number} y */
export function drawWorkpiece(pen, works, x, y) {
  drawShape(pen, "square", x, y, 3, { fill: works ? "mark" : "panel", stroke: "mark" });
}

/** A ring, an arrow, a parcel on a square, a cross in a disc, a dashed ring.
 * @type {(...of: [Pen, string, number, number, number, number?]) => void} */
export function drawVehicle(pen, state, x, y, r, angle = 0) {
  /** @type {Paint} */
  const paint = { fill: "panel", stroke: "ink", width: 2 }, a = 0.45 * r;
  if (state === LOADED) {
    drawShape(pen, "square", x, y, 0.95 * r, { ...paint, fill: "load" });
    drawShape(pen, "square", x, y, 0.4 * r, { fill: "on-load" });
  } else if (!STANDING.includes(state)) {
    drawShape(pen, "arrow", x, y, r, state === TO_PICKUP ? { ...paint, fill: "fetch" } : paint, angle);
  } else {
    if (state === BROKEN) paint.fill = "alarm";
    drawShape(pen, "circle", x, y, r, state === OUT_OF_SERVICE ? { ...paint, dash: [3, 3] } : paint);
  }
  if (state === BROKEN) pen.lines([[x - a, y - a, x + a, y + a], [x - a, y + a, x + a, y - a]], "on-alarm", 2);
  if (state === CHARGING) drawShape(pen, "flash", x, y, 0.8 * r, { fill: "charge" });
  if (state === QUEUED) drawShape(pen, "hourglass", x, y, 0.4 * r, { stroke: "ink", width: 2 });
  if (state === PARKED) drawPark(pen, "ink", x, y, 0.8 * r);
}

/** A vehicle as long and wide as it is, m. @param {Pen} pen @param {Point | undefined} size @param {number} scale
 * @param {number} x @param {number} y @param {number} angle */
export function drawBody(pen, size, scale, x, y, angle) {
  if (size === undefined) return;
  const [a, b] = size.map((metres) => (metres * scale) / 2), c = Math.cos(angle), s = Math.sin(angle);
  const corners = /** @type {Point[]} */ ([[a, b], [-a, b], [-a, -b], [a, -b]]);
  pen.polygon(corners.map(([u, w]) => [x + u * c - w * s, y + u * s + w * c]), { fill: "panel", stroke: "muted" });
}

/** An arc around a vehicle, as long as its battery is full. @type {(...of: [Pen, Colour, number, number, number, number]) => void} */
export function drawLevel(pen, stroke, level, x, y, r) {
  pen.circle(x, y, r, { stroke, width: 3 }, level);
}

/** A task at its pickup: a box; dashed if a vehicle is on its way to it, filled with "!" if late.
 * @type {(...of: [Pen, { late?: boolean, fetched?: boolean }, number, number, number?]) => void} */
export function drawParcel(pen, { late = false, fetched = false }, x, y, r = 5) {
  pen.box(x - r, y - r, 2 * r, 2 * r, { fill: late ? "alarm" : "panel", stroke: "ink", width: 1.25, dash: fetched ? [2, 2] : [] });
  if (r < 4) return;
  if (late) pen.lines([[x, y - 3.5, x, y + 0.5], [x, y + 1.7, x, y + 3.5]], "on-alarm", 1.8);
  else if (!fetched) pen.lines([[x - r, y - 1.5, x + r, y - 1.5]], "ink", 1.25);
}

/** Warmer and wider the longer vehicles waited: a disc, or a line between two points.
 * @param {Pen} pen @param {number} share @param {Point} from @param {Point} [to] */
export function drawHeat(pen, share, [x, y], to) {
  const width = (to ? 6 : 14) + 16 * Math.sqrt(share), alpha = 0.25 + 0.6 * share;
  if (to) pen.lines([[x, y, ...to]], "fetch", width, { round: true, alpha });
  else pen.circle(x, y, width / 2, { fill: "fetch", alpha });
}

/** Two bars beside a vehicle that waits, and dots to whom it waits for.
 * @type {(...of: [Pen, number, number, number, { x: number, y: number }?]) => void} */
export function drawWaiting(pen, x, y, r, holder) {
  if (holder !== undefined) pen.lines([[x, y, holder.x, holder.y]], "ink", 1.5, { dash: [1.5, 4] });
  const a = x + r, b = y - r;
  pen.circle(a, b, 6, { fill: "panel", stroke: "ink" });
  pen.lines([[a - 1.8, b - 2.6, a - 1.8, b + 2.6], [a + 1.8, b - 2.6, a + 1.8, b + 2.6]], "ink", 2);
}
