/* The page of a service: what it tells by server-sent events, drawn by the parts of the replay. */

import { Table, find, followTheme, get, setText, tellPoints } from "./dom.js";
import { FloorView } from "./floor.js";
import { CURVE_MARKS, listFloorMarks, writeLegend } from "./legend.js";
import { assignShapes } from "./marks.js";
import { IDLE, OUT_OF_SERVICE, PARKED, readFloor } from "./scene.js";
import { Live } from "./service.js";
import { CurveView, Span } from "./times.js";
import { countStates, formatClock, formatDueIn, formatDuration, formatMoment, formatNumber, formatValue, listVehicle,
  listWaiting } from "./words.js";

/** Pause before the service is asked again after a connection has ended, ms. */
const AGAIN = 2000;
/** A connection on which nothing has come for so long has ended, ms; the service speaks every 15 s. */
const SILENT = 40_000;
/** Pause between two pictures while the clock on the wall runs, ms. */
const EVERY = 500;
/** How long the service may take to say why it does not answer, ms. */
const PATIENCE = 5000;
/** Of the curves with their times below, and the room for the counts beside them, px. */
const CURVES_HEIGHT = 120, CURVES_FOOT = 20, CURVES_LEFT = 40;

/** Tables by the ids of their sections: headings and columns. @type {Record<string, [string, string[], boolean?]>} */
const TABLES = {
  overdue: ["Overdue orders", ["Task", "Vehicle"]],
  risk: ["At risk", ["Task", "Where", "Due in", "Expected"]],
  waiting: ["Waiting tasks", ["Task", "Pickup", "Delivery", "Due in"], true],
  orders: ["Last decisions", ["Time", "Decision", "Why"]],
  vehicles: ["Vehicles", ["Vehicle", "State", "Place", "Task"]],
  refused: ["Messages refused", ["At", "Number", "Why"]],
};

/** The page: its connection, its clock, and what it shows. */
class Watcher {
  live = new Live();
  /** As far as they have come. */
  parts = /** @type {Partial<Parts> & Pick<Parts, "queue">} */ ({ queue: [] });
  clock = /** @type {{ time: number, at: number } | null} */ (null);
  version = "";
  source = /** @type {EventSource | null} */ (null);
  heard = 0;
  isAsked = false;
  isNew = true;
  constructor() {
    this.floor = new FloorView(find(".floor"), this.live);
    this.curves = new CurveView(find(".curves"), this.live, new Span(1), CURVES_FOOT);
    this.tables = Object.fromEntries(Object.entries(TABLES).map(([id, [words, heads, numbers]]) =>
      [id, new Table(find(`#${id}`), words, heads, "", numbers)]));
    tellPoints([this.floor, this.curves], () => this.time);
    this.connect();
    const again = () => {
      this.isNew = true;
      this.request();
    };
    followTheme(again);
    window.addEventListener("resize", again);
    find("#login form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.logIn();
    });
    setInterval(() => {
      const { source, heard, clock } = this;
      if (source?.readyState !== EventSource.CLOSED && performance.now() - heard > SILENT) this.lose();
      if (clock !== null && source?.readyState === EventSource.OPEN) this.request();
    }, EVERY);
  }
  /** Listen to the service until the connection ends, then ask again. */
  connect() {
    const source = this.source = new EventSource("watch");
    this.heard = performance.now();
    source.onopen = () => { this.parts.queue = []; };
    source.onerror = () => this.lose();
    for (const name of ["floor", "now", "tasks", "vehicles", "orders", "overdue", "figures", "refused", "queue"]) {
      source.addEventListener(name, ({ data }) => this.take(name, JSON.parse(data)));
    }
  }
  /** The connection has ended: somebody may have to log in, or the service is away. */
  async lose() {
    this.source?.close();
    this.tell("lost", "connection lost, trying again");
    const answer = await fetch("state", { method: "HEAD", signal: AbortSignal.timeout(PATIENCE) }).catch(() => null);
    if (answer?.status !== 401) return setTimeout(() => this.connect(), AGAIN);
    this.tell("lost", "not logged in");
    find("#runs").hidden = true;
    find("#login").hidden = false;
    find("#token").focus();
  }
  /** @param {"live" | "lost"} state @param {string} words */ tell(state, words) {
    const node = find("#connection");
    node.dataset.state = state;
    setText(node, words);
    document.body.classList.toggle("stale", state === "lost");
  }
  async logIn() {
    const token = get("#token", document, HTMLInputElement);
    const answer = await fetch("login", { method: "POST", body: token.value }).catch(() => null);
    setText(find("#refusal"), answer === null ? "the service does not answer" : answer.ok ? "" : await answer.text());
    token.select();
    if (!answer?.ok) return;
    token.value = "";
    find("#login").hidden = true;
    this.connect();
  }
  /** @param {string} name @param {any} part */ take(name, part) {
    this.heard = performance.now();
    if (name === "now") {
      this.clock = part === null ? null : { time: part, at: performance.now() };
      this.tell("live", "live");
    } else if (name === "queue") this.parts.queue = [...this.parts.queue, ...part];
    else Object.assign(this.parts, { [name]: part });
    if (name === "floor") this.layOut(part);
    this.request();
  }
  /** A floor, or another fleet on it; a service of another version has another page. @param {Parts["floor"]} part */
  layOut(part) {
    if (this.version !== "" && this.version !== part.version) window.location.reload();
    this.version = part.version;
    const { day } = this.live;
    Object.assign(day, readFloor(part));
    this.floor.shapes = assignShapes(day.sites);
    this.isNew = true;
  }
  /** Ask for the next picture, once. */
  request() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      const { floor, tasks, vehicles, figures } = this.parts;
      this.isAsked = false;
      // Of a fleet that has just changed, the vehicles of the moment come next.
      if (tasks && figures && floor && vehicles?.length === floor.vehicles.length) this.show(/** @type {Parts} */ (this.parts));
    });
  }
  /** The moment that is shown: by the clock on the wall, or that of the last message. */
  get time() {
    const { clock, live, parts: { figures } } = this;
    const now = clock === null ? figures?.time ?? figures?.start ?? 0 : clock.time + (performance.now() - clock.at) / 1000;
    return Math.max(0, now - live.zero);
  }
  resize() {
    this.floor.resize(Math.max(260, Math.min(620, 0.6 * window.innerHeight)));
    this.curves.fit(CURVES_HEIGHT, CURVES_LEFT);
    writeLegend([...listFloorMarks(this.live.day, this.floor.shapes, [OUT_OF_SERVICE]), ...CURVE_MARKS]);
    this.isNew = false;
  }
  /** @param {Parts} parts */ show(parts) {
    const { live, curves } = this;
    live.read(parts);
    const { time } = this, late = live.trace(time, parts.figures.waiting);
    // On a crowded floor sites are named once tasks begin or end there.
    for (const site of live.tasks.flatMap(({ pickup, delivery }) => [live.day.sites[pickup], live.day.sites[delivery]])) {
      this.isNew ||= site.use === 0;
      site.use = 1;
    }
    find("#runs").hidden = false;
    if (this.isNew) this.resize();
    this.floor.draw(time);
    // Where no day was begun for long, only the last of it is known.
    curves.span = new Span(live.end);
    curves.span.show(live.curves.waiting[0].start, live.end);
    curves.drawn = "";
    curves.draw(time);
    this.write(time, late, parts);
  }
  /** @param {number} time @param {number} late @param {Parts} parts */
  write(time, late, { figures, orders = [], overdue = {}, refused = [] }) {
    const { live, tables, live: { day, zero } } = this, risk = live.listAtRisk(time), name = day.layout || "floor";
    document.title = late > 0 ? `(${late} late) ${name}` : name;
    setText(find("#title"), name);
    setText(find("#subtitle"), `${formatNumber(day.vehicles.length)} vehicles, ${formatNumber(day.sites.length)} sites, ` +
      `policy ${figures.policy}, acerl_np ${this.version}`);
    setText(find("#clock"), this.clock === null ? `last message: ${formatClock(day, time)}` : this.formatTime(time));
    const numbers = {
      waiting: figures.waiting, risk: risk.length, late, delivered: figures.delivered, announced: figures.announced,
      carried: live.tasks.filter(({ vehicle }) => vehicle >= 0).length,
      idle: live.fleet.filter(({ state }) => state === IDLE || state === PARKED).length,
    };
    for (const [id, value] of Object.entries(numbers)) setText(find(`#n-${id}`), formatNumber(value));
    find("#n-risk").classList.toggle("alarm", risk.length > 0);
    find("#n-late").classList.toggle("alarm", late > 0);
    find(".announced").hidden = figures.announced === 0;
    setText(find("#lateness"), figures.delivered === 0 ? "–" : `${(figures.delay / figures.delivered).toFixed(1)} s`);
    this.writeTasks(time, risk, figures.waiting);
    find("#overdue").hidden = Object.keys(overdue).length === 0;
    tables.overdue.fill(Object.entries(overdue).map((cells) => ({ cells, mark: "late" })), Object.keys(overdue).length);
    tables.orders.fill(orders.toReversed().map((order, k) =>
      ({ cells: [this.formatTime(order.time - zero), describeOrder(order), describeWhy(order, k === 0)] })));
    tables.refused.fill(refused.toReversed().map(({ wall, number, why }) =>
      ({ cells: [new Date(1000 * wall).toLocaleTimeString("en-GB"), String(number ?? "–"), why] })), figures.refused);
    tables.vehicles.fill(live.fleet.map((_, v) => ({ cells: listVehicle(live, v, time) })), live.fleet.length);
    // The pictures in words.
    this.floor.canvas.setAttribute("aria-label", `Floor. ${day.vehicles.length} vehicles: ${countStates(live, time)}. ` +
      `${figures.waiting} tasks wait, ${risk.length} at risk, ${late} late`);
    this.curves.canvas.setAttribute("aria-label", this.curves.describe());
  }
  /** @param {number} time @param {number[]} risk @param {number} count How many wait, those that are not told included. */
  writeTasks(time, risk, count) {
    const { live, tables } = this, { sites, vehicles } = live.day;
    tables.risk.fill(risk.map((k) => {
      const { id, pickup, due, state, vehicle } = live.tasks[k], slack = formatDueIn(live.findSlack(k, time), " to spare");
      const where = vehicle < 0 ? `waits at ${sites[pickup].name}` : `${state === "loaded" ? "on" : "given to"} ${vehicles[vehicle].id}`;
      const cells = [id, where, formatDueIn(due - time), vehicle < 0 ? `${slack} at best` : slack];
      return { cells, mark: live.findLateness(k, time) > 0 ? "late" : "" };
    }), risk.length);
    const rows = listWaiting(live, time);
    const more = count - rows.length;
    if (more > 0) rows.push({ cells: [`and ${formatNumber(more)} more`, "", "", ""], mark: "" });
    tables.waiting.fill(rows, count);
  }
  /** A time of the day, or seconds where the clock has none. @param {number} time */
  formatTime(time) {
    const { epoch } = this.live.day;
    return epoch === null ? formatDuration(Math.max(0, time)) : formatMoment(epoch, time).slice(-8);
  }
}

/** What was ordered, in words. @param {Order} order */
function describeOrder({ kind, vehicle, task, site }) {
  if (kind === "Assigned") return `${vehicle} takes ${task}`;
  if (kind === "Recall") return `${vehicle} gives ${task} back`;
  return kind === "Charge" ? `${vehicle} charges at ${site}` : `${vehicle} parks at ${site}`;
}

/** Who decided, and of an explained assignment what was compared. @param {Order} order
 * @param {boolean} whole Whether to tell what set it apart, too. */
function describeWhy({ rule, reason }, whole) {
  if (typeof reason === "string") return reason;
  if (!reason) return rule ? `by ${rule}` : "";
  const { by, measure, options, parts, outlook } = reason;
  const compared = options.slice(0, 3).map(({ vehicle, task, value }) => `${vehicle} ${task} ${formatValue(value)}`);
  const told = [`by ${by}`, ...(compared.length > 0 ? [`${measure}: ${compared.join(", ")}`] : [])];
  return [...told, ...(whole ? [...parts, outlook] : [])].filter(Boolean).join("; ");
}

// For the console: watcher.live, watcher.time.
Object.assign(globalThis, { watcher: new Watcher() });
