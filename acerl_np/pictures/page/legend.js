/* What the marks mean: each is drawn by what draws it in the pictures. */

import { Pen } from "./canvas.js";
import { find, make } from "./dom.js";
import { drawErrand, drawIdle, drawProcessing, drawStop, drawTrip, drawWait } from "./gantt.js";
import { drawBerth, drawHeat, drawLevel, drawMachine, drawParcel, drawSite, drawVehicle, drawWaiting, drawWorkpiece } from "./marks.js";
import { BROKEN, CHARGING, ERRAND, IDLE, LOADED, PARKED, QUEUED, READYING, TO_PICKUP } from "./scene.js";
import { cutText, formatNumber } from "./words.js";

/** A row of the chart that is as long as its one bar. @type {Chart} */
const ROW = { row: 20, left: 0, right: 44, toX: (time) => time };

/** @param {Mark[]} marks */ export function writeLegend(marks) {
  find("#legend").replaceChildren(...marks.map(([words, width, draw]) => {
    const canvas = make("canvas");
    canvas.setAttribute("aria-hidden", "true");
    draw(new Pen(canvas, width, 20));
    return make("span", canvas, words);
  }));
}

/** Marks of the floor's picture: vehicles in all states that the floor has, and in `others`; tasks, sites.
 * @param {Day} day @param {Map<string, string>} shapes @param {string[]} others @returns {Mark[]} */
export function listFloorMarks({ sites, hasLevels }, shapes, others = []) {
  const charges = sites.some(({ slots }) => slots > 0), parks = sites.some(({ places }) => places > 0);
  const states = [IDLE, TO_PICKUP, LOADED, BROKEN, ...(parks ? [PARKED] : []), ...(charges ? [QUEUED, CHARGING] : []),
    ...(parks || charges ? [ERRAND] : []), ...others];
  const kinds = new Set(shapes.values()).size === shapes.size ? [...shapes] : [];
  return [
    ...states.map((state) => /** @type {Mark} */ ([`vehicle ${state}`, 26, (pen) => drawVehicle(pen, state, 12, 10, 8)])),
    ["task waits", 16, (pen) => drawParcel(pen, {}, 8, 10)],
    ["a vehicle is on its way to it", 16, (pen) => drawParcel(pen, { fetched: true }, 8, 10)],
    ["task is late", 16, (pen) => drawParcel(pen, { late: true }, 8, 10)],
    ...kinds.map(([kind, shape]) => /** @type {Mark} */ ([cutText(kind) || "site", 16, (pen) => drawSite(pen, shape, 8, 10, 5)])),
    ...listIf(hasLevels, ["level of the battery", 26, (pen) => drawLevel(pen, "charge", 0.7, 12, 10, 8)]),
    ...listIf(charges, ["charger", 18, (pen) => drawBerth(pen, true, 9, 10, 7)]),
    ...listIf(parks, ["parking place", 18, (pen) => drawBerth(pen, false, 9, 10, 7)]),
  ];
}

/** Marks that are there only under a condition. @param {boolean} isThere @param {Mark[]} marks */
const listIf = (isThere, ...marks) => (isThere ? marks : []);

/** @type {Mark[]} */ export const CURVE_MARKS = [
  ["tasks that wait", 26, (pen) => {
    pen.box(0, 7, 26, 11, { fill: "control" });
    pen.lines([[0, 7, 26, 7]], "ink", 1.5);
  }],
  ["tasks late, not delivered", 26, (pen) => pen.box(0, 7, 26, 11, { fill: "alarm" })],
];

/** Marks of the chart, of machines and of vehicles that meet, as the runs have them. @param {Episode} episode @returns {Mark[]} */
export function listRunMarks({ runs, mostWaited }) {
  const bar = { start: 0, end: 44, pickup: 0, delivered: true, recall: -1, pause: 0 }, fetch = { ...bar, pickup: 44 };
  const lost = { ...bar, end: 38, pickup: null, delivered: false }, work = { ...bar, queued: 0 };
  /** @param {string} state */
  const hasErrand = (state) => runs.some((run) => run.errands.some((own) =>
    own.state === state || (state === ERRAND && own.state !== QUEUED && own.state !== CHARGING)));
  const waited = `waited at a site, or there for a lane, in the whole episode: at most ${formatNumber(mostWaited)} s`;
  return [
    ["way to the pickup", 44, (pen) => drawTrip(pen, ROW, fetch, 0)],
    ["loaded way", 44, (pen) => drawTrip(pen, ROW, bar, 0)],
    ["delivered late", 44, (pen) => drawTrip(pen, ROW, bar, 0, "", true)],
    ["idle", 44, (pen) => drawIdle(pen, ROW, 44, 0)],
    ...[["way to charge or park", ERRAND], [QUEUED, QUEUED], [CHARGING, CHARGING]].flatMap(([words, state]) =>
      listIf(hasErrand(state), [words, 44, (pen) => drawErrand(pen, ROW, { state, start: 0, end: 44 }, 0)])),
    ...listIf(runs.some(({ recalls }) => recalls.length > 0), ["called back", 44, (pen) => drawTrip(pen, ROW, { ...lost, recall: 0 }, 0)]),
    ...listIf(runs.some(({ stops }) => stops.length > 0),
      ["broken down", 44, (pen) => drawStop(pen, ROW, bar, 0)], ["trip broken off", 44, (pen) => drawTrip(pen, ROW, lost, 0)]),
    ...listIf(runs.some(({ waits }) => waits.length > 0),
      ["waits for the vehicle at the end of the dots", 40, (pen) => {
        drawVehicle(pen, TO_PICKUP, 10, 12, 7);
        drawWaiting(pen, 10, 12, 7, { x: 40, y: 12 });
      }],
      ["waits for another vehicle", 44, (pen) => drawWait(pen, ROW, bar, 0)],
      [waited, 60, (pen) => [0.05, 0.4, 1].forEach((share, k) => drawHeat(pen, share, [10 + 19 * k, 10]))]),
    ...listIf(runs.some(({ trips }) => trips.some(({ pause }) => pause > 0)),
      [READYING, 44, (pen) => drawTrip(pen, ROW, { ...fetch, pause: 44 }, 0)]),
    ...listIf(runs.some(({ machines }) => machines.length > 0),
      ["machine", 18, (pen) => drawMachine(pen, 9, 10, 7)],
      ["task in its queue", 12, (pen) => drawWorkpiece(pen, false, 6, 10)],
      ["task in process", 12, (pen) => drawWorkpiece(pen, true, 6, 10)],
      ["processing", 44, (pen) => drawProcessing(pen, ROW, work, 0)],
      ["a task in the queue", 44, (pen) => drawProcessing(pen, ROW, { ...work, start: 44 }, 0)]),
    ...CURVE_MARKS,
    ...[...new Set(runs.flatMap(({ handed }) => handed.map(({ by }) => by)))].map((by) =>
      /** @type {Mark} */ ([`${by} decides`, 26, (pen) => pen.box(0, 2, 26, 16, { fill: "handed" })])),
  ];
}
