/* An episode from its start to its end, by one policy, read from what Python wrote. */

import { BROKEN, COMING, DONE, FETCHED, IDLE, LOADED, PARKED, READYING, RIDING, Scene, TO_PICKUP, WAITING, countUpTo, findLast, findMost,
  readFloor } from "./scene.js";

/** By whom a decision is whose score chose. */
const INDEX = "index";

/** The items whose `key` is 0, 1, ... up to `count`, each in their order.
 * @template {object} T @param {T[]} items @param {keyof T} key @param {number} count */
function groupBy(items, key, count) {
  const groups = Array.from({ length: count }, () => /** @type {T[]} */ ([]));
  for (const item of items) groups[Number(item[key])].push(item);
  return groups;
}

/** Changes [time, by] up to `end` as a count. @param {[number, number][]} changes @param {number} end @returns {Curve} */
function countOver(changes, end) {
  const curve = [{ start: 0, count: 0 }];
  for (const [start, by] of changes.filter((change) => change[0] <= end).sort((a, b) => a[0] - b[0])) {
    const last = curve[curve.length - 1];
    if (start > last.start) curve.push({ start, count: last.count + by });
    else last.count += by;
  }
  return curve;
}

/** @param {string} text @returns {Episode} */ export function readEpisode(text) {
  const data = /** @type {EpisodeData} */ (JSON.parse(text));
  // Read as UTC and shown as UTC: the record's own clock, whatever zone the reader is in.
  const epoch = data.epoch === null ? null : Date.parse(data.epoch + "Z");
  const day = { ...readFloor(data), epoch, end: 1, most: 1, mostWaited: 0 };
  const tasks = data.tasks.map(([id, pickup, delivery, arrival = Infinity, due = Infinity]) =>
    ({ id, pickup, delivery, arrival, due, after: -1 }));
  const runs = data.runs.map((run) => new Run(run, day, tasks));
  day.end = findMost(runs.map(({ end }) => end), 1);
  day.most = findMost(runs.flatMap(({ curves }) => Object.values(curves).flatMap((curve) => curve.map(({ count }) => count))), 1);
  day.mostWaited = findMost(runs.flatMap(({ waited }) => [...waited.sites.values(), ...waited.lanes.values()]));
  for (const { pickup, delivery } of tasks) for (const k of [pickup, delivery]) day.sites[k].use += 1;
  return Object.assign(day, { name: data.name, runs });
}

export class Run extends Scene {
  fleet = /** @type {ReturnType<Run["arrangeVehicle"]>[]} */ ([]);
  /** @param {RunData} data @param {Day} day @param {Task[]} tasks */
  constructor(data, day, tasks) {
    super(day);
    const { texts } = data, count = day.vehicles.length;
    this.data = data;
    this.label = data.label;
    this.status = data.status;
    this.end = data.end;
    // Of tasks that follow others, times are of a run: one counts from when a vehicle was first given it.
    this.tasks = data.jobs === undefined ? tasks : data.jobs.map(([from, due, after], k) =>
      ({ ...tasks[k], arrival: from ?? Infinity, due: due ?? Infinity, after }));
    this.decisions = data.decisions.map((row) => readDecision(row, texts));
    this.trips = data.trips.flatMap((row, k) => (row === null ? [] : [this.readTrip(row, this.decisions[k])]));
    this.errands = data.errands.map(([state, vehicle, start, end, site, arrived, way]) =>
      ({ state: texts[state], vehicle, start, end, site, arrived: arrived === 1, places: this.listPlaces(way) }));
    /** What each decision called back. */
    this.recalls = this.trips.filter(({ recall }) => recall >= 0).sort((a, b) => a.recall - b.recall);
    this.stops = data.stops.map(([vehicle, start, end]) => ({ vehicle, start, end }));
    this.delivered = this.trips.filter(({ delivered }) => delivered).map(({ end }) => ({ start: end })).sort((a, b) => a.start - b.start);
    this.machines = (data.machines ?? []).map(([site, work]) =>
      ({ site, work: work.map(([task, queued, start, end]) => ({ task, queued, start, end })) }));
    const trips = groupBy(this.trips, "vehicle", count), errands = groupBy(this.errands, "vehicle", count);
    const stops = groupBy(this.stops, "vehicle", count), levels = [...data.levels];
    this.fleet = day.vehicles.map((vehicle, v) => this.arrangeVehicle(vehicle, trips[v], errands[v], stops[v],
      vehicle.capacity === undefined ? [] : levels.shift() ?? []));
    this.tripsOfTask = groupBy(this.trips, "task", this.tasks.length);
    this.finish = this.tripsOfTask.map((own) => {
      const last = own.at(-1);
      return last !== undefined && last.delivered ? last.end : Infinity;
    });
    this.findHanded();
    this.sumWaits();
    this.curves = { waiting: this.countWaiting(), late: this.countLate() };
  }
  /** Where a vehicle is on a way, which is each leg's start and which leg it is, in turn. @param {number[]} way @returns {Place[]} */
  listPlaces(way) {
    return way.flatMap((start, n) => (n % 2 === 1 ? [] : this.data.legs[way[n + 1]].map(([begin, a, b, reach, first = 0, last = 1]) =>
      ({ start: start + begin, a, b, reach: start + reach, first, last }))));
  }
  /** @param {TripRow} row @param {Decision} decision @returns {Trip} */
  readTrip([end, pickup, delivered, way, recall, pause = 0], { start, vehicle, task }) {
    const arrived = delivered === 1, site = this.tasks[task].delivery, places = this.listPlaces(way);
    return { start, end, pickup, delivered: arrived, arrived, site, places, vehicle, task, recall: recall ?? -1, pause };
  }
  /** All of one vehicle in the order of time, for binary search.
   * @param {Vehicle} vehicle @param {Trip[]} trips @param {Errand[]} errands @param {Bar[]} stops @param {number[]} levels */
  arrangeVehicle({ site: home, capacity }, trips, errands, stops, levels) {
    /** @param {number} start @param {number} site */
    const stand = (start, site) => ({ start, a: site, b: site, reach: start, first: 0, last: 0 });
    const drives = [...trips, ...errands].sort((a, b) => a.start - b.start);
    const places = [stand(-Infinity, home), ...drives.flatMap((drive) =>
      [...drive.places, ...(drive.arrived ? [stand(drive.end, drive.site)] : [])])];
    return { places, trips, errands, stops, levels, capacity };
  }
  /** From when until when a baseline decided in the place of an index policy, and which. */
  findHanded() {
    const { decisions, handed } = this;
    if (!decisions.some(({ by }) => by === INDEX)) return;
    decisions.forEach(({ start, by }, k) => {
      const end = decisions[k + 1]?.start ?? this.end, last = handed.at(-1);
      if (by === INDEX) return;
      if (last?.end === start && last.by === by) last.end = end;
      else handed.push({ start, end, by });
    });
  }
  /** Where vehicles meet: who waits when, and for how long in all. */
  sumWaits() {
    if (this.data.waits === undefined) return;
    const waits = this.data.waits.map(([vehicle, start, end, site, ahead, holder]) => ({ vehicle, start, end, site, ahead, holder }));
    this.waits = groupBy(waits, "vehicle", this.day.vehicles.length);
    const { sites, lanes } = this.waited;
    for (const { start, end, site, ahead } of waits) {
      const lane = [site, ahead].sort((a, b) => a - b).join();
      sites.set(site, (sites.get(site) ?? 0) + end - start);
      lanes.set(lane, (lanes.get(lane) ?? 0) + end - start);
    }
  }
  /** How many tasks wait, as `findTaskState` has it, from each moment on at which that changes. */
  countWaiting() {
    /** @type {[number, number][]} */
    const changes = [];
    this.tasks.forEach(({ arrival }, k) => {
      let begin = arrival;
      for (const { start, end, delivered } of this.tripsOfTask[k]) {
        changes.push([begin, 1], [start, -1]);
        begin = delivered ? Infinity : end;
      }
      changes.push([begin, 1]);
    });
    return countOver(changes, this.end);
  }
  /** How many tasks are late and not delivered. */
  countLate() {
    const late = [...this.tasks.keys()].filter((k) => this.findLateness(k, this.end) > 0);
    return countOver(late.flatMap((k) => [[this.tasks[k].due, 1], [this.finish[k], -1]]), this.end);
  }
  /** @param {number} v @param {number} time @returns {{ state: string, trip: Trip | null }} */ findState(v, time) {
    const { trips, errands, stops } = this.fleet[v], trip = findLast(trips, time), errand = findLast(errands, time);
    if (time < (findLast(stops, time)?.end ?? time)) return { state: BROKEN, trip: null };
    if (trip !== undefined && time < trip.end) {
      if (trip.pickup !== null && time >= trip.pickup) return { state: LOADED, trip };
      return { state: time >= (trip.pickup ?? trip.end) - trip.pause ? READYING : TO_PICKUP, trip };
    }
    if (errand !== undefined && time < errand.end) return { state: errand.state, trip: null };
    const { a, b } = this.locate(v, time);
    return { state: a === b && this.day.sites[a].places > 0 ? PARKED : IDLE, trip: null };
  }
  /** @type {Scene["findLevel"]} */ findLevel(v, time) {
    const { levels, capacity } = this.fleet[v];
    if (capacity === undefined) return null;
    let k = 0;
    while (k + 3 < levels.length && levels[k + 3] <= time) k += 3;
    const level = levels[k + 1] + levels[k + 2] * (time - levels[k]);
    return Math.min(1, Math.max(0, level / capacity));
  }
  /** @type {Scene["findTaskState"]} */ findTaskState(k, time) {
    if (time < this.tasks[k].arrival) return COMING;
    const trip = this.tripsOfTask[k].findLast(({ start }) => start <= time);
    if (trip === undefined) return WAITING;
    if (time >= trip.end) return trip.delivered ? DONE : WAITING;
    return trip.pickup !== null && time >= trip.pickup ? RIDING : FETCHED;
  }
  /** Running figures. @param {number} time */
  measure(time) {
    const delays = this.tasks.map((_, k) => this.findLateness(k, Math.min(time, this.end)));
    return {
      finished: countUpTo(this.delivered, time),
      late: delays.filter((delay) => delay > 0).length,
      tardiness: delays.reduce((sum, delay) => sum + delay, 0) / this.tasks.length,
      over: time >= this.end,
    };
  }
}

/** @param {DecisionRow} row @param {string[]} texts @returns {Decision} */
function readDecision([start, vehicle, task, by, measure, chosen, alternatives, parts = [], outlooks = []], texts) {
  return {
    start, vehicle, task, by: texts[by], measure: texts[measure], chosen,
    alternatives: alternatives.map(([v, k, rule, value]) => ({ vehicle: v, task: k, rule: texts[rule], value })),
    parts: parts.map(([words, unit, difference, value]) => ({ words: texts[words], unit: texts[unit], difference, value })),
    outlooks: outlooks.map(([v, k, what, end, late]) => ({ vehicle: v, task: k, what: texts[what], end: start + end, late })),
  };
}
