/* The page: one clock for all runs, its controls, and the tables beside the pictures. */

const SPEEDS = [1, 2, 5, 10, 20, 50, 100, 200];
/** A replay lasts at most so long, s, if one of the speeds allows it and the reader chooses no other. */
const USUAL_LENGTH = 120;
const MOST_WAITING = 100;
/** Pause between two renewals of texts and tables while it plays, ms; faster could not be read. */
const TEXT_EVERY = 150;
/** Pause between two pictures for those who want less motion, ms. */
const CALM_EVERY = 500;

const find = (id) => document.getElementById(id);
const setText = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

/** Fill a table's body; rows and cells that are there are used again. */
function fillRows(body, rows) {
  while (body.rows.length > rows.length) body.lastElementChild.remove();
  rows.forEach(({ cells, mark = "" }, k) => {
    const row = body.rows[k] ?? body.insertRow();
    if (row.className !== mark) row.className = mark;
    cells.forEach((text, c) => {
      const cell = row.cells[c] ?? row.insertCell();
      setText(cell, text);
      const last = c === cells.length - 1 && body.dataset.numbers === "yes";
      if (last) cell.className = "number";
    });
    while (row.cells.length > cells.length) row.lastElementChild.remove();
  });
}

/** One run on the page. */
class Panel {
  constructor(episode, run, place) {
    Object.assign(this, { episode, run });
    const root = this.root = find("run").content.cloneNode(true).firstElementChild;
    this.part = (selector) => root.querySelector(selector);
    const title = this.part("h2");
    title.id = `run-${place}`;
    setText(title, run.label);
    root.setAttribute("aria-labelledby", title.id);
    this.floor = new FloorView(this.part(".floor canvas"), episode, run);
    this.gantt = new GanttView(this.part(".gantt canvas"), episode, run);
    this.gantt.canvas.setAttribute("aria-label", this.describeChart());
    this.nameBoxes();
    const figures = [...root.querySelectorAll("dd")];
    this.figures = Object.fromEntries(figures.map((node) => [node.dataset.figure, node]));
    // The decision that is shown; while it plays, the last one that has fallen.
    this.shown = -1;
    this.drawn = null;
    find("runs").append(root);
  }

  /** Boxes that scroll can be reached by keys, so they need names. */
  nameBoxes() {
    const names = ["Alternatives", "Waiting tasks", "Vehicles"];
    this.root.querySelectorAll(".box").forEach((box, k) => {
      box.setAttribute("aria-label", `${names[k]}, ${this.run.label}`);
    });
    this.part(".waiting").parentElement.classList.add("waiting-box");
    for (const table of [".alternatives table", ".waiting"]) this.part(`${table} tbody`).dataset.numbers = "yes";
  }

  describeChart() {
    const { run } = this;
    const late = run.tasks.filter((_, k) => run.findLateness(k, run.end) > 0).length;
    const undone = run.trips.filter((trip) => !trip.delivered).length;
    return `Chart of ${this.episode.vehicles.length} vehicles over ${formatNumber(run.end)} s: ` +
      `${run.finishes.length} tasks delivered, ${late} late, ${run.stops.length} breakdowns, ` +
      `${undone} trips broken off`;
  }

  resize(colours) {
    const width = (selector) => Math.max(200, Math.floor(this.part(selector).clientWidth));
    this.floor.resize(width(".floor"), Math.max(260, Math.min(560, 0.5 * window.innerHeight)), colours);
    this.gantt.resize(width(".gantt"), colours);
  }

  draw(time, marked) {
    this.floor.draw(time, marked && this.shown >= 0 ? this.run.decisions[this.shown] : null);
    this.gantt.draw(time);
  }

  write(time) {
    this.writeFigures(time);
    this.writeDecision();
    this.writeWaiting(time);
    if (this.part("details").open) this.writeVehicles(time);
  }

  writeFigures(time) {
    const { run, figures } = this, now = run.measure(time);
    setText(figures.finished, `${formatNumber(now.finished)} of ${formatNumber(run.tasks.length)}`);
    setText(figures.late, formatNumber(now.late));
    setText(figures.tardiness, `${now.tardiness.toFixed(1)} s`);
    const outcome = run.makespan === null ? `– (${run.status})`
      : `${formatNumber(run.makespan)} s / ${run.tardiness.toFixed(1)} s`;
    setText(figures.outcome, outcome + (now.over ? " · over" : ""));
    setText(figures.service, run.makespan === null ? "–"
      : `${(100 * run.late).toFixed(1)} % / ${run.waiting.toFixed(1)} s`);
    setText(figures.objective, run.objective);
    figures.objective.parentNode.hidden = run.objective === "";
  }

  writeDecision() {
    if (this.shown === this.drawn) return;
    this.drawn = this.shown;
    const { run, shown } = this;
    const decision = run.decisions[shown];
    const title = shown < 0 ? "No decision yet" : `Decision ${shown + 1} of ${run.decisions.length}`;
    setText(this.part(".decision h3"), title);
    setText(this.part(".chosen"), shown < 0 ? "" : this.describeDecision(decision));
    setText(this.part(".why"), shown < 0 ? "" : describeReason(decision) + this.describeOutlooks(decision));
    const rows = shown < 0 ? [] : decision.alternatives.map((item, k) => ({
      cells: [this.nameVehicle(item.vehicle), this.nameTask(item.task), item.rule || "–", formatValue(item.value)],
      mark: k === decision.chosen ? "picked" : "",
    }));
    fillRows(this.part(".alternatives tbody"), rows);
  }

  /** What becomes of all that waits, with the chosen pair and with the next best. */
  describeOutlooks({ outlooks }) {
    if (outlooks.length === 0) return "";
    const [own, other] = outlooks.map(({ end, late }) =>
      `${formatClock(this.episode, end)}, ${formatNumber(late)} s late`);
    const { vehicle, task, what } = outlooks[1];
    return `. Then ${what} done by ${own} in all; with ${this.nameVehicle(vehicle)} ${this.nameTask(task)}: ${other}`;
  }

  nameVehicle(v) {
    return this.episode.vehicles[v].id;
  }

  nameTask(k) {
    return this.episode.tasks[k].id;
  }

  nameSite(k) {
    return this.episode.sites[k].id;
  }

  describeDecision({ time, vehicle, task }) {
    const { pickup, delivery } = this.episode.tasks[task];
    return `${formatNumber(time)} s: ${this.nameVehicle(vehicle)} takes ${this.nameTask(task)}, ` +
      `${this.nameSite(pickup)} → ${this.nameSite(delivery)}`;
  }

  writeWaiting(time) {
    const waiting = this.run.listWaiting(time);
    setText(this.figures.waiting, formatNumber(waiting.length));
    const rows = waiting.slice(0, MOST_WAITING).map((k) => {
      const { pickup, delivery, due } = this.episode.tasks[k];
      return {
        cells: [this.nameTask(k), this.nameSite(pickup), this.nameSite(delivery), formatDueIn(due - time)],
        mark: time - due > ROUNDING ? "late" : "",
      };
    });
    const more = waiting.length - rows.length;
    if (more > 0) rows.push({ cells: [`and ${more} more`, "", "", ""] });
    if (waiting.length === 0) rows.push({ cells: ["none", "", "", ""] });
    fillRows(this.part(".waiting tbody"), rows);
  }

  writeVehicles(time) {
    const rows = this.episode.vehicles.map(({ id }, v) => {
      const { state, trip } = this.run.findState(v, time);
      const task = trip === null ? "–" : this.nameTask(trip.task);
      return { cells: [id, state, describePlace(this.episode, this.run, v, time), task] };
    });
    fillRows(this.part(".vehicles tbody"), rows);
  }

  /** The floor's picture in words. */
  describe(time) {
    const fleet = this.episode.vehicles;
    const when = `Floor at ${formatNumber(Math.floor(time))} s`;
    if (fleet.length <= NAMED_VEHICLES) {
      const lines = fleet.map((_, v) => describeVehicle(this.episode, this.run, v, time).replace("\n", " "));
      return `${when}. ${lines.join("; ")}`;
    }
    const counts = [IDLE, TO_PICKUP, LOADED, BROKEN].map((state) => {
      const n = fleet.filter((_, v) => this.run.findState(v, time).state === state).length;
      return `${n} ${state}`;
    });
    return `${when}. Vehicles: ${counts.join(", ")}`;
  }
}

function describeReason({ by, measure, alternatives, parts }) {
  if (alternatives.length === 0) return `by ${by}`;
  const beside = parts.length === 0 ? "" : `. Beside the next best: ${parts.map(describePart).join("; ")}`;
  return `by ${by}; value: ${measure}${beside}`;
}

/** What sets a pair apart, such as "way to the pickup: 31 s less (+0.82)". */
function describePart({ words, unit, difference, value }) {
  const amount = unit === "" ? "" : `${formatValue(Math.abs(difference))} ${unit} `;
  return `${words}: ${amount}${difference > 0 ? "more" : "less"} (${value < 0 ? "" : "+"}${value.toFixed(2)})`;
}

/** The clock and everything that moves it. */
class Player {
  constructor(episode) {
    this.episode = episode;
    this.panels = episode.runs.map((run, k) => new Panel(episode, run, k));
    find("runs").dataset.runs = String(this.panels.length);
    // All decisions of all runs on one clock.
    this.decisions = episode.runs.flatMap((run, panel) =>
      run.decisions.map(({ time }, n) => ({ time, panel, n })));
    this.decisions.sort((a, b) => a.time - b.time || a.panel - b.panel || a.n - b.n);
    this.decisionTimes = this.decisions.map((decision) => decision.time);
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.time = 0;
    this.playing = false;
    this.speed = SPEEDS.find((speed) => episode.end / speed <= USUAL_LENGTH) ?? SPEEDS.at(-1);
    this.written = 0;
    this.frames = 0;
    // Position in `decisions` while the reader goes from one to the next; null at any other time.
    this.step = null;
  }

  resize() {
    const colours = readColours();
    for (const panel of this.panels) panel.resize(colours);
    drawLegend(this.episode, this.panels[0].floor.shapes, colours);
    this.show();
  }

  play() {
    if (this.playing) return;
    if (this.time >= this.episode.end) this.seek(0);
    this.playing = true;
    this.step = null;
    this.last = performance.now();
    setText(find("play"), "Pause");
    this.request();
  }

  pause() {
    this.playing = false;
    setText(find("play"), "Play");
    this.show();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  request() {
    const next = () => requestAnimationFrame((now) => this.tick(now));
    if (this.calm.matches) setTimeout(next, CALM_EVERY);
    else next();
  }

  tick(now) {
    if (!this.playing) return;
    // A page that was out of sight goes on where it was.
    const passed = Math.min(1, Math.max(0, now - this.last) / 1000);
    this.last = now;
    this.time = Math.min(this.episode.end, this.time + passed * this.speed);
    this.frames += 1;
    if (this.time >= this.episode.end) {
      this.pause();
      return;
    }
    this.show(now - this.written >= TEXT_EVERY);
    this.request();
  }

  /** Go to a moment, s. */
  seek(time) {
    this.step = null;
    this.time = Math.min(this.episode.end, Math.max(0, time));
    this.show();
  }

  setSpeed(speed) {
    this.speed = speed;
    find("speed").value = String(speed);
  }

  /** To the next decision (1) or the one before (-1) of all runs; say which it is. */
  stepDecision(by) {
    const { decisions } = this;
    if (decisions.length === 0) return;
    if (this.playing) this.pause();
    const target = this.findStep(by);
    if (target < 0 || target >= decisions.length) return;
    this.step = target;
    this.time = decisions[target].time;
    this.show();
    this.announce(decisions[target]);
  }

  /** Tell screen readers of a decision. */
  announce({ panel, n }) {
    const { run } = this.panels[panel], decision = run.decisions[n];
    const words = [
      ...(this.panels.length > 1 ? [run.label] : []),
      `decision ${n + 1} of ${run.decisions.length}`,
      this.panels[panel].describeDecision(decision),
      describeReason(decision),
    ];
    setText(find("announce"), words.join(", "));
  }

  findStep(by) {
    if (this.step !== null) return this.step + by;
    const last = findLast(this.decisionTimes, this.time);
    if (by < 0) return this.time > this.decisionTimes[last] ? last : last - 1;
    // At the very start those of that moment are still to be looked at.
    return this.time === 0 ? 0 : last + 1;
  }

  /** Which decision each run shows. */
  chooseShown() {
    this.panels.forEach((panel, k) => {
      panel.shown = findLast(panel.run.decisionTimes, this.time);
      if (this.step === null) return;
      for (let s = this.step; s >= 0; s--) {
        if (this.decisions[s].panel === k) {
          panel.shown = this.decisions[s].n;
          return;
        }
      }
      panel.shown = -1;
    });
  }

  show(write = true) {
    this.chooseShown();
    const marked = this.step === null ? -1 : this.decisions[this.step].panel;
    this.panels.forEach((panel, k) => panel.draw(this.time, k === marked));
    if (write) this.write();
  }

  write() {
    this.written = performance.now();
    const clock = formatClock(this.episode, this.time), slider = find("time");
    setText(find("clock"), clock);
    slider.value = String(this.time);
    slider.setAttribute("aria-valuetext", clock);
    for (const panel of this.panels) {
      panel.write(this.time);
      if (!this.playing) panel.floor.canvas.setAttribute("aria-label", panel.describe(this.time));
    }
  }
}

/** One entry of the legend: a drawn mark and its meaning. */
function addMark(words, width, draw) {
  const entry = document.createElement("span"), canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  draw(sizeCanvas(canvas, width, 20));
  entry.append(canvas, document.createTextNode(words));
  find("legend").append(entry);
}

function drawLegend(episode, shapes, colours) {
  find("legend").replaceChildren();
  for (const state of [IDLE, TO_PICKUP, LOADED, BROKEN]) {
    addMark(`vehicle ${state}`, 26, (context) => drawVehicle(context, colours, state, 12, 10, 8, 0));
  }
  const tasks = [
    ["task waits", {}],
    ["a vehicle is on its way to it", { fetched: true }],
    ["task is late", { late: true }],
  ];
  for (const [words, task] of tasks) addMark(words, 16, (context) => drawParcel(context, colours, task, 8, 10));
  if (new Set(shapes.values()).size === shapes.size) {
    for (const [kind, shape] of shapes) {
      addMark(cutText(kind, 24) || "site", 16, (context) => drawSite(context, colours, shape, 8, 10, 5));
    }
  }
  drawBars(episode, colours);
}

/** Bars of the chart, drawn by the chart itself from a trip and a stop made for it. */
function drawBars(episode, colours) {
  const chart = Object.create(GanttView.prototype);
  const toy = { end: 44, tasks: [{ id: "wider than its bar" }] };
  Object.assign(chart, { colours, row: 20, left: 0, right: 44, episode: toy });
  chart.run = { findLateness: () => 0 };
  const trip = { task: 0, start: 0, end: 44, pickup: 44, delivered: true };
  addMark("way to the pickup", 44, (context) => chart.drawTrip(context, trip, 0));
  addMark("loaded way", 44, (context) => chart.drawTrip(context, { ...trip, pickup: 0 }, 0));
  chart.run.findLateness = () => 1;
  addMark("delivered late", 44, (context) => chart.drawTrip(context, { ...trip, pickup: 0 }, 0));
  addMark("idle", 44, (context) => chart.drawIdle(context, 44, 0));
  if (!episode.runs.some((run) => run.stops.length > 0)) return;
  addMark("broken down", 44, (context) => chart.drawStop(context, { start: 0, end: 44 }, 0));
  const undone = { ...trip, end: 38, pickup: null, delivered: false };
  addMark("trip broken off", 44, (context) => chart.drawTrip(context, undone, 0));
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  setText(find("theme"), theme === "dark" ? "Light" : "Dark");
}

/** The pointer over a picture: what is there, and in a chart a click goes there. */
function followPointer(player, panel) {
  const tip = find("tip");
  const tell = (event, text) => {
    tip.hidden = text === null;
    if (text === null) return;
    setText(tip, text);
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - width - 4))}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, window.innerHeight - height - 4))}px`;
  };
  for (const view of [panel.floor, panel.gantt]) {
    view.canvas.addEventListener("pointermove", (event) => {
      tell(event, view.describePoint(event.offsetX, event.offsetY, player.time));
    });
    view.canvas.addEventListener("pointerleave", (event) => tell(event, null));
  }
  const { canvas } = panel.gantt;
  const seek = (event) => player.seek(panel.gantt.toTime(event.offsetX));
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    seek(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (canvas.hasPointerCapture(event.pointerId)) seek(event);
  });
}

/** What each key does; an entry that returns false leaves the key to the browser. */
function listKeys(player) {
  const change = (by) => {
    const next = SPEEDS.indexOf(player.speed) + by;
    if (next >= 0 && next < SPEEDS.length) player.setSpeed(SPEEDS[next]);
  };
  const move = (by) => (event) => player.seek(player.time + (event.shiftKey ? 10 * by : by));
  const keys = {
    " ": () => player.toggle(),
    ArrowLeft: move(-10), ArrowRight: move(10),
    ArrowUp: () => change(1), "+": () => change(1), "=": () => change(1),
    ArrowDown: () => change(-1), "-": () => change(-1),
    ",": () => player.stepDecision(-1), j: () => player.stepDecision(-1),
    ".": () => player.stepDecision(1), k: () => player.stepDecision(1),
    Home: () => player.seek(0), End: () => player.seek(player.episode.end),
    t: () => find("theme").click(),
    "?": () => find("keys").showModal(),
  };
  return keys;
}

/** Whether an element needs this key itself. */
function ownsKey(element, key) {
  if (element.closest("dialog, select")) return true;
  if (key === " ") return element.closest("button, summary") !== null;
  // Boxes scroll; the slider's arrows move by the page's own steps.
  return element.closest(".box") !== null && /^(Arrow|Home|End)/.test(key);
}

function listen(player) {
  const on = (id, event, action) => find(id).addEventListener(event, action);
  on("play", "click", () => player.toggle());
  on("restart", "click", () => player.seek(0));
  on("back", "click", () => player.stepDecision(-1));
  on("forward", "click", () => player.stepDecision(1));
  on("time", "input", (event) => player.seek(Number(event.target.value)));
  on("speed", "change", (event) => player.setSpeed(Number(event.target.value)));
  on("help", "click", () => find("keys").showModal());
  on("theme", "click", () => {
    setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    player.resize();
  });
  const keys = listKeys(player);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || ownsKey(event.target, event.key)) return;
    const action = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (action === undefined) return;
    event.preventDefault();
    action(event);
  });
  for (const panel of player.panels) {
    followPointer(player, panel);
    panel.part("details").addEventListener("toggle", () => panel.writeVehicles(player.time));
  }
  window.addEventListener("resize", () => player.resize());
}

function start() {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  setTheme(dark.matches ? "dark" : "light");
  const episode = readEpisode(find("episode").textContent), player = new Player(episode);
  const names = episode.runs.map((run) => run.label).join(" beside ");
  document.title = `${episode.name}: ${names}`;
  setText(find("title"), `${episode.name}: ${names}`);
  setText(find("subtitle"), `${formatNumber(episode.tasks.length)} tasks, ${episode.vehicles.length} vehicles, ` +
    `${episode.sites.length} sites on floor ${episode.layout}`);
  find("time").max = String(episode.end);
  for (const speed of SPEEDS) find("speed").add(new Option(`${speed}×`, String(speed)));
  player.setSpeed(player.speed);
  listen(player);
  dark.addEventListener("change", () => {
    setTheme(dark.matches ? "dark" : "light");
    player.resize();
  });
  player.resize();
  return player;
}

// For the console: player.seek(120), player.episode.runs[0].locate(0, 120).
globalThis.player = start();
