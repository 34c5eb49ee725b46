/* The moment of a service as the pictures ask for it; all times from the day's zero on, s. */

import { FETCHED, RIDING, Scene, WAITING, findMost } from "./scene.js";

/** A task that is delivered less than so long before it is due is at risk, s. */
const SOON = 60;
/** Times from here on are seconds since 1970. */
const SINCE_1970 = 1e9;

export class Live extends Scene {
  tasks = /** @type {LiveTask[]} */ ([]);
  fleet = /** @type {ReturnType<Live["readVehicle"]>[]} */ ([]);
  samples = /** @type {Parts["queue"]} */ ([]);
  zero = 0;
  constructor() {
    super({ layout: "", sites: [], edges: [], vehicles: [], hasLevels: false, epoch: null, end: 1, most: 1, mostWaited: 0 });
  }
  /** Take over the moment that the service told. @param {Parts} parts */
  read({ tasks, vehicles, figures, queue }) {
    const zero = this.zero = Math.floor(figures.start);
    this.tasks = tasks.map(([id, pickup, delivery, due, state, vehicle, end]) => ({
      id, pickup, delivery, state, vehicle, arrival: 0, after: -1, due: due === null ? Infinity : due - zero,
      finish: vehicle < 0 || end === null ? null : end - zero, least: end ?? 0,
    }));
    this.finish = tasks.map(() => Infinity);
    const places = new Map(tasks.map(([id], k) => [id, k]));
    this.fleet = vehicles.map((row) => this.readVehicle(row, places));
    this.samples = queue.filter(([time]) => time >= zero);
    // The reader's own zone.
    this.day.epoch = zero < SINCE_1970 ? null : 1000 * zero - 60_000 * new Date(1000 * zero).getTimezoneOffset();
  }
  /** It stands where it was seen, and then drives from site to site. @param {Parts["vehicles"][number]} row @param {Map<string, number>} tasks */
  readVehicle([state, task, level, way], tasks) {
    const site = way[0][0], k = tasks.get(task ?? ""), { zero } = this;
    const places = [{ start: -Infinity, a: site, b: site, reach: -Infinity, first: 0, last: 0 }];
    way.slice(1).forEach(([b, reach], n) => {
      places.push({ start: way[n][1] - zero, a: way[n][0], b, reach: reach - zero, first: 0, last: 1 });
    });
    return { state, trip: k === undefined ? null : { task: k }, level, places };
  }
  /** @type {Scene["findState"]} */ findState(v) { return this.fleet[v]; }
  /** @type {Scene["findLevel"]} */ findLevel(v) { return this.fleet[v].level; }
  /** @type {Scene["findTaskState"]} */ findTaskState(k) {
    const { state, vehicle } = this.tasks[k];
    return vehicle < 0 ? WAITING : state === "loaded" ? RIDING : FETCHED;
  }
  /** By how much a task should be delivered before it is due, s; of one without a vehicle, at best. @param {number} k @param {number} time */
  findSlack(k, time) {
    const { due, finish, least } = this.tasks[k];
    return due - Math.max(time, finish ?? time + least);
  }
  /** The most urgent first. @param {number} time */
  listAtRisk(time) {
    const slack = this.tasks.map((_, k) => this.findSlack(k, time));
    return [...slack.keys()].filter((k) => slack[k] < SOON).sort((a, b) => slack[a] - slack[b]);
  }
  /** How long the queue was up to now; return how many tasks are late. @param {number} time @param {number} waiting */
  trace(time, waiting) {
    const late = this.tasks.filter((_, k) => this.findLateness(k, time) > 0).length;
    const rows = [...this.samples.map(([at, ...counts]) => [at - this.zero, ...counts]), [time, waiting, late]];
    const [waits, lates] = [1, 2].map((c) => rows.map((row) => ({ start: row[0], count: row[c] })));
    this.end = this.day.end = Math.max(1, time);
    this.day.most = findMost([...waits, ...lates].map(({ count }) => count), 1);
    this.curves = { waiting: waits, late: lates };
    return late;
  }
}
