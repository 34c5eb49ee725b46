/* The picture of the floor: its edges and sites, vehicles, and tasks that wait. */

import { BOLD_FONT, FONT, SMALL_FONT, View } from "./canvas.js";
import { STANDING, assignShapes, drawBerth, drawBody, drawHeat, drawLevel, drawMachine, drawParcel, drawShape, drawSite, drawVehicle,
  drawWaiting, drawWorkpiece } from "./marks.js";
import { LOADED, findMost, findWork } from "./scene.js";
import { chooseTicks, cutText, describeVehicle, describeWork, formatNumber } from "./words.js";

/** Most vehicles whose names stand beside them; those of others show under the pointer. */
export const NAMED_VEHICLES = 12;
/** Most boxes of waiting tasks beside a site. */
const PILE = 4;
/** Most vehicles at one place that are drawn one by one. */
const TALL = 4;
/** Least distance between sites that leaves room for the names of all of them, px. */
const NAME_ROOM = 32;
/** Least distance between sites that leaves room for the number of further tasks, px. */
const COUNT_ROOM = 24;
/** Room for the axes, for names above and tasks below the outermost sites, px. */
const LEFT = 58, RIGHT = 44, TOP = 30, BOTTOM = 52;

/** The usual distance of a point to its nearest neighbour, px: a median over at most 200 of them. @param {Point[]} points */
function measureGap(points) {
  const every = Math.ceil(points.length / 200), some = points.filter((_, k) => k % every === 0);
  const nearest = some.map(([x, y]) => points.reduce((least, [u, w]) => {
    const distance = Math.hypot(u - x, w - y);
    return distance > 0 && distance < least ? distance : least;
  }, 100));
  return nearest.sort((a, b) => a - b)[nearest.length >> 1];
}

/** Position of the point nearest to x, y, -1 if none is within `reach`.
 * @param {Point[]} points @param {number} x @param {number} y @param {number} reach */
function findNear(points, x, y, reach) {
  const distances = points.map(([u, w]) => Math.hypot(u - x, w - y));
  const least = distances.reduce((best, value, k) => (value < distances[best] ? k : best), 0);
  return distances[least] <= reach ? least : -1;
}

export class FloorView extends View {
  points = /** @type {Point[]} */ ([]);
  vehicles = /** @type {Seen[]} */ ([]);
  standing = /** @type {Map<number, Standing[]>} */ (new Map());
  isCrowded = false;
  gap = 0;
  siteRadius = 0;
  /** px a metre. */
  scale = 1;
  /** @param {HTMLElement} place @param {Scene} scene */
  constructor(place, scene) {
    super(place);
    this.scene = scene;
    this.shapes = assignShapes(scene.day.sites);
  }
  /** Take up the room that there is, and draw what never moves. @param {number} most The greatest height. */
  resize(most) {
    const { room: width } = this, { sites } = this.scene.day, xs = sites.map(({ x }) => x), ys = sites.map(({ y }) => y);
    const right = findMost(xs, -Infinity), high = findMost(ys, -Infinity);
    const left = -findMost(xs.map((x) => -x), -Infinity), low = -findMost(ys.map((y) => -y), -Infinity);
    const w = right - left || 1, h = high - low || 1, inner = width - LEFT - RIGHT;
    const tall = Math.min(most - TOP - BOTTOM, Math.max(90, (inner * h) / w)), scale = Math.min(inner / w, tall / h);
    this.scale = scale;
    this.open(width, Math.round(Math.max(190, scale * h + TOP + BOTTOM)));
    const dx = LEFT + (inner - scale * w) / 2, dy = TOP + (this.height - TOP - BOTTOM - scale * h) / 2;
    // y grows upwards on the floor and downwards on the screen.
    this.points = sites.map(({ x, y }) => [dx + (x - left) * scale, dy + (high - y) * scale]);
    this.gap = measureGap(this.points);
    this.isCrowded = this.gap < NAME_ROOM;
    this.siteRadius = Math.max(2, Math.min(5, this.gap / 10));
    this.drawAxes(
      chooseTicks(left, right, Math.max(2, width / 110)).map((x) => [x, dx + (x - left) * scale]),
      chooseTicks(low, high, Math.max(2, this.height / 70)).map((y) => [y, dy + (high - y) * scale]),
    );
    this.drawHeats();
    this.drawEdges();
    this.drawSites(this.layer);
  }
  /** @param {Point[]} across Values and where they are, px. @param {Point[]} up */ drawAxes(across, up) {
    const { layer: pen, width } = this, bottom = this.height - 18;
    for (const [value, x] of across) {
      pen.text(formatNumber(value), x, bottom + 12, { colour: "muted", align: "center" });
    }
    for (const [value, y] of up) pen.text(formatNumber(value), 33, y + 4, { colour: "muted", align: "right" });
    pen.lines([
      ...across.map(([, x]) => /** @type {Line} */ ([x, bottom - 4, x, bottom])),
      ...up.map(([, y]) => /** @type {Line} */ ([36, y, 40, y])),
      [40, bottom, width - 6, bottom], [40, 6, 40, bottom],
    ], "line");
    pen.text("y, m", 33, 14, { colour: "muted", align: "right" });
    pen.text("x, m", width - 6, bottom - 6, { colour: "muted", align: "right" });
  }
  /** Below edges and sites how long vehicles waited. */
  drawHeats() {
    const { waited: { sites, lanes }, day: { mostWaited } } = this.scene;
    for (const [lane, seconds] of lanes) {
      const [from, to] = lane.split(",").map((k) => this.points[Number(k)]);
      drawHeat(this.layer, seconds / mostWaited, from, to);
    }
    for (const [site, seconds] of sites) drawHeat(this.layer, seconds / mostWaited, this.points[site]);
  }
  drawEdges() {
    const { layer: pen, points } = this, { edges } = this.scene.day;
    pen.lines(edges.map(({ a, b }) => [...points[a], ...points[b]]), "line", edges.length <= 200 ? 3 : 1.5, { round: true });
    for (const { a, b, oneWay } of edges) {
      const [x, y] = points[a], u = points[b][0] - x, w = points[b][1] - y, length = Math.hypot(u, w);
      if (!oneWay || length < 14) continue;
      drawShape(pen, "tip", x + 0.55 * u, y + 0.55 * w, Math.min(6, length / 5), { fill: "muted" }, Math.atan2(w, u));
    }
  }
  /** @param {Pen} pen */ drawSites(pen) {
    const { points, siteRadius: r, isCrowded } = this, { day: { sites }, machines } = this.scene, wide = Math.max(7, r + 2);
    /** @param {number} k */
    const isStation = (k) => sites[k].use > 0 || sites[k].stations !== "";
    // Stations before all others, the busiest first.
    const order = [...sites.keys()].sort((a, b) => sites[b].use - sites[a].use);
    for (const k of order.toReversed()) {
      drawSite(pen, this.shapes.get(sites[k].kind) ?? "", ...points[k], isCrowded && isStation(k) ? r + 1.5 : r);
    }
    sites.forEach(({ slots, places }, k) => {
      if (slots + places > 0) drawBerth(pen, slots > 0, ...points[k], wide);
    });
    // On a crowded floor names hide way-points, but never stations, whose names alone are shown.
    const named = isCrowded ? order.filter(isStation) : order, font = this.gap >= 45 ? FONT : SMALL_FONT;
    const taken = named.map((k) => points[k]).map(([x, y]) => /** @type {Line} */ ([x - r, y - r, x + r, y + r]));
    for (const k of named) {
      const text = cutText(sites[k].name), width = pen.measure(text, font);
      // The nearest that is free of eight places around the site.
      const corners = (isCrowded ? [2, 9, 16, 23] : [2]).flatMap((gap) => {
        const s = r + gap, left = -width - s, above = -s - 2, below = s + 9;
        return /** @type {Point[]} */ ([[s, above], [left, above], [-width / 2, above], [s, below], [left, below], [s, 4],
          [left, 4], [-width / 2, below + 2]]);
      });
      const place = this.findPlace(corners, points[k], width, taken);
      if (place !== null) pen.text(text, ...place, { colour: isCrowded ? "ink" : "muted", font, halo: true });
    }
    for (const site of new Set(machines.map((machine) => machine.site))) drawMachine(pen, ...points[site], wide);
  }
  /** The first of the offsets from a point at which a text hides nothing; its box is then taken.
   * @param {Point[]} offsets @param {Point} point @param {number} width @param {Line[]} taken @returns {Point | null} */
  findPlace(offsets, [x, y], width, taken) {
    for (const [dx, dy] of offsets) {
      const box = /** @type {Line} */ ([x + dx - 1, y + dy - 10, x + dx + width + 1, y + dy + 3]);
      const free = box[0] >= 42 && box[2] <= this.width && box[1] >= 0 && taken.every((other) =>
        box[0] >= other[2] || box[2] <= other[0] || box[1] >= other[3] || box[3] <= other[1]);
      if (!free) continue;
      taken.push(box);
      return [x + dx, y + dy];
    }
    return null;
  }
  /** @param {number} time @param {{ vehicle: number, task: number } | null} decision */ draw(time, decision = null) {
    const { pen, scene } = this, { machines, day } = scene, r = this.radius(), outer = this.outerRadius();
    this.begin();
    this.standing = scene.listStanding(time);
    this.vehicles = this.placeVehicles(time);
    if (decision !== null) this.drawDecision(decision);
    for (const [site, tasks] of this.standing) this.drawPile(...this.points[site], tasks);
    this.vehicles.forEach(({ state, x, y, angle }, v) => {
      drawBody(pen, day.vehicles[v].size, this.scale, x, y, angle);
      drawVehicle(pen, state, x, y, r, angle);
      const level = scene.findLevel(v, time), { capacity = 0, critical = 0 } = day.vehicles[v];
      if (level === null) return;
      drawLevel(pen, "line", 1, x, y, r + 4);
      drawLevel(pen, level * capacity < critical ? "alarm" : "charge", level, x, y, r + 4);
    });
    this.nameVehicles();
    for (const { x, y, wait } of this.vehicles) if (wait) drawWaiting(pen, x, y, outer, this.vehicles[wait.holder]);
    for (const site of new Set(machines.map((machine) => machine.site))) {
      const work = machines.filter((machine) => machine.site === site).map((machine) => findWork(machine, time));
      this.drawWork(...this.points[site], work.filter(({ now }) => now).length, work.flatMap(({ queue }) => queue).length);
    }
  }
  /** Names beside the vehicles, where they hide no other vehicle and no other name. */
  nameVehicles() {
    const { pen, vehicles } = this, r = this.outerRadius(), few = vehicles.length <= NAMED_VEHICLES;
    const taken = few ? vehicles.map(({ x, y }) => /** @type {Line} */ ([x - r, y - r, x + r, y + r])) : [];
    vehicles.forEach(({ x, y, stack, first }, v) => {
      // Of a tall stack only the number is told, once.
      const text = stack > TALL ? `${stack} vehicles` : cutText(this.scene.day.vehicles[v].id);
      if (stack > TALL ? !first : !few) return;
      const width = pen.measure(text, BOLD_FONT);
      const place = this.findPlace([[r + 4, 4], [-width - r - 4, 4], [-width / 2, -r - 5]], [x, y], width, taken);
      if (place !== null) pen.text(text, ...place, { font: BOLD_FONT, halo: true });
    });
  }
  radius() {
    return Math.max(4, Math.min(this.scene.day.vehicles.length <= NAMED_VEHICLES ? 9 : 7, this.gap / 3.5));
  }
  /** With the levels around them. */
  outerRadius() { return this.radius() + (this.scene.day.hasLevels ? 6 : 0); }
  /** Screen places of the vehicles; those that stand together are put above each other, or below where the picture ends.
   * @param {number} time */
  placeVehicles(time) {
    const { scene, points } = this, meets = scene.waits.length > 0, stacks = /** @type {Map<string, Seen[]>} */ (new Map());
    const vehicles = scene.day.vehicles.map((_, v) => {
      const { a, b, part } = scene.locate(v, time), { state } = scene.findState(v, time), wait = scene.findWait(v, time);
      const [p, q] = points[a], [u, w] = points[b], x = p + part * (u - p), y = q + part * (w - q);
      // Who waits for others looks ahead.
      const [ahead, next] = points[wait?.ahead ?? b], key = `${Math.round(x)} ${Math.round(y)}`;
      const seen = /** @type {Seen} */ ({ state, x, y, angle: Math.atan2(next - q, ahead - p), stack: 1, first: true, wait });
      if ((meets && a === b) || (state !== LOADED && STANDING.includes(state))) {
        stacks.set(key, [...(stacks.get(key) ?? []), seen]);
      }
      return seen;
    });
    for (const stack of stacks.values()) {
      const step = stack.length > TALL ? Math.min(4, 40 / stack.length) : 2 * this.outerRadius() + 3;
      const up = stack[0].y > this.height / 2 ? -1 : 1;
      stack.forEach((seen, k) => Object.assign(seen, { stack: stack.length, first: k === 0, y: seen.y + up * k * step }));
    }
    return vehicles;
  }
  /** The tasks at a site: as many boxes as there is room for, and how many more there are.
   * @param {number} x @param {number} y @param {Standing[]} tasks */
  drawPile(x, y, tasks) {
    const { pen, gap } = this, r = Math.max(2, Math.min(5, gap / 5)), top = y + this.siteRadius + r + 2;
    const most = Math.max(1, Math.min(PILE, Math.floor(gap / 20))), left = x - 6.5 * (Math.min(tasks.length, most) - 1);
    const shown = tasks.length <= most ? tasks.length : Math.max(1, most - 1);
    // Late ones first: a pile shows few.
    const ordered = tasks.toSorted((a, b) => Number(b.late) - Number(a.late)).slice(0, shown);
    ordered.forEach((task, k) => drawParcel(pen, task, left + 13 * k, top, r));
    if (gap >= COUNT_ROOM) this.drawMore(tasks.length - shown, left + 13 * shown - 6, top + 4);
  }
  /** Above a machine a box for each task, filled while it is processed.
   * @param {number} x @param {number} y @param {number} working @param {number} queued */
  drawWork(x, y, working, queued) {
    const shown = Math.min(PILE, working + queued), left = x - 4.5 * (shown - 1);
    const top = y - Math.max(7, this.siteRadius + 2) - 10;
    for (let k = 0; k < shown; k++) drawWorkpiece(this.pen, k < working, left + 9 * k, top);
    this.drawMore(working + queued - shown, left + 9 * shown - 3, top + 4);
  }
  /** How many more there are. @param {number} count @param {number} x @param {number} y */
  drawMore(count, x, y) { if (count > 0) this.pen.text(`+${count}`, x, y, { font: BOLD_FONT, halo: true }); }
  /** A ring around the vehicle of a decision, and a line to the task that it takes. @param {{ vehicle: number, task: number }} decision */
  drawDecision({ vehicle, task }) {
    if (vehicle < 0) return;
    const { x, y } = this.vehicles[vehicle], [u, w] = this.points[this.scene.tasks[task].pickup], r = this.radius() + 6;
    this.pen.lines([[x, y, u, w]], "mark", 2.5, { dash: [6, 4] });
    for (const [a, b] of [[x, y], [u, w]]) this.pen.circle(a, b, r, { stroke: "mark", width: 2.5 });
  }
  /** What is at a point of the screen, in words; null if nothing is near. @param {number} x @param {number} y @param {number} time */
  describePoint(x, y, time) {
    const { scene } = this, v = findNear(this.vehicles.map((own) => [own.x, own.y]), x, y, 12);
    if (v >= 0) return describeVehicle(scene, v, time);
    const k = findNear(this.points, x, y, 14);
    if (k < 0) return null;
    const site = scene.day.sites[k], own = site.name === site.id ? site.id : `${site.name}: ${site.id}`;
    const lines = [site.kind ? `${own} (${site.kind})` : own, `x ${site.x} m, y ${site.y} m`];
    if (site.slots > 0) lines.push(`${site.slots} may charge here`);
    if (site.places > 0) lines.push(`${site.places} may park here`);
    for (const { task, late, fetched } of (this.standing.get(k) ?? []).slice(0, 6)) {
      lines.push(`${scene.tasks[task].id}: ${fetched ? "a vehicle is on its way" : "waits"}${late ? ", late" : ""}`);
    }
    const here = scene.machines.filter((machine) => machine.site === k);
    return [...lines, ...here.map((machine) => describeWork(scene, machine, time))].join("\n");
  }
}
