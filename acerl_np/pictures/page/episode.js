"use strict";
/* The episode as data: what holds at a moment. Nothing here draws or touches the page. */

const IDLE = "idle", TO_PICKUP = "to pickup", LOADED = "loaded", BROKEN = "broken", PARKED = "parked";
/** Of a service alone: the simulator has none. */
const OUT_OF_SERVICE = "out of service";
/** Without a task; those of errands are all other states. */
const QUEUED = "in a charger's queue", CHARGING = "charging", ERRAND = "to charge or park";
const COMING = "coming", WAITING = "waiting", FETCHED = "fetched", RIDING = "riding", DONE = "done";

/** By whom a decision is whose score chose. */
const INDEX = "index";

/** Finishes are whole seconds; due times may be off by rounding. */
const ROUNDING = 1e-9;

/** Position of the last of the sorted `values` that is not above `x`, -1 if there is none. */
function findLast(values, x) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The items whose `key` is 0, 1, ... up to `count`, each in their order. */
function groupBy(items, key, count) {
  const groups = Array.from({ length: count }, () => []);
  for (const item of items) groups[item[key]].push(item);
  return groups;
}

/** Changes [time, by] up to `end` as a count: from each of `times` on it is the one of `counts`. */
function countOver(changes, end) {
  const times = [0], counts = [0];
  for (const [time, by] of changes.filter((change) => change[0] <= end).sort((a, b) => a[0] - b[0])) {
    if (time > times.at(-1)) {
      times.push(time);
      counts.push(counts.at(-1));
    }
    counts[counts.length - 1] += by;
  }
  return { times, counts };
}

/** Read what `describe_floor` wrote. */
function readFloor(data) {
  const floor = {
    layout: data.layout,
    sites: data.sites.map(([id, x, y, kind, stations]) => ({ id, x, y, kind, stations, name: stations || id })),
    edges: data.edges.map(([a, b, oneWay]) => ({ a, b, oneWay: oneWay === 1 })),
    vehicles: data.vehicles.map(([id, site, capacity, critical]) => ({ id, site, capacity, critical })),
  };
  for (const site of floor.sites) Object.assign(site, { slots: 0, places: 0, use: 0 });
  for (const [k, slots, places] of data.berths) Object.assign(floor.sites[k], { slots, places });
  floor.hasLevels = floor.vehicles.some(({ capacity }) => capacity !== undefined);
  return floor;
}

/** Read what `describe_episodes` wrote. */
function readEpisode(text) {
  const data = JSON.parse(text);
  const episode = {
    name: data.name,
    // Read as UTC and shown as UTC: the record's own clock, whatever zone the reader is in.
    epoch: data.epoch === null ? null : Date.parse(data.epoch + "Z"),
    ...readFloor(data),
    tasks: data.tasks.map(([id, pickup, delivery, arrival, due]) => ({ id, pickup, delivery, arrival, due })),
  };
  episode.runs = data.runs.map((run) => new Run(run, episode));
  episode.end = Math.max(1, ...episode.runs.map((run) => run.end));
  // How many tasks start or end at each site.
  for (const { pickup, delivery } of episode.tasks) for (const k of [pickup, delivery]) episode.sites[k].use += 1;
  // The most tasks that a curve shows.
  const counts = episode.runs.flatMap(({ curves }) => Object.values(curves).flatMap((curve) => curve.counts));
  episode.most = counts.reduce((most, value) => Math.max(most, value), 1);
  return episode;
}

/** What holds at a moment, as the floor's picture asks for it. */
class Scene {
  /** The edge that a vehicle is on and the share of it that is behind the vehicle. */
  locate(v, time) {
    const { places, placeStarts } = this.fleet[v];
    const { start, a, b, reach, first, last } = places[findLast(placeStarts, time)];
    const passed = reach > start ? Math.min(1, (time - start) / (reach - start)) : 1;
    return { a, b, part: first + passed * (last - first) };
  }

  /** Tasks that nobody fetches yet, the most urgent first. */
  listWaiting(time) {
    const found = [];
    for (let k = 0; k < this.tasks.length; k++) {
      if (this.findTaskState(k, time) === WAITING) found.push(k);
    }
    return found.sort((a, b) => this.tasks[a].due - this.tasks[b].due);
  }

  /** Tasks that stand at each site: those that wait, and those whose vehicle is not there yet. */
  listStanding(time) {
    const standing = new Map();
    for (let k = 0; k < this.tasks.length; k++) {
      const state = this.findTaskState(k, time);
      if (state !== WAITING && state !== FETCHED) continue;
      const site = this.tasks[k].pickup;
      if (!standing.has(site)) standing.set(site, []);
      standing.get(site).push({ task: k, fetched: state === FETCHED, late: this.findLateness(k, time) > 0 });
    }
    return standing;
  }
}

/** One episode from its start to its end, by one policy. */
class Run extends Scene {
  constructor(data, episode) {
    super();
    const { label, status, end, makespan, tardiness, late, waiting, objective } = data;
    Object.assign(this, { label, status, end, makespan, tardiness, late, waiting, objective });
    this.tasks = episode.tasks;
    this.sites = episode.sites;
    // Each leg's start and which it is, in turn.
    const listLegs = (way) =>
      way.flatMap((_, n) => (n % 2 === 0 ? [{ start: way[n], steps: data.legs[way[n + 1]] }] : []));
    this.decisions = data.decisions.map(([time, vehicle, task, by, measure, chosen, alternatives, parts = [], outlooks = []]) => ({
      time, vehicle, task, chosen,
      by: data.texts[by],
      measure: data.texts[measure],
      alternatives: alternatives.map(([v, k, rule, value]) => ({
        vehicle: v, task: k, rule: data.texts[rule], value,
      })),
      parts: parts.map(([words, unit, difference, value]) => ({
        words: data.texts[words], unit: data.texts[unit], difference, value,
      })),
      outlooks: outlooks.map(([v, k, what, end, late]) => ({
        vehicle: v, task: k, what: data.texts[what], end: time + end, late,
      })),
    }));
    this.trips = data.trips.flatMap((trip, k) => {
      if (trip === null) return [];
      const { time, vehicle, task } = this.decisions[k], [tripEnd, pickup, delivered, way, recall = null] = trip;
      const site = episode.tasks[task].delivery, arrived = delivered === 1;
      return [{ start: time, end: tripEnd, pickup, delivered: arrived, arrived, site, legs: listLegs(way), vehicle, task, recall }];
    });
    this.errands = data.errands.map(([state, vehicle, start, errandEnd, site, arrived, way]) => ({
      state: data.texts[state], vehicle, start, end: errandEnd, site, arrived: arrived === 1, legs: listLegs(way),
    }));
    // What each decision called back.
    this.recalls = this.trips.filter(({ recall }) => recall !== null).sort((a, b) => a.recall - b.recall);
    this.stops = data.stops.map(([vehicle, start, stopEnd]) => ({ vehicle, start, end: stopEnd }));
    this.decisionTimes = this.decisions.map((decision) => decision.time);
    this.handed = this.findHanded();
    this.finishes = this.trips.filter((trip) => trip.delivered).map((trip) => trip.end);
    this.finishes.sort((a, b) => a - b);
    const trips = groupBy(this.trips, "vehicle", episode.vehicles.length);
    const stops = groupBy(this.stops, "vehicle", episode.vehicles.length);
    const errands = groupBy(this.errands, "vehicle", episode.vehicles.length);
    const levels = [...data.levels];
    this.fleet = episode.vehicles.map(({ site, capacity }, v) => ({
      capacity,
      levels: capacity === undefined ? [] : levels.shift(),
      ...this.arrangeVehicle(site, trips[v], errands[v], stops[v]),
    }));
    this.tripsOfTask = groupBy(this.trips, "task", this.tasks.length);
    this.finish = this.tripsOfTask.map((trips) => {
      const last = trips.at(-1);
      return last !== undefined && last.delivered ? last.end : Infinity;
    });
    this.curves = { waiting: this.countWaiting(), late: this.countLate() };
  }

  /** From when until when a yardstick decided in the place of an index policy, and which. */
  findHanded() {
    const spans = [], { decisions } = this;
    if (!decisions.some(({ by }) => by === INDEX)) return spans;
    decisions.forEach(({ time, by }, k) => {
      const end = decisions[k + 1]?.time ?? this.end, last = spans.at(-1);
      if (by === INDEX) return;
      if (last?.end === time && last.by === by) last.end = end;
      else spans.push({ start: time, end, by });
    });
    return spans;
  }

  /** How many tasks wait, as `findTaskState` has it, from each moment on at which that changes. */
  countWaiting() {
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
    const late = this.tasks.map((_, k) => k).filter((k) => this.findLateness(k, this.end) > 0);
    return countOver(late.flatMap((k) => [[this.tasks[k].due, 1], [this.finish[k], -1]]), this.end);
  }

  /** All of one vehicle in the order of time, for binary search. */
  arrangeVehicle(home, trips, errands, stops) {
    const stand = (start, site) => ({ start, a: site, b: site, reach: start, first: 0, last: 0 });
    const places = [stand(-Infinity, home)];
    for (const { legs, end, site, arrived } of [...trips, ...errands].sort((a, b) => a.start - b.start)) {
      for (const { start, steps } of legs) {
        for (const [begin, a, b, reach, first = 0, last = 1] of steps) {
          places.push({ start: start + begin, a, b, reach: start + reach, first, last });
        }
      }
      if (arrived) places.push(stand(end, site));
    }
    return {
      places, trips, errands, stops,
      placeStarts: places.map((place) => place.start),
      tripStarts: trips.map((trip) => trip.start),
      errandStarts: errands.map((errand) => errand.start),
      stopStarts: stops.map((stop) => stop.start),
    };
  }

  /** What a vehicle does, and the trip that it is on or null. */
  findState(v, time) {
    const { trips, tripStarts, errands, errandStarts, stops, stopStarts } = this.fleet[v];
    const stop = stops[findLast(stopStarts, time)];
    if (stop !== undefined && time < stop.end) return { state: BROKEN, trip: null };
    const trip = trips[findLast(tripStarts, time)];
    if (trip === undefined || time >= trip.end) {
      const errand = errands[findLast(errandStarts, time)];
      if (errand !== undefined && time < errand.end) return { state: errand.state, trip: null };
      const { a, b } = this.locate(v, time);
      return { state: a === b && this.sites[a].places > 0 ? PARKED : IDLE, trip: null };
    }
    return { state: trip.pickup !== null && time >= trip.pickup ? LOADED : TO_PICKUP, trip };
  }

  /** What a vehicle's battery holds, as a share of its capacity; null without one. */
  findLevel(v, time) {
    const { levels, capacity } = this.fleet[v];
    if (capacity === undefined) return null;
    let k = 0;
    while (k + 3 < levels.length && levels[k + 3] <= time) k += 3;
    const level = levels[k + 1] + levels[k + 2] * (time - levels[k]);
    return Math.min(1, Math.max(0, level / capacity));
  }

  /** What has become of a task. */
  findTaskState(k, time) {
    if (time < this.tasks[k].arrival) return COMING;
    const trip = this.tripsOfTask[k].findLast((item) => item.start <= time);
    if (trip === undefined) return WAITING;
    if (time >= trip.end) return trip.delivered ? DONE : WAITING;
    return trip.pickup !== null && time >= trip.pickup ? RIDING : FETCHED;
  }

  /** By how much a task is late at a moment, s; 0 in time. */
  findLateness(k, time) {
    const late = Math.min(time, this.finish[k]) - this.tasks[k].due;
    return late > ROUNDING ? late : 0;
  }

  /** Running figures. */
  measure(time) {
    let late = 0, delay = 0;
    for (let k = 0; k < this.tasks.length; k++) {
      const own = this.findLateness(k, Math.min(time, this.end));
      if (own > 0) late += 1;
      delay += own;
    }
    return {
      finished: findLast(this.finishes, time) + 1,
      late,
      tardiness: delay / this.tasks.length,
      over: time >= this.end,
    };
  }
}
