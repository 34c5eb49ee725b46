/* Numbers, times, places and what goes on, in words. */

import { ROUNDING, findWork } from "./scene.js";

const NUMBERS = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
/** Letters of the longest name that is shown whole. */
const LONGEST_NAME = 40;
/** An episode of that many seconds has its scale in hours and minutes. */
const LONG = 7200;

/** @param {number} value */ export const formatNumber = (value) => NUMBERS.format(value);

/** A value that is compared with others, to four figures: 0.01234, 245, 1812.5. @param {number | null} value */
export function formatValue(value) {
  if (value === null) return "–";
  return String(Number(Math.abs(value) >= 1000 ? value.toFixed(1) : value.toPrecision(4)));
}

/** Seconds as h:mm:ss. @param {number} seconds */
export function formatDuration(seconds) {
  const whole = Math.floor(seconds), minutes = Math.floor(whole / 60) % 60;
  return [Math.floor(whole / 3600), ...[minutes, whole % 60].map((value) => String(value).padStart(2, "0"))].join(":");
}

/** The moment on the record's own clock, such as 2024-05-06 07:08:09; of the year 1, a time of no day.
 * @param {number} epoch @param {number} seconds */
export function formatMoment(epoch, seconds) {
  const moment = new Date(epoch + 1000 * Math.floor(seconds)).toISOString().slice(0, 19).replace("T", " ");
  return moment.startsWith("0001-") ? moment.slice(11) : moment;
}

/** The clock: seconds, and the time of day if the record has one. @param {Day} day @param {number} seconds */
export function formatClock({ epoch }, seconds) {
  const own = epoch === null ? formatDuration(seconds) : formatMoment(epoch, seconds);
  return `${formatNumber(Math.floor(seconds))} s · ${own}`;
}

/** @param {number} seconds @param {string} more */ export function formatDueIn(seconds, more = "") {
  if (seconds === Infinity) return "–";
  if (seconds < -ROUNDING) return `late by ${formatNumber(Math.ceil(-seconds))} s`;
  return `${formatNumber(Math.floor(seconds))} s${more}`;
}

/** @param {string} text */ export const cutText = (text, length = LONGEST_NAME) =>
  text.length <= length ? text : text.slice(0, length - 1) + "…";

/** Even steps, about `count` of them between two numbers: 1, 2 or 5 times a power of ten.
 * @param {number} low @param {number} high @param {number} count */
export function chooseTicks(low, high, count) {
  const raw = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= raw) ?? 10), ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high + 1e-9; k++) ticks.push(k * step);
  return ticks;
}

/** Times for the scale of a chart, s: even on the clock that it shows.
 * @param {Day} day @param {number} from @param {number} to @param {number} count */
export function chooseTimes({ epoch, end }, from, to, count) {
  if (epoch === null && end < LONG) return chooseTicks(from, to, count);
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  const days = 86400 * Math.ceil((to - from) / 86400 / count);
  const step = steps.find((value) => value * count >= to - from) ?? days;
  const zero = (epoch ?? 0) / 1000, times = [];
  for (let k = Math.ceil((zero + from) / step); k * step - zero <= to; k++) times.push(k * step - zero);
  return times;
}

/** @param {Day} day @param {number} time */ export function formatTick({ epoch, end }, time) {
  if (epoch === null) return end < LONG ? `${formatNumber(time)} s` : formatDuration(time);
  const moment = formatMoment(epoch, time + 1e-6);
  if (moment.length === 8) return moment;
  // Midnight tells the day.
  return moment.endsWith("00:00:00") ? moment.slice(0, 10) : moment.slice(11);
}

/** What a vehicle does, in words. @param {Scene} scene @param {number} v @param {number} time */
export function describeVehicle(scene, v, time) {
  const { state, trip } = scene.findState(v, time), task = trip === null ? "" : `, ${scene.tasks[trip.task].id}`;
  return `${scene.day.vehicles[v].id}: ${state}${task}${formatLevel(scene, v, time)}\n${describePlace(scene, v, time)}`;
}

/** Its name, state, place and task. @param {Scene} scene @param {number} v @param {number} time */
export function listVehicle(scene, v, time) {
  const { state, trip } = scene.findState(v, time), task = trip === null ? "–" : scene.tasks[trip.task].id;
  return [scene.day.vehicles[v].id, state + formatLevel(scene, v, time), describePlace(scene, v, time), task];
}

/** @param {Scene} scene @param {number} v @param {number} time */ export function formatLevel(scene, v, time) {
  const level = scene.findLevel(v, time);
  return level === null ? "" : `, ${formatNumber(100 * level)}\u00a0%`;
}

/** @param {Scene} scene @param {number} v @param {number} time */ function describePlace(scene, v, time) {
  const wait = scene.findWait(v, time), { a, b, part } = scene.locate(v, time), { sites } = scene.day;
  if (wait !== undefined) return describeWait(scene.day, wait);
  if (a === b || part === 0) return `at ${sites[a].id}`;
  return part === 1 ? `at ${sites[b].id}` : `from ${sites[a].id} to ${sites[b].id}`;
}

/** @param {Day} day @param {Wait} wait */ export const describeWait = ({ sites, vehicles }, { site, ahead, holder }) =>
  `waits ${holder < 0 ? "" : `for ${vehicles[holder].id} `}at ${sites[site].id}, next ${sites[ahead].id}`;

/** @param {Scene} scene @param {Machine} machine @param {number} time */ export function describeWork(scene, machine, time) {
  const { now, queue } = findWork(machine, time), names = queue.map(({ task }) => scene.tasks[task].id);
  return (now === undefined ? "processes nothing"
    : `processes ${scene.tasks[now.task].id} until ${formatNumber(now.end)} s`) +
    (names.length > 0 ? `, in the queue: ${names.join(", ")}` : "");
}

/** Who lost a task: it went to another vehicle, or the vehicle took another task. @param {Run} run @param {Trip} trip */
export function describeRecall({ day, tasks, decisions }, { vehicle, task, recall }) {
  const own = day.vehicles[vehicle].id, name = tasks[task].id, then = decisions[recall];
  return then.task === task ? `${own} loses ${name} to ${day.vehicles[then.vehicle].id}`
    : `${own} leaves ${name} for ${tasks[then.task].id}`;
}

/** Rows of the tasks that wait: name, pickup, delivery, time left. @param {Scene} scene @param {number} time @returns {Row[]} */
export const listWaiting = (scene, time) => scene.listWaiting(time).map((k) => {
  const { id, pickup, delivery, due, state } = scene.tasks[k], { sites } = scene.day;
  const told = state === "unservable" ? "no vehicle can carry it" : formatDueIn(due - time);
  return { cells: [id, sites[pickup].name, sites[delivery].name, told], mark: scene.findLateness(k, time) > 0 ? "late" : "" };
});

/** How many vehicles are in which state, `first` at the head. @param {Scene} scene @param {number} time @param {string[]} first */
export function countStates(scene, time, first = []) {
  const states = scene.fleet.map((_, v) => scene.findState(v, time).state);
  return [...new Set([...first, ...states])].map((state) => `${states.filter((own) => own === state).length} ${state}`).join(", ");
}
