/* Vehicles that meet: what the page of such a floor has besides. */

Run = class extends Run {
  constructor(data, episode) {
    super(data, episode);
    const waits = data.waits.map(([vehicle, start, end, site, ahead, holder]) => ({ vehicle, start, end, site, ahead, holder }));
    this.waits = groupBy(waits, "vehicle", episode.vehicles.length);
    // Seconds waited at each site, and before each lane, over the whole episode.
    this.waited = { sites: new Map(), lanes: new Map() };
    const add = (map, key, seconds) => map.set(key, (map.get(key) ?? 0) + seconds);
    for (const { start, end, site, ahead } of waits) {
      add(this.waited.sites, site, end - start);
      add(this.waited.lanes, [site, ahead].sort((a, b) => a - b).join(), end - start);
    }
  }

  /** For what a vehicle waits at a moment; undefined if it does not. */
  findWait(v, time) {
    return this.waits[v].find(({ start, end }) => start <= time && time < end);
  }
};

/** The most seconds waited at a site or before a lane, of all runs, which share their scale. */
function findMostWaited({ runs }) {
  const all = runs.flatMap(({ waited }) => [...waited.sites.values(), ...waited.lanes.values()]);
  return all.reduce((most, value) => Math.max(most, value), 0);
}

FloorView = class extends FloorView {
  /** Below edges and sites how long vehicles waited. */
  drawEdges(context) {
    const { sites, lanes } = this.run.waited, most = findMostWaited(this.episode);
    for (const [key, seconds] of lanes) {
      drawHeat(context, this.colours, seconds / most, key.split(",").map((k) => this.points[k]));
    }
    for (const [site, seconds] of sites) drawHeat(context, this.colours, seconds / most, [this.points[site]]);
    super.drawEdges(context);
  }

  /** All that stand at a place are stacked, and who waits there looks ahead. */
  placeVehicles(time) {
    const vehicles = super.placeVehicles(time), places = new Map();
    vehicles.forEach((vehicle, v) => {
      const { a, b } = this.run.locate(v, time), wait = vehicle.wait = this.run.findWait(v, time);
      if (a !== b) return;
      const [x, y] = this.points[a], [p, q] = this.points[wait?.ahead ?? a];
      Object.assign(vehicle, { x, y, stack: 1, first: true, angle: Math.atan2(q - y, p - x) });
      places.set(a, [...(places.get(a) ?? []), vehicle]);
    });
    for (const group of places.values()) if (group.length > 1) this.stackUp(group);
    return vehicles;
  }

  draw(time, decision) {
    super.draw(time, decision);
    const { context, colours, vehicles } = this, r = this.outerRadius();
    for (const { x, y, wait } of vehicles) if (wait) drawWaiting(context, colours, x, y, r, vehicles[wait.holder]);
  }
};

GanttView = class extends GanttView {
  drawLayer(context) {
    super.drawLayer(context);
    this.run.waits.forEach((waits, v) => this.clip(context, () => {
      for (const wait of waits) this.drawWait(context, wait, v * this.row + 4);
    }));
  }

  /** A strip below the bars. */
  drawWait(context, { start, end }, y) {
    context.fillStyle = this.colours.ink;
    context.fillRect(this.toX(start), y + 0.88 * this.row, this.toX(end) - this.toX(start), Math.max(1, 0.1 * this.row));
  }

  describePoint(x, y) {
    const text = super.describePoint(x, y), v = Math.floor((y - 4) / this.row);
    const wait = text === null ? undefined : this.run.waits[v]?.find(({ start, end }) => start <= this.toTime(x) && this.toTime(x) < end);
    return wait === undefined ? text : `${text}\n${describeWait(this.episode, wait)}`;
  }
};

Panel = class extends Panel {
  describe(time) {
    const n = this.run.waits.filter((_, v) => this.run.findWait(v, time)).length;
    return `${super.describe(time)}; ${n === 0 ? "nobody waits" : n === 1 ? "1 waits" : `${n} wait`} for others`;
  }
};

function describeWait({ sites, vehicles }, { site, ahead, holder }) {
  return `waits ${holder < 0 ? "" : `for ${vehicles[holder].id} `}at ${sites[site].id}, next ${sites[ahead].id}`;
}

const describeFreePlace = describePlace;
describePlace = (episode, run, v, time) => {
  const wait = run.findWait(v, time);
  return wait === undefined ? describeFreePlace(episode, run, v, time) : describeWait(episode, wait);
};

/** Warmer and wider the longer vehicles waited: a disc, or a line between two points. */
function drawHeat(context, colours, share, [[x, y], [u, w] = [x, y]]) {
  context.globalAlpha = 0.25 + 0.6 * share;
  context.strokeStyle = colours.fetch;
  context.lineCap = "round";
  context.lineWidth = (x === u && y === w ? 14 : 6) + 16 * Math.sqrt(share);
  strokeLines(context, [[x, y, u, w]]);
  context.globalAlpha = 1;
}

/** Two bars beside a vehicle that waits, and dots to whom it waits for. */
function drawWaiting(context, colours, x, y, r, holder) {
  context.strokeStyle = context.fillStyle = colours.ink;
  context.lineWidth = 1.5;
  context.setLineDash([1.5, 4]);
  if (holder !== undefined) strokeLines(context, [[x, y, holder.x, holder.y]]);
  context.setLineDash([]);
  const [a, b] = [x + r, y - r];
  traceSite(context, "circle", a, b, 6);
  context.fillStyle = colours.panel;
  context.fill();
  context.stroke();
  context.lineWidth = 2;
  strokeLines(context, [[a - 1.8, b - 2.6, a - 1.8, b + 2.6], [a + 1.8, b - 2.6, a + 1.8, b + 2.6]]);
}

const drawFreeBars = drawBars;
drawBars = (episode, colours) => {
  drawFreeBars(episode, colours);
  const chart = Object.assign(Object.create(GanttView.prototype), { colours, row: 20, left: 0, right: 44, span: new Span(44) });
  addMark("waits for the vehicle at the end of the dots", 40, (context) => {
    drawVehicle(context, colours, TO_PICKUP, 10, 12, 7, 0);
    drawWaiting(context, colours, 10, 12, 7, { x: 40, y: 12 });
  });
  addMark("waits for another vehicle", 44, (context) => chart.drawWait(context, { start: 0, end: 44 }, 0));
  addMark(`waited at a site, or there for a lane, in the whole episode: at most ${formatNumber(findMostWaited(episode))} s`, 60, (context) => {
    [0.05, 0.4, 1].forEach((share, k) => drawHeat(context, colours, share, [[10 + 19 * k, 10]]));
  });
};
