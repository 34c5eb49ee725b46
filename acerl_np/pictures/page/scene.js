/* What holds at a moment, as pictures and tables ask for it. Nothing here draws or touches the page. */

export const IDLE = "idle", TO_PICKUP = "to pickup", LOADED = "loaded", BROKEN = "broken", PARKED = "parked";
/** At the pickup of a task that is not ready. */
export const READYING = "waits until the task is ready";
/** Of a service alone: the simulator has none. */
export const OUT_OF_SERVICE = "out of service";
/** Without a task; those of errands are all other states. */
export const QUEUED = "in a charger's queue", CHARGING = "charging", ERRAND = "to charge or park";
/** Of tasks. */
export const COMING = "coming", WAITING = "waiting", FETCHED = "fetched", RIDING = "riding", DONE = "done";
/** Finishes are whole seconds; due times may be off by rounding. */
export const ROUNDING = 1e-9;

/** The last of the items, sorted by `start`, that begins no later than x. @template {{ start: number }} T
 * @param {T[]} items @param {number} x @returns {T | undefined} */
export const findLast = (items, x) => items[countUpTo(items, x) - 1];

/** How many of the items, sorted by `start`, begin no later than x. @param {{ start: number }[]} items @param {number} x */
export function countUpTo(items, x) {
  let low = 0, high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].start <= x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** What goes on at a moment. @template {Bar} T @param {T[]} items @param {number} time */
export function findNow(items, time) {
  return items.find(({ start, end }) => start <= time && time < end);
}

/** The greatest of the values and of `least`. @param {number[]} values @param {number} least */
export const findMost = (values, least = 0) => values.reduce((most, value) => Math.max(most, value), least);

/** Read what `describe_floor` wrote. @param {FloorData} data @returns {Floor} */
export function readFloor(data) {
  const sites = data.sites.map(([id, x, y, kind, stations]) =>
    ({ id, x, y, kind, stations, name: stations || id, slots: 0, places: 0, use: 0 }));
  for (const [k, slots, places] of data.berths) Object.assign(sites[k], { slots, places });
  return {
    layout: data.layout, sites,
    edges: data.edges.map(([a, b, oneWay]) => ({ a, b, oneWay: oneWay === 1 })),
    vehicles: data.vehicles.map(([id, site, capacity, critical], v) => ({ id, site, capacity, critical, size: data.sizes?.[v] })),
    hasLevels: data.vehicles.some(([, , capacity]) => capacity !== undefined),
  };
}

/** What a machine's server works at, and what waits for it. @param {Machine} machine @param {number} time */
export const findWork = ({ work }, time) =>
  ({ now: findNow(work, time), queue: work.filter(({ queued, start }) => queued <= time && time < start) });

/** The part of an episode or of a service that does not depend on where it comes from. */
export class Scene {
  tasks = /** @type {Task[]} */ ([]);
  /** When each task is delivered, s. */
  finish = /** @type {number[]} */ ([]);
  /** Where each vehicle is from when on. */
  fleet = /** @type {{ places: Place[] }[]} */ ([]);
  handed = /** @type {(Bar & { by: string })[]} */ ([]);
  machines = /** @type {Machine[]} */ ([]);
  /** Of each vehicle for whom it waits, and where; none where vehicles do not meet. */
  waits = /** @type {Wait[][]} */ ([]);
  /** Seconds waited at each site, and before each lane, over the whole episode. */
  waited = { sites: /** @type {Map<number, number>} */ (new Map()), lanes: /** @type {Map<string, number>} */ (new Map()) };
  curves = { waiting: /** @type {Curve} */ ([]), late: /** @type {Curve} */ ([]) };
  end = 1;
  status = "";
  /** @param {Day} day */
  constructor(day) { this.day = day; }
  /** What a vehicle does, and its trip or null. @type {(v: number, time: number) => Doing} */
  findState() { return { state: IDLE, trip: null }; }
  /** What its battery holds, as a share of its capacity; null without one. @type {(v: number, time: number) => number | null} */
  findLevel() { return null; }
  /** What has become of a task. @type {(k: number, time: number) => string} */
  findTaskState() { return WAITING; }
  /** By how much a task is late at a moment, s; 0 in time. @param {number} k @param {number} time */
  findLateness(k, time) {
    const late = Math.min(time, this.finish[k]) - this.tasks[k].due;
    return late > ROUNDING ? late : 0;
  }
  /** The edge that a vehicle is on and the share of it that is behind the vehicle. @param {number} v @param {number} time */
  locate(v, time) {
    const { places } = this.fleet[v], { start, a, b, reach, first, last } = findLast(places, time) ?? places[0];
    const passed = reach > start ? Math.min(1, (time - start) / (reach - start)) : 1;
    return { a, b, part: first + passed * (last - first) };
  }
  /** For what a vehicle waits; undefined if it does not. @param {number} v @param {number} time */
  findWait(v, time) { return findNow(this.waits[v] ?? [], time); }
  /** Tasks that nobody fetches yet, the most urgent first. @param {number} time */
  listWaiting(time) {
    const found = [...this.tasks.keys()].filter((k) => this.findTaskState(k, time) === WAITING);
    return found.sort((a, b) => this.tasks[a].due - this.tasks[b].due);
  }
  /** Tasks that stand at each site: those that wait, and those whose vehicle is not there yet. @param {number} time */
  listStanding(time) {
    const standing = /** @type {Map<number, Standing[]>} */ (new Map());
    for (const [k, { pickup }] of this.tasks.entries()) {
      const state = this.findTaskState(k, time);
      if (state !== WAITING && state !== FETCHED) continue;
      const here = standing.get(pickup) ?? [];
      here.push({ task: k, fetched: state === FETCHED, late: this.findLateness(k, time) > 0 });
      standing.set(pickup, here);
    }
    return standing;
  }
}
