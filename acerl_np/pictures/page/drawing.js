/* Marks, and the picture of the floor. What never moves is drawn once, in a layer. */

const FONT = "12px system-ui, sans-serif", SMALL_FONT = "11px system-ui, sans-serif";
const COLOURS = ["ink", "muted", "line", "panel", "fetch", "load", "on-load", "alarm", "on-alarm", "mark",
  "control", "charge", "handed"];

/** Most vehicles whose names stand beside them; those of others show under the pointer. */
const NAMED_VEHICLES = 12;
/** Most boxes of waiting tasks beside a site. */
const PILE = 4;
/** Most vehicles at one place that are drawn one by one. */
const TALL = 4;
/** Letters of the longest name that is shown whole. */
const LONGEST_NAME = 40;
/** Least distance between sites that leaves room for the names of all of them, px. */
const NAME_ROOM = 32;
/** Least distance between sites that leaves room for the number of further tasks, px. */
const COUNT_ROOM = 24;
/** States in which a vehicle is no arrow. */
const STANDING = [IDLE, LOADED, BROKEN, PARKED, QUEUED, CHARGING, OUT_OF_SERVICE];
const SITE_SHAPES = ["circle", "diamond", "square", "triangle", "cross"];

/** The theme's colours by name. */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** Give a canvas its size in CSS pixels; return its context, which counts in them. */
function sizeCanvas(canvas, width, height) {
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}

/** An unseen canvas of the same size, with its context. */
function makeLayer(width, height) {
  const canvas = document.createElement("canvas");
  return { canvas, context: sizeCanvas(canvas, width, height) };
}

function tracePolygon(context, points) {
  context.beginPath();
  for (const [x, y] of points) context.lineTo(x, y);
  context.closePath();
}

function traceSite(context, shape, x, y, r) {
  if (shape === "circle") {
    context.beginPath();
    context.arc(x, y, r, 0, 2 * Math.PI);
  } else if (shape === "square") {
    tracePolygon(context, [[x - r, y - r], [x + r, y - r], [x + r, y + r], [x - r, y + r]]);
  } else if (shape === "diamond") {
    tracePolygon(context, [[x - 1.3 * r, y], [x, y - 1.3 * r], [x + 1.3 * r, y], [x, y + 1.3 * r]]);
  } else if (shape === "triangle") {
    tracePolygon(context, [[x - 1.2 * r, y + r], [x, y - 1.2 * r], [x + 1.2 * r, y + r]]);
  } else {
    const a = 0.4 * r;
    tracePolygon(context, [
      [x - a, y - r], [x + a, y - r], [x + a, y - a], [x + r, y - a], [x + r, y + a], [x + a, y + a],
      [x + a, y + r], [x - a, y + r], [x - a, y + a], [x - r, y + a], [x - r, y - a], [x - a, y - a],
    ]);
  }
}

function drawSite(context, colours, shape, x, y, r) {
  traceSite(context, shape, x, y, r);
  context.fillStyle = colours.panel;
  context.fill();
  context.strokeStyle = colours.muted;
  context.lineWidth = 1.5;
  context.stroke();
}

/** A flash of lightning. */
function drawFlash(context, colour, x, y, r) {
  tracePolygon(context, [[0.3, -1], [-0.6, 0.2], [-0.1, 0.2], [-0.3, 1], [0.6, -0.2], [0.1, -0.2]].map(
    ([a, b]) => [x + a * r, y + b * r]));
  context.fillStyle = colour;
  context.fill();
}

/** The letter of a parking place. */
function drawPark(context, colour, x, y, r) {
  context.font = `bold ${Math.round(1.6 * r)}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.fillStyle = colour;
  context.fillText("P", x, y + 0.56 * r);
}

/** An arc around a vehicle, as long as its battery is full. */
function drawLevel(context, colour, level, x, y, r) {
  context.strokeStyle = colour;
  context.lineWidth = 3;
  context.beginPath();
  context.arc(x, y, r, -0.5 * Math.PI, (2 * level - 0.5) * Math.PI);
  context.stroke();
}

/** A charger, or a parking place. */
function drawBerth(context, colours, charges, x, y, r) {
  drawSite(context, colours, "square", x, y, r);
  if (charges) drawFlash(context, colours.charge, x, y, 0.9 * r);
  else drawPark(context, colours.muted, x, y, 0.9 * r);
}

/** A vehicle: a ring, an arrow, a parcel on a square, a cross in a disc, a dashed ring; told apart without colours. */
function drawVehicle(context, colours, state, x, y, r, angle) {
  context.lineWidth = 2;
  context.strokeStyle = colours.ink;
  if (state === TO_PICKUP || !STANDING.includes(state)) {
    const [c, s] = [r * Math.cos(angle), r * Math.sin(angle)];
    tracePolygon(context, [
      [x + 1.25 * c, y + 1.25 * s], [x - c - s, y - s + c], [x - 0.45 * c, y - 0.45 * s], [x - c + s, y - s - c],
    ]);
    context.fillStyle = state === TO_PICKUP ? colours.fetch : colours.panel;
  } else if (state === LOADED) {
    traceSite(context, "square", x, y, 0.95 * r);
    context.fillStyle = colours.load;
  } else {
    traceSite(context, "circle", x, y, r);
    context.fillStyle = state === BROKEN ? colours.alarm : colours.panel;
  }
  context.fill();
  if (state === OUT_OF_SERVICE) context.setLineDash([3, 3]);
  context.stroke();
  context.setLineDash([]);
  if (state === LOADED) {
    traceSite(context, "square", x, y, 0.4 * r);
    context.fillStyle = colours["on-load"];
    context.fill();
  } else if (state === BROKEN) {
    context.strokeStyle = colours["on-alarm"];
    const a = 0.45 * r;
    strokeLines(context, [[x - a, y - a, x + a, y + a], [x - a, y + a, x + a, y - a]]);
  } else if (state === CHARGING) {
    drawFlash(context, colours.charge, x, y, 0.8 * r);
  } else if (state === QUEUED) {
    const a = 0.4 * r;
    strokeLines(context, [[x - a, y - a, x + a, y - a], [x + a, y - a, x - a, y + a], [x - a, y + a, x + a, y + a], [x - a, y - a, x + a, y + a]]);
  } else if (state === PARKED) {
    drawPark(context, colours.ink, x, y, 0.8 * r);
  }
}

function strokeLines(context, lines) {
  context.beginPath();
  for (const [a, b, c, d] of lines) {
    context.moveTo(a, b);
    context.lineTo(c, d);
  }
  context.stroke();
}

/** A task at its pickup: a box; dashed if a vehicle is on its way to it, filled with "!" if late. */
function drawParcel(context, colours, { late, fetched }, x, y, r = 5) {
  context.fillStyle = late ? colours.alarm : colours.panel;
  context.fillRect(x - r, y - r, 2 * r, 2 * r);
  context.strokeStyle = colours.ink;
  context.lineWidth = 1.25;
  context.setLineDash(fetched ? [2, 2] : []);
  context.strokeRect(x - r, y - r, 2 * r, 2 * r);
  context.setLineDash([]);
  if (r < 4) return;
  if (late) {
    context.fillStyle = colours["on-alarm"];
    context.fillRect(x - 0.9, y - 3.5, 1.8, 4);
    context.fillRect(x - 0.9, y + 1.7, 1.8, 1.8);
  } else if (!fetched) {
    strokeLines(context, [[x - r, y - 1.5, x + r, y - 1.5]]);
  }
}

/** Text that stays readable on whatever is below it. */
function drawText(context, colours, text, x, y, colour = colours.ink) {
  context.strokeStyle = colours.panel;
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.strokeText(text, x, y);
  context.fillStyle = colour;
  context.fillText(text, x, y);
}

/** Shapes of the kinds of sites, the most frequent kind first; a floor of more kinds has one shape for all. */
function assignShapes(sites) {
  const counts = new Map();
  for (const { kind } of sites) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const kinds = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
  const few = kinds.length <= SITE_SHAPES.length;
  return new Map(kinds.map((kind, k) => [kind, SITE_SHAPES[few ? k : 0]]));
}

/** The usual distance of a point to its nearest neighbour, px: a median over at most 200 of them. */
function measureRoom(points) {
  const every = Math.ceil(points.length / 200);
  const nearest = points.filter((_, k) => k % every === 0).map(([x, y]) => points.reduce((least, [u, w]) => {
    const distance = Math.hypot(u - x, w - y);
    return distance > 0 && distance < least ? distance : least;
  }, 100));
  return nearest.sort((a, b) => a - b)[nearest.length >> 1];
}

/** The floor with its vehicles and waiting tasks. */
class FloorView {
  constructor(canvas, episode, run) {
    Object.assign(this, { canvas, episode, run });
    this.shapes = assignShapes(episode.sites);
    this.standing = new Map();
    this.vehicles = [];
  }

  /** Take up the room that there is, and draw what never moves. */
  resize(width, most, colours) {
    this.colours = colours;
    this.fit(width, most);
    this.context = sizeCanvas(this.canvas, width, this.height);
    this.layer = makeLayer(width, this.height);
    this.drawAxes(this.layer.context);
    this.drawEdges(this.layer.context);
    this.drawSites(this.layer.context);
  }

  fit(width, most) {
    const { sites } = this.episode;
    const x = sites.map((site) => site.x), y = sites.map((site) => site.y);
    const range = (values) => values.reduce(
      ([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
    const [left, right] = range(x), [low, high] = range(y);
    // Room for the axes, for names above and tasks below the outermost sites.
    const pad = { left: 58, right: 44, top: 30, bottom: 52 };
    const w = right - left || 1, h = high - low || 1;
    const inner = width - pad.left - pad.right;
    const tall = Math.min(most - pad.top - pad.bottom, Math.max(90, (inner * h) / w));
    this.scale = Math.min(inner / w, tall / h);
    this.width = width;
    this.height = Math.round(Math.max(190, this.scale * h + pad.top + pad.bottom));
    const dx = pad.left + (inner - this.scale * w) / 2;
    const dy = pad.top + (this.height - pad.top - pad.bottom - this.scale * h) / 2;
    // y grows upwards on the floor and downwards on the screen.
    this.toX = (value) => dx + (value - left) * this.scale;
    this.toY = (value) => dy + (high - value) * this.scale;
    this.bounds = { left, right, low, high };
    this.points = sites.map((site) => [this.toX(site.x), this.toY(site.y)]);
    this.room = measureRoom(this.points);
    this.isCrowded = this.room < NAME_ROOM;
    this.siteRadius = Math.max(2, Math.min(5, this.room / 10));
  }

  drawAxes(context) {
    const { left, right, low, high } = this.bounds;
    const bottom = this.height - 18;
    context.font = SMALL_FONT;
    context.fillStyle = this.colours.muted;
    context.strokeStyle = this.colours.line;
    context.lineWidth = 1;
    context.textAlign = "center";
    for (const x of chooseTicks(left, right, Math.max(2, this.width / 110))) {
      strokeLines(context, [[this.toX(x), bottom - 4, this.toX(x), bottom]]);
      context.fillText(formatNumber(x), this.toX(x), bottom + 12);
    }
    context.textAlign = "right";
    for (const y of chooseTicks(low, high, Math.max(2, this.height / 70))) {
      strokeLines(context, [[36, this.toY(y), 40, this.toY(y)]]);
      context.fillText(formatNumber(y), 33, this.toY(y) + 4);
    }
    strokeLines(context, [[40, bottom, this.width - 6, bottom], [40, 6, 40, bottom]]);
    context.fillText("y, m", 33, 14);
    context.fillText("x, m", this.width - 6, bottom - 6);
  }

  drawEdges(context) {
    context.strokeStyle = this.colours.line;
    context.lineWidth = this.episode.edges.length <= 200 ? 3 : 1.5;
    context.lineCap = "round";
    strokeLines(context, this.episode.edges.map(({ a, b }) => [...this.points[a], ...this.points[b]]));
    context.fillStyle = this.colours.muted;
    for (const { a, b, oneWay } of this.episode.edges) if (oneWay) this.drawArrow(context, a, b);
  }

  drawArrow(context, a, b) {
    const [x, y] = this.points[a], [u, w] = this.points[b];
    const length = Math.hypot(u - x, w - y);
    if (length < 14) return;
    const c = (u - x) / length, s = (w - y) / length;
    const m = x + 0.55 * (u - x), n = y + 0.55 * (w - y), r = Math.min(6, length / 5);
    tracePolygon(context, [
      [m + c * r, n + s * r], [m - r * (c + s), n - r * (s - c)], [m - r * (c - s), n - r * (s + c)],
    ]);
    context.fill();
  }

  drawSites(context) {
    const { sites } = this.episode;
    const r = this.siteRadius;
    const isStation = (k) => sites[k].use > 0 || sites[k].stations !== "";
    // Stations before all others, the busiest first.
    const order = sites.map((_, k) => k).sort((a, b) => sites[b].use - sites[a].use);
    for (const k of [...order].reverse()) {
      const own = this.isCrowded && isStation(k) ? r + 1.5 : r;
      drawSite(context, this.colours, this.shapes.get(sites[k].kind), ...this.points[k], own);
    }
    sites.forEach(({ slots, places }, k) => {
      if (slots + places > 0) drawBerth(context, this.colours, slots > 0, ...this.points[k], Math.max(7, r + 2));
    });
    context.font = this.room >= 45 ? FONT : SMALL_FONT;
    context.textAlign = "left";
    // On a crowded floor names hide way-points, but never stations, whose names alone are shown.
    const named = this.isCrowded ? order.filter(isStation) : order;
    const taken = named.map((k) => this.points[k]).map(([x, y]) => [x - r, y - r, x + r, y + r]);
    const texts = named.map((k) => cutText(sites[k].name, LONGEST_NAME));
    const places = named.map((k, n) => this.placeName(context.measureText(texts[n]).width, k, taken));
    const { colours } = this;
    named.forEach((k, n) => {
      if (places[n] === null) return;
      drawText(context, colours, texts[n], ...places[n], this.isCrowded ? colours.ink : colours.muted);
    });
  }

  /** Where a text of this width finds room beside its site; null if nowhere. */
  placeName(width, k, taken) {
    const rings = this.isCrowded ? [2, 9, 16, 23] : [2];
    const corners = rings.flatMap((gap) => {
      const r = this.siteRadius + gap, left = -width - r, above = -r - 2, below = r + 9;
      return [[r, above], [left, above], [-width / 2, above], [r, below], [left, below], [r, 4], [left, 4],
        [-width / 2, below + 2]];
    });
    return this.findPlace(corners, ...this.points[k], width, taken);
  }

  /** The first of the offsets from a point at which a text hides nothing; its box is then taken. */
  findPlace(offsets, x, y, width, taken) {
    for (const [dx, dy] of offsets) {
      const box = [x + dx - 1, y + dy - 10, x + dx + width + 1, y + dy + 3];
      const free = box[0] >= 42 && box[2] <= this.width && box[1] >= 0 && taken.every((other) =>
        box[0] >= other[2] || box[2] <= other[0] || box[1] >= other[3] || box[3] <= other[1]);
      if (free) {
        taken.push(box);
        return [x + dx, y + dy];
      }
    }
    return null;
  }

  draw(time, decision) {
    const { context } = this;
    context.clearRect(0, 0, this.width, this.height);
    context.drawImage(this.layer.canvas, 0, 0, this.width, this.height);
    this.standing = this.run.listStanding(time);
    this.vehicles = this.placeVehicles(time);
    if (decision !== null) this.drawDecision(decision);
    for (const [site, tasks] of this.standing) this.drawPile(...this.points[site], tasks);
    const r = this.radius();
    this.vehicles.forEach(({ state, x, y, angle }, v) => {
      drawVehicle(context, this.colours, state, x, y, r, angle);
      const level = this.run.findLevel(v, time), { capacity, critical } = this.episode.vehicles[v];
      if (level === null) return;
      drawLevel(context, this.colours.line, 1, x, y, r + 4);
      drawLevel(context, level * capacity < critical ? this.colours.alarm : this.colours.charge, level, x, y, r + 4);
    });
    this.nameVehicles();
  }

  /** Names beside the vehicles, where they hide no other vehicle and no other name. */
  nameVehicles() {
    const { context, episode } = this, r = this.outerRadius();
    context.font = "bold " + SMALL_FONT;
    context.textAlign = "left";
    const few = this.vehicles.length <= NAMED_VEHICLES;
    const taken = few ? this.vehicles.map(({ x, y }) => [x - r, y - r, x + r, y + r]) : [];
    this.vehicles.forEach(({ x, y, stack, first }, v) => {
      // Of a tall stack only the number is told, once.
      const text = stack > TALL ? `${stack} vehicles` : cutText(episode.vehicles[v].id, LONGEST_NAME);
      if (stack > TALL ? !first : !few) return;
      const { width } = context.measureText(text);
      const corners = [[r + 4, 4], [-width - r - 4, 4], [-width / 2, -r - 5]];
      const place = this.findPlace(corners, x, y, width, taken);
      if (place !== null) drawText(context, this.colours, text, ...place);
    });
  }

  radius() {
    const { length } = this.episode.vehicles;
    return Math.max(4, Math.min(length <= NAMED_VEHICLES ? 9 : 7, this.room / 3.5));
  }

  /** With the levels around them. */
  outerRadius() {
    return this.radius() + (this.episode.hasLevels ? 6 : 0);
  }

  /** Screen places of the vehicles; those that stand together are stacked. */
  placeVehicles(time) {
    const stacks = new Map();
    const vehicles = this.episode.vehicles.map((_, v) => {
      const { a, b, part } = this.run.locate(v, time), { state } = this.run.findState(v, time);
      const [p, q] = this.points[a], [u, w] = this.points[b];
      const x = p + part * (u - p), y = q + part * (w - q);
      const vehicle = { state, x, y, angle: Math.atan2(w - q, u - p), stack: 1, first: true };
      if (state !== LOADED && STANDING.includes(state)) {
        const key = `${Math.round(x)} ${Math.round(y)}`;
        if (!stacks.has(key)) stacks.set(key, []);
        stacks.get(key).push(vehicle);
      }
      return vehicle;
    });
    for (const stack of stacks.values()) this.stackUp(stack);
    return vehicles;
  }

  /** Put vehicles that stand at one place above each other, or below if the picture ends there. */
  stackUp(stack) {
    const tall = stack.length > TALL, step = tall ? Math.min(4, 40 / stack.length) : 2 * this.outerRadius() + 3;
    stack.forEach((vehicle, k) => {
      vehicle.stack = stack.length;
      vehicle.first = k === 0;
      vehicle.y += (vehicle.y > this.height / 2 ? -1 : 1) * k * step;
    });
  }

  /** The tasks at a site: as many boxes as there is room for, and how many more there are. */
  drawPile(x, y, tasks) {
    const { context } = this, r = Math.max(2, Math.min(5, this.room / 5)), top = y + this.siteRadius + r + 2;
    const most = Math.max(1, Math.min(PILE, Math.floor(this.room / 20)));
    const shown = tasks.length <= most ? tasks.length : Math.max(1, most - 1);
    // Late ones first: a pile shows few.
    const ordered = [...tasks].sort((a, b) => b.late - a.late);
    const left = x - 6.5 * (Math.min(tasks.length, most) - 1);
    for (let k = 0; k < shown; k++) drawParcel(context, this.colours, ordered[k], left + 13 * k, top, r);
    if (shown < tasks.length && this.room >= COUNT_ROOM) {
      context.font = "bold " + SMALL_FONT;
      context.textAlign = "left";
      drawText(context, this.colours, `+${tasks.length - shown}`, left + 13 * shown - 6, top + 4);
    }
  }

  /** A ring around the vehicle of a decision, and a line to the task that it takes. */
  drawDecision({ vehicle, task }) {
    const { context } = this;
    if (vehicle < 0) return;
    const { x, y } = this.vehicles[vehicle], [u, w] = this.points[this.episode.tasks[task].pickup];
    context.strokeStyle = this.colours.mark;
    context.lineWidth = 2.5;
    context.setLineDash([6, 4]);
    strokeLines(context, [[x, y, u, w]]);
    context.setLineDash([]);
    for (const [a, b] of [[x, y], [u, w]]) {
      traceSite(context, "circle", a, b, this.radius() + 6);
      context.stroke();
    }
  }

  /** What is at a point of the screen, in words; null if nothing is near. */
  describePoint(x, y, time) {
    const near = (points, reach) => {
      const distances = points.map(([u, w]) => Math.hypot(u - x, w - y));
      const least = distances.reduce((best, value, k) => (value < distances[best] ? k : best), 0);
      return distances[least] <= reach ? least : -1;
    };
    const v = near(this.vehicles.map((vehicle) => [vehicle.x, vehicle.y]), 12);
    if (v >= 0) return describeVehicle(this.episode, this.run, v, time);
    const k = near(this.points, 14);
    if (k < 0) return null;
    const site = this.episode.sites[k];
    const own = site.name === site.id ? site.id : `${site.name}: ${site.id}`;
    const lines = [site.kind ? `${own} (${site.kind})` : own, `x ${site.x} m, y ${site.y} m`];
    if (site.slots > 0) lines.push(`${site.slots} may charge here`);
    if (site.places > 0) lines.push(`${site.places} may park here`);
    for (const { task, late, fetched } of (this.standing.get(k) ?? []).slice(0, 6)) {
      const state = [fetched ? "a vehicle is on its way" : "waits", ...(late ? ["late"] : [])].join(", ");
      lines.push(`${this.episode.tasks[task].id}: ${state}`);
    }
    return lines.join("\n");
  }
}
