/* Tasks that follow others, and machines: what the page of such a record has besides. */

/** At the pickup of a task that is not ready; a vehicle that stands has no direction. */
const READYING = "waits until the task is ready";
STANDING.push(READYING);

/** Times of tasks and of machines are those of a run. */
Run = class extends Run {
  constructor(data, episode) {
    // Before it is ready a task counts from when a vehicle was first given it.
    super(data, { ...episode, tasks: episode.tasks.map((task, k) => {
      const [from, due, after] = data.jobs[k];
      return { ...task, arrival: from ?? Infinity, due: due ?? Infinity, after };
    }) });
    data.trips.filter((trip) => trip !== null).forEach((trip, k) => { this.trips[k].pause = trip[5] ?? 0; });
    this.machines = data.machines.map(([site, work]) => ({
      site, work: work.map(([task, queued, start, end]) => ({ task, queued, start, end })),
    }));
    // Rows of the chart below those of the vehicles.
    this.fleet.push(...this.machines.map(() => ({ trips: [], errands: [], stops: [] })));
  }

  findState(v, time) {
    const { state, trip } = super.findState(v, time);
    const stands = state === TO_PICKUP && time >= (trip.pickup ?? trip.end) - trip.pause;
    return { state: stands ? READYING : state, trip };
  }

  /** What a machine's server works at, and what waits for it. */
  findWork({ work }, time) {
    return {
      now: work.find(({ start, end }) => start <= time && time < end),
      queue: work.filter(({ queued, start }) => queued <= time && time < start),
    };
  }

  describeWork(machine, time) {
    const { now, queue } = this.findWork(machine, time), name = ({ task }) => this.tasks[task].id;
    return (now === undefined ? "processes nothing" : `processes ${name(now)} until ${formatNumber(now.end)} s`) +
      (queue.length > 0 ? `, in the queue: ${queue.map(name).join(", ")}` : "");
  }
};

FloorView = class extends FloorView {
  drawSites(context) {
    super.drawSites(context);
    const own = new Set(this.run.machines.map(({ site }) => site));
    for (const site of own) drawMachine(context, this.colours, ...this.points[site], Math.max(7, this.siteRadius + 2));
  }

  draw(time, decision) {
    super.draw(time, decision);
    const rows = new Map();
    for (const machine of this.run.machines) {
      const { now, queue } = this.run.findWork(machine, time), all = rows.get(machine.site) ?? [];
      rows.set(machine.site, [...all, ...(now === undefined ? [] : [true]), ...queue.map(() => false)]);
    }
    for (const [site, items] of rows) this.drawWork(...this.points[site], items.sort((a, b) => b - a));
  }

  /** Above a machine a box for each task, filled while it is processed. */
  drawWork(x, y, items) {
    const { context, colours } = this, shown = items.slice(0, PILE), left = x - 4.5 * (shown.length - 1);
    const top = y - Math.max(7, this.siteRadius + 2) - 10;
    shown.forEach((works, k) => drawWorkpiece(context, colours, works, left + 9 * k, top));
    if (items.length === shown.length) return;
    context.font = "bold " + SMALL_FONT;
    context.textAlign = "left";
    drawText(context, colours, `+${items.length - shown.length}`, left + 9 * shown.length - 3, top + 4);
  }

  describePoint(x, y, time) {
    const text = super.describePoint(x, y, time);
    if (text === null) return null;
    const near = this.run.machines.filter(({ site }) =>
      text.startsWith(this.episode.sites[site].name) && Math.hypot(this.points[site][0] - x, this.points[site][1] - y) <= 14);
    return [text, ...near.map((machine) => this.run.describeWork(machine, time))].join("\n");
  }
};

GanttView = class extends GanttView {
  constructor(canvas, episode, run, span) {
    const rows = run.machines.map(({ site }) => ({ id: episode.sites[site].name }));
    super(canvas, { ...episode, vehicles: [...episode.vehicles, ...rows] }, run, span);
    this.first = episode.vehicles.length;
  }

  drawLayer(context) {
    super.drawLayer(context);
    this.run.machines.forEach(({ work }, k) => this.clip(context, () => {
      for (const item of work) this.drawProcessing(context, item, (this.first + k) * this.row + 4);
    }));
  }

  /** Hollow dots where the vehicle stands and the task is not ready. */
  drawTrip(context, trip, y) {
    super.drawTrip(context, trip, y);
    if (!trip.pause) return;
    const end = trip.pickup ?? trip.end, x = this.toX(end - trip.pause), { row, colours } = this;
    context.fillStyle = colours.panel;
    context.fillRect(x, y + 0.36 * row, this.toX(end) - x, 0.28 * row);
    context.strokeStyle = colours.ink;
    context.setLineDash([1, 2]);
    context.strokeRect(x + 0.5, y + 0.36 * row, this.toX(end) - x - 1, 0.28 * row);
    context.setLineDash([]);
  }

  /** A bar while a task is processed, a thin line below from when it joined the queue. */
  drawProcessing(context, { task, queued, start, end }, y) {
    const { colours, row } = this, x = this.toX(start), width = Math.max(1, this.toX(end) - x - 1);
    context.fillStyle = colours.mark;
    context.fillRect(this.toX(queued), y + 0.9 * row, x - this.toX(queued), Math.max(1, 0.08 * row));
    if (end <= start) return;
    context.fillRect(x, y + 0.2 * row, width, 0.6 * row);
    const begin = Math.max(x, this.left), name = this.episode.tasks[task].id;
    if (row < 18 || context.measureText(name).width > Math.min(x + width, this.right) - begin - 4) return;
    context.fillStyle = colours["on-load"];
    context.textAlign = "left";
    context.fillText(name, begin + 3, y + row / 2 + 4);
  }

  describePoint(x, y) {
    const v = Math.floor((y - 4) / this.row), machine = this.run.machines[v - this.first];
    if (machine === undefined || x < this.left) {
      const text = super.describePoint(x, y), trip = text === null ? null : this.run.findState(v, this.toTime(x)).trip;
      const after = trip === null ? -1 : this.run.tasks[trip.task].after;
      return after < 0 ? text : `${text}\nfollows ${this.run.tasks[after].id}`;
    }
    return `${this.episode.vehicles[v].id}: ${this.run.describeWork(machine, this.toTime(x))}`;
  }
};

Panel = class extends Panel {
  constructor(episode, run, place, span) {
    super({ ...episode, tasks: run.tasks }, run, place, span);
  }

  describe(time) {
    const own = this.run.machines.map((machine) =>
      `${this.nameSite(machine.site)}: ${this.run.describeWork(machine, time)}`);
    return [super.describe(time), ...own].join("; ");
  }
};

/** A machine at its site: a square in a square. */
function drawMachine(context, colours, x, y, r) {
  drawSite(context, colours, "square", x, y, r);
  traceSite(context, "square", x, y, 0.4 * r);
  context.fillStyle = colours.mark;
  context.fill();
}

/** A task at a machine: filled while it is processed, hollow in the queue. */
function drawWorkpiece(context, colours, works, x, y) {
  traceSite(context, "square", x, y, 3);
  context.fillStyle = works ? colours.mark : colours.panel;
  context.fill();
  context.strokeStyle = colours.mark;
  context.lineWidth = 1.5;
  context.stroke();
}

const drawPlainBars = drawBars;
drawBars = (episode, colours) => {
  drawPlainBars(episode, colours);
  const chart = Object.assign(Object.create(GanttView.prototype), { colours, row: 20, left: 0, right: 44 });
  Object.assign(chart, { span: new Span(44), episode: { tasks: [{ id: "wider than its bar" }] } });
  if (episode.runs.some((run) => run.trips.some(({ pause }) => pause > 0))) {
    addMark(READYING, 44, (context) =>
      chart.drawTrip(context, { start: 0, end: 44, pickup: 44, delivered: true, recall: null, pause: 44 }, 0));
  }
  if (episode.runs.every(({ machines }) => machines.length === 0)) return;
  addMark("machine", 18, (context) => drawMachine(context, colours, 9, 10, 7));
  addMark("task in its queue", 12, (context) => drawWorkpiece(context, colours, false, 6, 10));
  addMark("task in process", 12, (context) => drawWorkpiece(context, colours, true, 6, 10));
  addMark("processing", 44, (context) => chart.drawProcessing(context, { task: 0, queued: 0, start: 0, end: 44 }, 0));
  addMark("a task in the queue", 44, (context) => chart.drawProcessing(context, { task: 0, queued: 0, start: 44, end: 44 }, 0));
};
