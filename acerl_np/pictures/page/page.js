/* The page: one clock for all runs, its controls, and the tables beside the pictures. */

const SPEEDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];
/** A replay lasts at most so long, s, if one of the speeds allows it and the reader chooses no other. */
const USUAL_LENGTH = 120;
/** Pause between two renewals of texts and tables while it plays, ms; faster could not be read. */
const TEXT_EVERY = 150;
/** Pause between two pictures for those who want less motion, ms. */
const CALM_EVERY = 500;

/** One run on the page. */
class Panel {
  constructor(episode, run, place, span) {
    Object.assign(this, { episode, run, span });
    const root = this.root = find("run").content.cloneNode(true).firstElementChild;
    this.part = (selector) => root.querySelector(selector);
    const title = this.part("h2");
    title.id = `run-${place}`;
    setText(title, run.label);
    root.setAttribute("aria-labelledby", title.id);
    this.floor = new FloorView(this.part(".floor canvas"), episode, run);
    this.gantt = new GanttView(this.part(".gantt canvas"), episode, run, span);
    this.curves = new CurveView(this.part(".curves canvas"), episode, run, span);
    this.day = new DayView(this.part(".day canvas"), episode, run, span);
    this.gantt.canvas.setAttribute("aria-label", this.describeChart());
    this.curves.canvas.setAttribute("aria-label", this.curves.describe());
    this.nameBoxes();
    this.writeRecalls();
    const figures = [...root.querySelectorAll("dd")];
    this.figures = Object.fromEntries(figures.map((node) => [node.dataset.figure, node]));
    // The decision that is shown; while it plays, the last one that has fallen.
    this.shown = -1;
    this.drawn = null;
    find("runs").append(root);
  }

  /** Boxes that scroll can be reached by keys, so they need names. */
  nameBoxes() {
    const names = ["Alternatives", "Waiting tasks", "Vehicles", "Called back"];
    this.root.querySelectorAll(".box").forEach((box, k) => {
      box.setAttribute("aria-label", `${names[k]}, ${this.run.label}`);
    });
    this.part(".waiting").parentElement.classList.add("waiting-box");
    for (const table of [".alternatives table", ".parts", ".waiting"]) this.part(`${table} tbody`).dataset.numbers = "yes";
  }

  writeRecalls() {
    const { episode, run } = this, { recalls } = run;
    this.part(".recalls").hidden = recalls.length === 0;
    setText(this.part(".recalls summary"), `Called back (${formatNumber(recalls.length)})`);
    fillRows(this.part(".recalls tbody"), recalls.map((trip) => ({
      cells: [`${formatNumber(trip.end)} s`, describeRecall(episode, run, trip)],
    })));
  }

  describeChart() {
    const { run } = this;
    const late = run.tasks.filter((_, k) => run.findLateness(k, run.end) > 0).length;
    const undone = run.trips.filter((trip) => !trip.delivered && trip.recall === null).length;
    return `Chart of ${this.episode.vehicles.length} vehicles over ${formatNumber(run.end)} s: ` +
      `${run.finishes.length} tasks delivered, ${late} late, ${run.stops.length} breakdowns, ` +
      `${undone} trips broken off` + (run.recalls.length > 0 ? `, ${run.recalls.length} called back` : "");
  }

  resize(colours) {
    const width = (selector) => Math.max(200, Math.floor(this.part(selector).clientWidth));
    this.floor.resize(width(".floor"), Math.max(260, Math.min(560, 0.5 * window.innerHeight)), colours);
    this.gantt.resize(width(".gantt"), colours);
    this.curves.fit(width(".gantt"), CURVE_HEIGHT, this.gantt.left, colours);
    this.day.fit(width(".gantt"), DAY_HEIGHT, this.gantt.left, colours);
  }

  draw(time, marked) {
    this.floor.draw(time, marked && this.shown >= 0 ? this.run.decisions[this.shown] : null);
    for (const view of [this.gantt, this.curves, this.day]) view.draw(time);
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
    setText(figures.outcome, outcome + (now.over && run.makespan !== null ? ` · ${run.status}` : ""));
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
    this.writeParts(shown < 0 ? null : decision);
  }

  /** What sets the chosen pair's score apart from the next best one's. */
  writeParts(decision) {
    const table = this.part(".parts");
    table.hidden = decision === null || decision.parts.length === 0;
    if (table.hidden) return;
    const { alternatives, chosen, parts } = decision;
    const other = alternatives.find((_, k) => k !== chosen);
    const all = alternatives[chosen].value - other.value;
    const rest = parts.reduce((left, part) => left - part.value, all);
    const name = `${this.nameVehicle(other.vehicle)} ${this.nameTask(other.task)}`;
    setText(this.part(".beside"), `Score beside ${name}`);
    fillRows(this.part(".parts tbody"), [
      ...parts.map((part) => ({ cells: [part.words, describeDifference(part), formatGain(part.value)] })),
      ...(Math.abs(rest) < 0.005 ? [] : [{ cells: ["all else", "", formatGain(rest)] }]),
      { cells: ["in all", "", formatGain(all)], mark: "sum" },
    ]);
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
    return this.episode.sites[k].name;
  }

  describeDecision(decision) {
    const { time, vehicle, task } = decision, { run } = this;
    if (vehicle < 0) return `${formatNumber(time)} s: all wait`;
    const recalled = run.recalls.filter(({ recall }) => run.decisions[recall] === decision)
      .map((trip) => `; ${describeRecall(this.episode, run, trip)}`);
    const { pickup, delivery } = this.episode.tasks[task];
    return `${formatNumber(time)} s: ${this.nameVehicle(vehicle)} takes ${this.nameTask(task)}, ` +
      `${this.nameSite(pickup)} → ${this.nameSite(delivery)}${recalled.join("")}`;
  }

  writeWaiting(time) {
    const waiting = this.run.listWaiting(time);
    setText(this.figures.waiting, formatNumber(waiting.length));
    setText(this.part(".waiting-title"), `Waiting tasks (${formatNumber(waiting.length)})`);
    const rows = waiting.map((k) => {
      const { pickup, delivery, due } = this.episode.tasks[k];
      return {
        cells: [this.nameTask(k), this.nameSite(pickup), this.nameSite(delivery), formatDueIn(due - time)],
        mark: time - due > ROUNDING ? "late" : "",
      };
    });
    if (waiting.length === 0) rows.push({ cells: ["none", "", "", ""] });
    fillRows(this.part(".waiting tbody"), rows);
  }

  writeVehicles(time) {
    const rows = this.episode.vehicles.map(({ id }, v) => {
      const { state, trip } = this.run.findState(v, time);
      const task = trip === null ? "–" : this.nameTask(trip.task);
      return { cells: [id, state + formatLevel(this.run, v, time), describePlace(this.episode, this.run, v, time), task] };
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
    const counts = new Map([IDLE, TO_PICKUP, LOADED, BROKEN].map((state) => [state, 0]));
    fleet.forEach((_, v) => {
      const { state } = this.run.findState(v, time);
      counts.set(state, (counts.get(state) ?? 0) + 1);
    });
    return `${when}. Vehicles: ${[...counts].map(([state, n]) => `${n} ${state}`).join(", ")}`;
  }
}

function describeReason({ by, measure, alternatives }) {
  return alternatives.length === 0 ? `by ${by}` : `by ${by}; value: ${measure}`;
}

/** What sets a pair apart, such as "31 s less". */
function describeDifference({ unit, difference }) {
  const amount = unit === "" ? "" : `${formatValue(Math.abs(difference))} ${unit} `;
  return amount + (difference > 0 ? "more" : "less");
}

function formatGain(value) {
  return (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
}

/** The clock and everything that moves it. */
class Player {
  constructor(episode) {
    this.episode = episode;
    this.span = new Span(episode.end);
    this.panels = episode.runs.map((run, k) => new Panel(episode, run, k, this.span));
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
    this.isAsked = false;
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

  /** Ask for the next picture, once. */
  request() {
    if (this.isAsked) return;
    this.isAsked = true;
    const next = () => requestAnimationFrame((now) => this.tick(now));
    if (this.calm.matches) setTimeout(next, CALM_EVERY);
    else next();
  }

  tick(now) {
    this.isAsked = false;
    if (!this.playing) return;
    // A page that was out of sight goes on where it was.
    const passed = Math.min(1, Math.max(0, now - this.last) / 1000);
    this.last = now;
    const before = this.time;
    this.time = Math.min(this.episode.end, before + passed * this.speed);
    // Charts turn over with the clock, unless the reader looks elsewhere.
    if (before >= this.span.from && before <= this.span.to) this.span.follow(this.time);
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
    this.span.follow(this.time);
    this.show();
  }

  /** Change the part of the episode that the charts show: "in", "out", "earlier", "later" or "whole". */
  zoom(how) {
    const { span } = this;
    const isSeen = this.time >= span.from && this.time <= span.to;
    const middle = isSeen ? this.time : (span.from + span.to) / 2;
    if (how === "in") span.zoom(0.5, middle);
    else if (how === "out") span.zoom(2, middle);
    else if (how === "whole") span.show(0, span.end);
    else span.move((how === "later" ? 0.5 : -0.5) * span.length);
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
    this.span.follow(this.time);
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
    const { from, to } = this.span, shown = this.span.isWhole ? "whole episode"
      : `${formatTick(this.episode, Math.round(from))} to ${formatTick(this.episode, Math.round(to))}`;
    for (const panel of this.panels) {
      setText(panel.part(".span"), shown);
      panel.write(this.time);
      if (!this.playing) panel.floor.canvas.setAttribute("aria-label", panel.describe(this.time));
    }
  }
}

function drawLegend(episode, shapes, colours) {
  drawFloorMarks(episode, shapes, colours);
  drawBars(episode, colours);
  drawCurveMarks(colours);
  for (const by of new Set(episode.runs.flatMap(({ handed }) => handed.map((span) => span.by)))) {
    addMark(`${by} decides`, 26, (context) => {
      context.fillStyle = colours.handed;
      context.fillRect(0, 2, 26, 16);
    });
  }
}

/** Bars of the chart, drawn by the chart itself from a trip and a stop made for it. */
function drawBars(episode, colours) {
  const chart = Object.create(GanttView.prototype);
  const toy = { tasks: [{ id: "wider than its bar" }] };
  Object.assign(chart, { colours, row: 20, left: 0, right: 44, episode: toy, span: new Span(44) });
  chart.run = { findLateness: () => 0 };
  const trip = { task: 0, start: 0, end: 44, pickup: 44, delivered: true, recall: null };
  addMark("way to the pickup", 44, (context) => chart.drawTrip(context, trip, 0));
  addMark("loaded way", 44, (context) => chart.drawTrip(context, { ...trip, pickup: 0 }, 0));
  chart.run.findLateness = () => 1;
  addMark("delivered late", 44, (context) => chart.drawTrip(context, { ...trip, pickup: 0 }, 0));
  addMark("idle", 44, (context) => chart.drawIdle(context, 44, 0));
  for (const [words, state] of [["way to charge or park", ERRAND], [QUEUED, QUEUED], [CHARGING, CHARGING]]) {
    const isUsed = ({ state: own }) => own === state || (state === ERRAND && own !== QUEUED && own !== CHARGING);
    if (!episode.runs.some((run) => run.errands.some(isUsed))) continue;
    addMark(words, 44, (context) => chart.drawErrand(context, { state, start: 0, end: 44 }, 0));
  }
  if (episode.runs.some((run) => run.recalls.length > 0)) {
    addMark("called back", 44, (context) => chart.drawTrip(context, { ...trip, end: 38, pickup: null, recall: 0 }, 0));
  }
  if (!episode.runs.some((run) => run.stops.length > 0)) return;
  addMark("broken down", 44, (context) => chart.drawStop(context, { start: 0, end: 44 }, 0));
  const undone = { ...trip, end: 38, pickup: null, delivered: false };
  addMark("trip broken off", 44, (context) => chart.drawTrip(context, undone, 0));
}

function followPointer(player, panel) {
  const views = [panel.floor, panel.gantt, panel.curves, panel.day];
  tellPoints(views, () => player.time);
  for (const view of [panel.gantt, panel.curves]) moveCharts(player, view);
  moveSpan(player, panel.day);
}

/** Tell of a pointer that goes down, moves and comes up again, in px from where it went down. */
function followDrag(canvas, begin, move, end) {
  let start = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    start = { x: event.offsetX, isMoved: false };
    begin(event.offsetX);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (start === null || !canvas.hasPointerCapture(event.pointerId)) return;
    start.isMoved ||= Math.abs(event.offsetX - start.x) > 3;
    if (start.isMoved) move(event.offsetX, start.x);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (start !== null && !start.isMoved) end(event.offsetX);
    start = null;
  });
}

/** In a chart a click goes to that moment, dragging moves the charts, and the wheel shows more or less. */
function moveCharts(player, view) {
  const { canvas } = view, { span } = player;
  let from = 0;
  followDrag(canvas, () => { from = span.from; }, (x, start) => {
    const seconds = ((start - x) * span.length) / (view.right - view.left);
    span.show(from + seconds, from + seconds + span.length);
    player.show();
  }, (x) => player.seek(view.toTime(x)));
  canvas.addEventListener("wheel", (event) => {
    const { deltaX, deltaY } = event, goesAside = event.shiftKey || Math.abs(deltaX) > Math.abs(deltaY);
    // What would change nothing is left to the page, which scrolls.
    if (event.ctrlKey || (span.isWhole && (goesAside || deltaY > 0))) return;
    event.preventDefault();
    const by = event.deltaMode === 0 ? 1 : 30;
    if (goesAside) span.move((by * (deltaX || deltaY) * span.length) / view.width);
    else span.zoom(1.002 ** (by * deltaY), view.toTime(event.offsetX));
    player.show();
  }, { passive: false });
}

/** On the day, dragging shows a part of it, moves that part or one of its ends; a double click shows all. */
function moveSpan(player, day) {
  const { canvas } = day, { span } = player;
  let handle = null, from = 0, to = 0;
  followDrag(canvas, (x) => {
    [handle, from, to] = [day.findHandle(x), span.from, span.to];
  }, (x, start) => {
    const [now, then] = [day.toTime(x), day.toTime(start)];
    if (handle === "all") span.show(from + now - then, to + now - then);
    else if (handle === "from") span.show(Math.min(now, to - LEAST_SPAN), to);
    else if (handle === "to") span.show(from, Math.max(now, from + LEAST_SPAN));
    else span.show(Math.min(now, then), Math.max(now, then));
    player.show();
  }, (x) => {
    const middle = day.toTime(x);
    span.show(middle - span.length / 2, middle + span.length / 2);
    player.show();
  });
  canvas.addEventListener("pointermove", (event) => {
    const cursors = { from: "ew-resize", to: "ew-resize", all: "grab" };
    canvas.style.cursor = cursors[day.findHandle(event.offsetX)] ?? "crosshair";
  });
  canvas.addEventListener("dblclick", () => player.zoom("whole"));
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
    i: () => player.zoom("in"), o: () => player.zoom("out"), 0: () => player.zoom("whole"),
    h: () => player.zoom("earlier"), l: () => player.zoom("later"),
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
    for (const button of panel.root.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => player.zoom(button.dataset.zoom));
    }
    panel.part("details").addEventListener("toggle", () => panel.writeVehicles(player.time));
  }
  window.addEventListener("resize", () => player.resize());
}

function start() {
  const episode = readEpisode(find("episode").textContent), player = new Player(episode);
  const names = episode.runs.map((run) => run.label).join(" beside ");
  document.title = `${episode.name}: ${names}`;
  setText(find("title"), `${episode.name}: ${names}`);
  setText(find("subtitle"), `${formatNumber(episode.tasks.length)} tasks, ${episode.vehicles.length} vehicles, ` +
    `${episode.sites.length} sites on floor ${episode.layout}`);
  find("time").max = String(episode.end);
  for (const speed of SPEEDS) find("speed").add(new Option(`${formatNumber(speed)}×`, String(speed)));
  player.setSpeed(player.speed);
  listen(player);
  followTheme(() => player.resize());
  player.resize();
  return player;
}
