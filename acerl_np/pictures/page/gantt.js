/* The chart of the vehicles and machines: a row for each, time from left to right. */

import { SMALL_FONT } from "./canvas.js";
import { drawShape } from "./marks.js";
import { CHARGING, QUEUED } from "./scene.js";
import { TimeView } from "./times.js";
import { cutText, describeRecall, describeWait, describeWork, formatLevel, formatNumber } from "./words.js";
/** The line below all bars. @param {Pen} pen @param {Chart} chart @param {number} end @param {number} y */
export function drawIdle(pen, { toX, row }, end, y) {
  pen.lines([[toX(0), y + row / 2, toX(end), y + row / 2]], "muted", 1.5);
}

/** Thin to the pickup, thick from there; of a lost trip its end is marked.
 * @param {Pen} pen @param {Chart} chart @param {TripBar} trip @param {number} y @param {string} name @param {boolean} late */
export function drawTrip(pen, chart, { start, end: last, pickup, delivered, recall, pause }, y, name = "", late = false) {
  const { row, toX } = chart, x = toX(start), end = toX(last), loaded = toX(pickup ?? last), middle = y + row / 2;
  const top = y + 0.36 * row, height = 0.28 * row, r = Math.min(5, row / 4);
  pen.box(x, top, loaded - x, height, { fill: "fetch" });
  if (row >= 12 && loaded - x > 3) pen.box(x + 0.5, top, loaded - x - 1, height, { stroke: "ink", width: 1 });
  if (loaded < end) drawLoaded(pen, chart, loaded, end, y, name, late);
  if (recall >= 0) drawShape(pen, "diamond", end, middle, Math.min(4, row / 5), { fill: "mark" });
  else if (!delivered) {
    pen.lines([[end - 2 * r, middle - r, end, middle + r], [end - 2 * r, middle + r, end, middle - r]], "ink", 2);
  }
  if (pause === 0) return;
  // Hollow dots where the vehicle stands and the task is not ready.
  const stand = toX((pickup ?? last) - pause);
  pen.box(stand, top, loaded - stand, height, { fill: "panel" });
  pen.box(stand + 0.5, top, loaded - stand - 1, height, { stroke: "ink", width: 1, dash: [1, 2] });
}

/** @type {(...of: [Pen, Chart, number, number, number, string, boolean]) => void} */
function drawLoaded(pen, chart, x, end, y, name, late) {
  // A gap to the next bar, where there is room.
  const width = Math.max(1, end - x - (end - x > 4 ? 1 : 0)), height = 0.76 * chart.row, top = y + 0.12 * chart.row;
  pen.box(x, top, width, height, { fill: "load" });
  if (late) {
    // Its end is cut off aslant.
    const right = x + width, r = Math.min(0.6 * height, 10, 0.6 * width), foot = top + height;
    pen.polygon([[right - r, top], [right, top], [right, foot], [right - 0.3 * r, foot]], { fill: "alarm" });
    if (width >= 8) pen.lines([[right - r - 1, top, right - 0.3 * r - 1, foot]], "panel");
  }
  nameBar(pen, chart, name, x, width - (late ? 8 : 0), y);
}

/** In that part of the bar that is seen, if there is room. @type {(...of: [Pen, Chart, string, number, number, number]) => void} */
function nameBar(pen, { row, left, right }, name, x, width, y) {
  const begin = Math.max(x, left), room = Math.min(x + width, right) - begin - 4;
  if (row >= 18 && pen.measure(name) <= room) pen.text(name, begin + 3, y + row / 2 + 4, { colour: "on-load" });
}

/** A bar of charging, a row of strokes in a queue, a hollow bar on the way.
 * @param {Pen} pen @param {Chart} chart @param {Bar & { state: string }} errand @param {number} y */
export function drawErrand(pen, { row, toX }, { state, start, end }, y) {
  const x = toX(start), width = Math.max(1, toX(end) - x), isQueued = state === QUEUED;
  if (state === CHARGING) return pen.box(x, y + 0.12 * row, width, 0.76 * row, { fill: "charge" });
  pen.box(x, y + 0.36 * row, width, 0.28 * row, { fill: "panel" });
  pen.box(x + 0.5, y + 0.36 * row, width - 1, 0.28 * row, { stroke: isQueued ? "charge" : "ink", width: 1, dash: isQueued ? [2, 2] : [] });
}

/** A hatched bar. @param {Pen} pen @param {Chart} chart @param {Bar} stop @param {number} y */
export function drawStop(pen, { row, toX }, { start, end }, y) {
  const x = toX(start), width = Math.max(2, toX(end) - x), top = y + 0.12 * row, height = 0.76 * row;
  const lines = /** @type {Line[]} */ ([]);
  for (let k = x - height; k < x + width; k += 7) lines.push([k, top + height, k + height, top]);
  pen.box(x, top, width, height, { fill: "panel" });
  pen.clip(x, top, width, height, () => pen.lines(lines, "alarm", 2));
  pen.box(x + 0.5, top + 0.5, Math.max(1, width - 1), height - 1, { stroke: "alarm", width: 1 });
}

/** A strip below the bars. @param {Pen} pen @param {Chart} chart @param {Bar} wait @param {number} y */
export function drawWait(pen, { row, toX }, { start, end }, y) {
  pen.box(toX(start), y + 0.88 * row, toX(end) - toX(start), Math.max(1, 0.1 * row), { fill: "ink" });
}

/** A bar while a task is processed, a thin line below from when it joined the queue.
 * @param {Pen} pen @param {Chart} chart @param {Bar & { queued: number }} work @param {number} y @param {string} name */
export function drawProcessing(pen, chart, { queued, start, end }, y, name = "") {
  const { row, toX } = chart, x = toX(start), width = Math.max(1, toX(end) - x - 1);
  pen.box(toX(queued), y + 0.9 * row, x - toX(queued), Math.max(1, 0.08 * row), { fill: "mark" });
  if (end <= start) return;
  pen.box(x, y + 0.2 * row, width, 0.6 * row, { fill: "mark" });
  nameBar(pen, chart, name, x, width, y);
}

export class GanttView extends TimeView {
  row = 0;
  /** @param {HTMLElement} place @param {Run} run @param {Span} span */
  constructor(place, run, span) {
    super(place, run, span, 22);
    this.run = run;
    this.toX = this.toX.bind(this);
    const { vehicles, sites } = run.day;
    this.names = [...vehicles.map(({ id }) => id), ...run.machines.map(({ site }) => sites[site].name)].map((name) => cutText(name));
  }
  resize() {
    const n = this.names.length;
    this.row = n <= 8 ? 26 : n <= 40 ? 18 : n <= 200 ? 12 : 6;
    // Room for the counts of the curves, too.
    const longest = this.names.reduce((most, name) => Math.max(most, this.pen.measure(name, SMALL_FONT)), 34);
    this.fit(n * this.row + 34, Math.min(0.3 * this.room, 10 + longest));
  }
  /** @param {Pen} pen */ drawLayer(pen) {
    const { run, row, left } = this, { from, to } = this.span, { fleet, waits, machines, tasks } = run;
    /** @param {Bar} bar */
    const isSeen = ({ start, end }) => end >= from && start <= to;
    this.drawScale(pen);
    this.names.forEach((name, k) => {
      // A long name is pressed together.
      if (row >= 12) pen.text(name, left - 6, k * row + row / 2 + 8, { align: "right", most: left - 8 });
    });
    this.clip(pen, () => {
      this.names.forEach((_, k) => drawIdle(pen, this, run.end, k * row + 4));
      fleet.forEach(({ trips, errands, stops }, v) => {
        const y = v * row + 4;
        for (const trip of trips.filter(isSeen)) {
          const late = trip.delivered && run.findLateness(trip.task, Infinity) > 0;
          drawTrip(pen, this, trip, y, tasks[trip.task].id, late);
        }
        for (const errand of errands.filter(isSeen)) drawErrand(pen, this, errand, y);
        for (const stop of stops.filter(isSeen)) drawStop(pen, this, stop, y);
        for (const wait of (waits[v] ?? []).filter(isSeen)) drawWait(pen, this, wait, y);
      });
      machines.forEach(({ work }, k) => {
        for (const item of work) drawProcessing(pen, this, item, (fleet.length + k) * row + 4, tasks[item.task].id);
      });
    });
  }
  describe() {
    const { run } = this, late = [...run.tasks.keys()].filter((k) => run.findLateness(k, run.end) > 0).length;
    const undone = run.trips.filter(({ delivered, recall }) => !delivered && recall < 0).length;
    return `Chart of ${run.fleet.length} vehicles over ${formatNumber(run.end)} s: ` +
      `${run.delivered.length} tasks delivered, ${late} late, ${run.stops.length} breakdowns, ` +
      `${undone} trips broken off` + (run.recalls.length > 0 ? `, ${run.recalls.length} called back` : "");
  }
  /** What a bar is, in words; null beside the bars. @param {number} x @param {number} y */
  describePoint(x, y) {
    const v = Math.floor((y - 4) / this.row), { run } = this, { tasks, day: { sites } } = run, time = this.toTime(x);
    if (v < 0 || v >= this.names.length || x < this.left) return null;
    const machine = run.machines[v - run.fleet.length], name = machine ? sites[machine.site].name : run.day.vehicles[v].id;
    if (machine) return `${name}: ${describeWork(run, machine, time)}`;
    const { state, trip } = run.findState(v, time), wait = run.findWait(v, time), level = formatLevel(run, v, time), lines = [];
    if (trip === null) lines.push(`${name}: ${time < run.end ? state : run.status}${level}`);
    else {
      const task = tasks[trip.task], late = run.findLateness(trip.task, Infinity);
      lines.push(`${name}: ${task.id}, ${state}${level}`, `${sites[task.pickup].name} to ${sites[task.delivery].name}`,
        `${formatNumber(trip.start)} to ${formatNumber(trip.end)} s, due at ${formatNumber(task.due)} s`);
      if (trip.recall >= 0) lines.push(describeRecall(run, trip));
      else if (!trip.delivered) lines.push("broken off");
      else if (late > 0) lines.push(`late by ${formatNumber(late)} s`);
      if (task.after >= 0) lines.push(`follows ${tasks[task.after].id}`);
    }
    return [...lines, ...(wait === undefined ? [] : [describeWait(run.day, wait)])].join("\n");
  }
}
