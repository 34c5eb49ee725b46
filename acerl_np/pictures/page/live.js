/* The page of a service: what it tells by server-sent events, drawn by the parts of the replay. */

/** A task that is delivered less than so long before it is due is at risk, s. */
const SOON = 60;
/** Pause before the service is asked again after a connection has ended, ms. */
const AGAIN = 2000;
/** A connection on which nothing has come for so long has ended, ms; the service speaks every 15 s. */
const SILENT = 40_000;
/** Pause between two pictures while the clock on the wall runs, ms. */
const EVERY = 500;
/** Times from here on are seconds since 1970. */
const SINCE_1970 = 1e9;
/** How long the service may take to say why it does not answer, ms. */
const PATIENCE = 5000;
/** In place of infinity for a task that is never due: differences of it are numbers. */
const NEVER = 1e15;
/** Room for the counts beside the curves, px. */
const CURVES_LEFT = 40;

/** The moment as the floor's picture and the curves ask for it; all times from the day's zero on, s. */
class Live extends Scene {
  constructor() {
    super();
    Object.assign(this, { tasks: [], fleet: [], handed: [], end: 1, curves: { waiting: null, late: null } });
    this.figures = {};
    this.samples = [];
    this.zero = 0;
    // What the pictures know of the floor; its tasks are those of the moment.
    this.episode = { tasks: this.tasks, vehicles: [], sites: [], edges: [], epoch: null, end: 1, most: 1 };
  }

  /** Take over the parts of the moment that the service told; all of them have come. */
  read({ tasks, vehicles, figures, queue }) {
    const zero = this.zero = Math.floor(figures.start);
    this.figures = figures;
    this.tasks = this.episode.tasks = tasks.map(([id, pickup, delivery, due, state, vehicle, end]) => ({
      id, pickup, delivery, state, vehicle, due: due === null ? NEVER : due - zero,
      end: vehicle < 0 || end === null ? null : end - zero, least: end ?? 0,
    }));
    const places = new Map(this.tasks.map(({ id }, k) => [id, k]));
    this.fleet = vehicles.map(([state, task, level, way]) => ({
      state, task: places.get(task) ?? null, level, ...this.arrange(way, zero),
    }));
    this.samples = queue.filter(([time]) => time >= zero);
    // The reader's own zone.
    this.episode.epoch = zero < SINCE_1970 ? null : 1000 * zero - 60_000 * new Date(1000 * zero).getTimezoneOffset();
  }

  /** A vehicle's way, for binary search: it stands where it was seen, and then drives from site to site. */
  arrange(way, zero) {
    const [[site]] = way;
    const places = [{ start: -Infinity, a: site, b: site, reach: -Infinity, first: 0, last: 0 }];
    way.slice(1).forEach(([b, reach], k) => {
      places.push({ start: way[k][1] - zero, a: way[k][0], b, reach: reach - zero, first: 0, last: 1 });
    });
    return { places, placeStarts: places.map(({ start }) => start) };
  }

  findState(v) {
    const { state, task } = this.fleet[v];
    return { state, trip: task === null ? null : { task } };
  }

  findLevel(v) {
    return this.fleet[v].level;
  }

  findTaskState(k) {
    const { state, vehicle } = this.tasks[k];
    return vehicle < 0 ? WAITING : state === "loaded" ? RIDING : FETCHED;
  }

  findLateness(k, time) {
    const late = time - this.tasks[k].due;
    return late > ROUNDING ? late : 0;
  }

  /** By how much a task should be delivered before it is due, s; of one without a vehicle, at best. */
  findSlack(k, time) {
    const { due, end, least } = this.tasks[k];
    return due - Math.max(time, end ?? time + least);
  }

  listAtRisk(time) {
    const slack = this.tasks.map((_, k) => this.findSlack(k, time));
    return slack.map((_, k) => k).filter((k) => slack[k] < SOON).sort((a, b) => slack[a] - slack[b]);
  }

  /** How long the queue was up to now. */
  trace(time) {
    const late = this.tasks.filter((_, k) => this.findLateness(k, time) > 0).length;
    const rows = [...this.samples.map(([at, ...counts]) => [at - this.zero, ...counts]), [time, this.figures.waiting, late]];
    const times = rows.map(([at]) => at);
    this.end = this.episode.end = Math.max(1, time);
    this.episode.most = rows.reduce((most, [, a, b]) => Math.max(most, a, b), 1);
    this.curves = { waiting: { times, counts: rows.map((row) => row[1]) }, late: { times, counts: rows.map((row) => row[2]) } };
    return late;
  }
}

/** The curves, with their times below them. */
class QueueView extends CurveView {
  get bottom() {
    return this.height - 20;
  }

  drawLayer(context) {
    super.drawLayer(context);
    this.drawTimes(context);
  }
}

/** The page: its connection, its clock, and what it shows. */
class Watcher {
  constructor() {
    this.live = new Live();
    this.parts = { queue: [] };
    this.floor = null;
    this.isAsked = false;
    this.version = null;
    this.clock = null;
    this.heard = 0;
    this.curves = new QueueView(document.querySelector(".curves canvas"), this.live.episode, this.live, new Span(1));
  }

  /** Listen to the service until the connection ends, then ask again. */
  connect() {
    const source = this.source = new EventSource("watch");
    this.heard = performance.now();
    source.onopen = () => { this.parts.queue = []; };
    source.onerror = () => this.lose();
    for (const name of ["floor", "tasks", "vehicles", "orders", "figures", "refused", "overdue", "queue", "now"]) {
      source.addEventListener(name, ({ data }) => this.take(name, JSON.parse(data)));
    }
  }

  /** The connection has ended: somebody may have to log in, or the service is away. */
  async lose() {
    this.source.close();
    this.tell("lost", "connection lost, trying again");
    const answer = await fetch("state", { method: "HEAD", signal: AbortSignal.timeout(PATIENCE) }).catch(() => null);
    if (answer?.status === 401) this.askToken();
    else setTimeout(() => this.connect(), AGAIN);
  }

  tell(state, words) {
    const node = find("connection");
    node.dataset.state = state;
    setText(node, words);
    document.body.classList.toggle("stale", state === "lost");
  }

  askToken() {
    this.tell("lost", "not logged in");
    find("runs").hidden = true;
    find("login").hidden = false;
    find("token").focus();
  }

  async logIn(token) {
    const answer = await fetch("login", { method: "POST", body: token }).catch(() => null);
    setText(find("refusal"), answer === null ? "the service does not answer" : answer.ok ? "" : await answer.text());
    find("token").select();
    if (!answer?.ok) return;
    find("token").value = "";
    find("login").hidden = true;
    this.connect();
  }

  take(name, part) {
    this.heard = performance.now();
    if (name === "now") {
      this.clock = part === null ? null : { time: part, at: performance.now() };
      this.tell("live", "live");
    } else if (name === "queue") this.parts.queue = [...this.parts.queue, ...part];
    else this.parts[name] = part;
    if (name === "floor") this.layOut(part);
    this.request();
  }

  /** A floor, or another fleet on it; a service of another version has another page. */
  layOut(part) {
    if (this.version !== null && this.version !== part.version) window.location.reload();
    this.version = part.version;
    const { episode } = this.live;
    Object.assign(episode, readFloor(part));
    if (this.floor === null) {
      this.floor = new FloorView(document.querySelector(".floor canvas"), episode, this.live);
      tellPoints([this.floor, this.curves], () => this.time);
    }
    this.floor.shapes = assignShapes(episode.sites);
    this.isNew = true;
  }

  /** Ask for the next picture, once. */
  request() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      if (this.parts.figures && this.parts.tasks && this.parts.vehicles && this.floor) this.show();
    });
  }

  /** The moment that is shown: by the clock on the wall, or that of the last message. */
  get time() {
    const { clock, live } = this;
    const now = clock === null ? live.figures.time ?? live.figures.start
      : clock.time + (performance.now() - clock.at) / 1000;
    return Math.max(0, now - live.zero);
  }

  resize() {
    const colours = readColours(), width = (selector) => Math.max(200, Math.floor(document.querySelector(selector).clientWidth));
    this.floor.resize(width(".floor"), Math.max(260, Math.min(620, 0.6 * window.innerHeight)), colours);
    this.curves.fit(width(".curves"), CURVE_HEIGHT + 36, CURVES_LEFT, colours);
    drawFloorMarks(this.live.episode, this.floor.shapes, colours, [OUT_OF_SERVICE]);
    drawCurveMarks(colours);
  }

  show() {
    const { live, parts } = this;
    // A fleet that has just changed: the vehicles of the moment come next.
    if (parts.vehicles.length !== live.episode.vehicles.length) return;
    live.read(parts);
    const { time } = this, late = live.trace(time);
    // On a crowded floor sites are named once tasks begin or end there.
    for (const k of live.tasks.flatMap(({ pickup, delivery }) => [pickup, delivery])) {
      this.isNew ||= live.episode.sites[k].use === 0;
      live.episode.sites[k].use = 1;
    }
    find("runs").hidden = false;
    if (this.isNew) this.resize();
    this.isNew = false;
    this.floor.draw(time, null);
    // Where no day was begun for long, only the last of it is known.
    this.curves.span = new Span(live.end);
    this.curves.span.show(live.curves.waiting.times[0], live.end);
    this.curves.drawn = "";
    this.curves.draw(time);
    this.write(time, late);
  }

  write(time, late) {
    const { live, parts } = this, { episode, figures } = live, risk = live.listAtRisk(time);
    const name = episode.layout || "floor";
    document.title = late > 0 ? `(${late} late) ${name}` : name;
    setText(find("title"), name);
    setText(find("subtitle"), `${formatNumber(episode.vehicles.length)} vehicles, ${formatNumber(episode.sites.length)} sites, ` +
      `policy ${figures.policy}, acerl_np ${this.version}`);
    setText(find("clock"), this.clock === null ? `last message: ${formatClock(episode, time)}` : this.formatTime(time));
    const idle = live.fleet.filter(({ state }) => state === IDLE || state === PARKED).length;
    const numbers = {
      "n-waiting": figures.waiting, "n-risk": risk.length, "n-late": late, "n-delivered": figures.delivered, "n-idle": idle,
      "n-carried": live.tasks.filter(({ vehicle }) => vehicle >= 0).length, "n-announced": figures.announced,
    };
    for (const [id, value] of Object.entries(numbers)) setText(find(id), formatNumber(value));
    for (const id of ["n-risk", "n-late"]) find(id).classList.toggle("alarm", numbers[id] > 0);
    find("n-announced").parentNode.hidden = figures.announced === 0;
    setText(find("lateness"), figures.delivered === 0 ? "–" : `${(figures.delay / figures.delivered).toFixed(1)} s`);
    this.writeTasks(time, risk);
    this.fill("orders", [...parts.orders ?? []].reverse().map((order, k) => ({
      cells: [this.formatTime(order.time - live.zero), describeOrder(order), describeWhy(order, k === 0)],
    })));
    setText(find("refused-title"), `Messages refused (${formatNumber(figures.refused)})`);
    this.fill("refused", [...parts.refused ?? []].reverse().map(({ wall, number, why }) => ({
      cells: [new Date(1000 * wall).toLocaleTimeString("en-GB"), number === null ? "–" : String(number), why],
    })));
    setText(find("vehicles-title"), `Vehicles (${formatNumber(episode.vehicles.length)})`);
    const overdue = new Set(Object.values(parts.overdue ?? {}));
    this.fill("vehicles", episode.vehicles.map(({ id }, v) => {
      const { state, trip } = live.findState(v), more = overdue.has(id) ? ", overdue" : "";
      return { cells: [id, state + formatLevel(live, v, time) + more, describePlace(episode, live, v, time), trip === null ? "–" : live.tasks[trip.task].id] };
    }));
    this.describe(time, late, risk);
  }

  writeTasks(time, risk) {
    const { live } = this, { episode, figures } = live, { sites, vehicles } = episode;
    const due = ({ due: own }) => (own === NEVER ? "–" : formatDueIn(own - time));
    const mark = (k) => (live.findLateness(k, time) > 0 ? "late" : "");
    setText(find("risk-title"), `At risk (${formatNumber(risk.length)})`);
    this.fill("risk", risk.map((k) => {
      const task = live.tasks[k], slack = live.findSlack(k, time), waits = task.vehicle < 0;
      const where = waits ? `waits at ${sites[task.pickup].name}` : `${task.state === "loaded" ? "on" : "given to"} ${vehicles[task.vehicle].id}`;
      return { cells: [task.id, where, due(task), formatSlack(slack, waits)], mark: mark(k) };
    }));
    const waiting = live.listWaiting(time), more = figures.waiting - waiting.length;
    setText(find("waiting-title"), `Waiting tasks (${formatNumber(figures.waiting)})`);
    this.fill("waiting", [...waiting.map((k) => {
      const task = live.tasks[k];
      const own = task.state === "unservable" ? "no vehicle can carry it" : due(task);
      return { cells: [task.id, sites[task.pickup].name, sites[task.delivery].name, own], mark: mark(k) };
    }), ...(more > 0 ? [{ cells: [`and ${formatNumber(more)} more`, "", "", ""] }] : [])]);
  }

  /** Fill a table; "none" says that there is nothing. */
  fill(id, rows) {
    const table = find(id), empty = Array.from(table.tHead.rows[0].cells, (_, c) => (c === 0 ? "none" : ""));
    fillRows(table.tBodies[0], rows.length > 0 ? rows : [{ cells: empty }]);
  }

  /** The pictures in words. */
  describe(time, late, risk) {
    const { live, floor, curves } = this, { vehicles } = live.episode, counts = new Map();
    for (const { state } of live.fleet) counts.set(state, (counts.get(state) ?? 0) + 1);
    const states = [...counts].map(([state, n]) => `${n} ${state}`).join(", ");
    floor.canvas.setAttribute("aria-label", `Floor. ${vehicles.length} vehicles: ${states}. ` +
      `${live.figures.waiting} tasks wait, ${risk.length} at risk, ${late} late`);
    curves.canvas.setAttribute("aria-label", curves.describe());
  }

  /** A time of the day, or seconds where the clock has none. */
  formatTime(time) {
    const { epoch } = this.live.episode;
    return epoch === null ? formatDuration(Math.max(0, time)) : formatMoment(epoch, time).slice(-8);
  }
}

/** What was ordered, in words. */
function describeOrder({ kind, vehicle, task, site }) {
  if (kind === "Assigned") return `${vehicle} takes ${task}`;
  if (kind === "Recall") return `${vehicle} gives ${task} back`;
  return kind === "Charge" ? `${vehicle} charges at ${site}` : `${vehicle} parks at ${site}`;
}

/** Who decided, and of an explained assignment what was compared; if `whole` also what set it apart. */
function describeWhy({ rule, reason }, whole) {
  if (typeof reason === "string") return reason;
  if (!reason) return rule ? `by ${rule}` : "";
  const { by, measure, options, parts, outlook } = reason;
  const compared = options.slice(0, 3).map(({ vehicle, task, value }) => `${vehicle} ${task} ${formatValue(value)}`);
  const told = [`by ${by}`, ...(compared.length > 0 ? [`${measure}: ${compared.join(", ")}`] : [])];
  return [...told, ...(whole ? [...parts, outlook] : [])].filter(Boolean).join("; ");
}

function formatSlack(slack, atBest) {
  const words = slack < 0 ? `late by ${formatNumber(Math.ceil(-slack))} s` : `${formatNumber(Math.floor(slack))} s to spare`;
  return atBest ? `${words} at best` : words;
}

function begin() {
  const watcher = new Watcher(), again = () => { if (watcher.floor !== null) watcher.isNew = true; watcher.request(); };
  followTheme(again);
  window.addEventListener("resize", again);
  find("login").querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    watcher.logIn(find("token").value);
  });
  setInterval(() => {
    if (watcher.source.readyState !== EventSource.CLOSED && performance.now() - watcher.heard > SILENT) watcher.lose();
    if (watcher.clock !== null && watcher.source.readyState === EventSource.OPEN) watcher.request();
  }, EVERY);
  watcher.connect();
  return watcher;
}

// For the console: watcher.live, watcher.time.
globalThis.watcher = begin();
