/* What happened over time, all on one axis: the chart of the vehicles, curves of tasks, and the whole day. */

/** Shortest time that fills the charts, s. */
const LEAST_SPAN = 30;
const CURVE_HEIGHT = 84, DAY_HEIGHT = 34;

/** The part of the episode that the charts show, the same in all runs; s. */
class Span {
  constructor(end) {
    this.end = end;
    this.show(0, end);
  }

  get length() {
    return this.to - this.from;
  }

  get isWhole() {
    return this.length >= this.end;
  }

  /** Show this part, or one as long inside the episode. */
  show(from, to) {
    const length = Math.min(this.end, Math.max(LEAST_SPAN, to - from));
    this.from = Math.min(Math.max(0, from), this.end - length);
    this.to = this.from + length;
  }

  move(by) {
    this.show(this.from + by, this.to + by);
  }

  /** Show `factor` as much, a moment staying where it is. */
  zoom(factor, moment) {
    const length = Math.min(this.end, Math.max(LEAST_SPAN, factor * this.length));
    const share = (moment - this.from) / this.length;
    this.show(moment - share * length, moment + (1 - share) * length);
  }

  /** Turn over to where a moment is, if it is out of sight. */
  follow(time) {
    if (time < this.from || time > this.to) this.show(time - 0.1 * this.length, time + 0.9 * this.length);
  }
}

/** A picture over time; `draw` draws again what has changed only when the span has. */
class TimeView {
  constructor(canvas, episode, run, span) {
    Object.assign(this, { canvas, episode, run, span });
  }

  /** Take up a width; names stand left of `left`, px. */
  fit(width, height, left, colours) {
    Object.assign(this, { width, height, left, colours, right: width - 10, drawn: "" });
    this.context = sizeCanvas(this.canvas, width, height);
    this.layer = makeLayer(width, height);
    this.layer.context.font = SMALL_FONT;
  }

  toX(time) {
    return this.left + ((time - this.span.from) / this.span.length) * (this.right - this.left);
  }

  toTime(x) {
    const share = (x - this.left) / (this.right - this.left);
    return this.span.from + Math.min(1, Math.max(0, share)) * this.span.length;
  }

  draw(time) {
    const { context, span } = this, key = `${span.from} ${span.to}`;
    if (this.drawn !== key) {
      this.drawn = key;
      this.layer.context.clearRect(0, 0, this.width, this.height);
      this.drawLayer(this.layer.context);
    }
    context.clearRect(0, 0, this.width, this.height);
    context.drawImage(this.layer.canvas, 0, 0, this.width, this.height);
    if (time < span.from || time > span.to) return;
    context.strokeStyle = this.colours.mark;
    context.lineWidth = 2;
    strokeLines(context, [[this.toX(time), 0, this.toX(time), this.bottom]]);
  }

  /** Where lines of the scale end, px. */
  get bottom() {
    return this.height;
  }

  /** Even moments, as lines. */
  drawScale(context) {
    context.strokeStyle = this.colours.line;
    context.lineWidth = 1;
    strokeLines(context, this.listTimes().map((time) => [this.toX(time), 2, this.toX(time), this.bottom]));
  }

  /** The moments of the scale in words, below it. */
  drawTimes(context) {
    context.textAlign = "center";
    context.fillStyle = this.colours.muted;
    for (const time of this.listTimes()) {
      const text = formatTick(this.episode, time), half = context.measureText(text).width / 2;
      // Near the ends the text would leave the picture.
      context.fillText(text, Math.min(Math.max(this.toX(time), half), this.width - half), this.bottom + 14);
    }
  }

  listTimes() {
    const room = this.episode.epoch === null ? 80 : 100;
    return chooseTimes(this.episode, this.span.from, this.span.to, (this.right - this.left) / room);
  }

  /** Draw only between the ends of the axis. */
  clip(context, draw) {
    context.save();
    context.beginPath();
    context.rect(this.left, 0, this.right - this.left, this.height);
    context.clip();
    draw();
    context.restore();
  }

  /** A count over time as a line of steps, closed to an area above `bottom` if `fill` is a colour. */
  drawSteps(context, { times, counts }, toY, { stroke, fill }) {
    const first = Math.max(0, findLast(times, this.span.from));
    const last = Math.max(0, findLast(times, this.span.to)), end = Math.min(this.span.to, this.run.end);
    context.beginPath();
    for (let k = first; k <= last; k++) {
      if (k > first) context.lineTo(this.toX(times[k]), toY(counts[k - 1]));
      context.lineTo(this.toX(times[k]), toY(counts[k]));
    }
    context.lineTo(this.toX(end), toY(counts[last]));
    if (stroke !== undefined) {
      context.strokeStyle = stroke;
      context.lineWidth = 1.5;
      context.stroke();
    }
    if (fill === undefined) return;
    context.lineTo(this.toX(end), toY(0));
    context.lineTo(this.toX(times[first]), toY(0));
    context.fillStyle = fill;
    context.fill();
  }

  drawCurves(context, toY) {
    const { waiting, late } = this.run.curves, { colours } = this;
    this.clip(context, () => {
      this.drawSteps(context, waiting, toY, { fill: colours.control });
      this.drawSteps(context, late, toY, { fill: colours.alarm });
      this.drawSteps(context, waiting, toY, { stroke: colours.ink });
    });
  }
}

/** How many tasks wait and how many are late and not delivered, on the chart's axis. */
class CurveView extends TimeView {
  drawLayer(context) {
    const { colours } = this, { most } = this.episode, base = this.bottom - 4;
    const toY = (count) => base - (count / most) * (base - 8);
    this.clip(context, () => this.drawHanded(context));
    this.drawScale(context);
    context.fillStyle = colours.muted;
    context.textAlign = "right";
    const ticks = chooseTicks(0, most, 3).filter(Number.isInteger);
    for (const count of ticks) {
      context.fillText(formatNumber(count), this.left - 6, Math.min(base, Math.max(10, toY(count) + 4)));
    }
    strokeLines(context, ticks.map((count) => [this.left, toY(count), this.right, toY(count)]));
    context.textAlign = "left";
    this.drawCurves(context, toY);
  }

  /** A band where a yardstick decided in the policy's place. */
  drawHanded(context) {
    context.fillStyle = this.colours.handed;
    for (const { start, end } of this.run.handed) {
      context.fillRect(this.toX(start), 0, Math.max(1, this.toX(end) - this.toX(start)), this.height);
    }
  }

  describe() {
    const words = Object.entries(this.run.curves).map(([name, { times, counts }]) => {
      const peak = counts.reduce((best, value, k) => (value > counts[best] ? k : best), 0);
      return `at most ${formatNumber(counts[peak])} ${name}, at ${formatNumber(times[peak])} s`;
    });
    for (const { start, end, by } of this.run.handed) words.push(`${by} decides from ${formatNumber(start)} to ${formatNumber(end)} s`);
    return `Curves of tasks over ${formatNumber(this.run.end)} s: ${words.join("; ")}`;
  }

  describePoint(x) {
    if (x < this.left || x > this.right) return null;
    const time = this.toTime(x), { waiting, late } = this.run.curves;
    const count = ({ times, counts }) => formatNumber(counts[Math.max(0, findLast(times, time))]);
    const handed = this.run.handed.find(({ start, end }) => start <= time && time < end);
    return `${formatClock(this.episode, time)}\n${count(waiting)} waiting\n${count(late)} late, not delivered` +
      (handed === undefined ? "" : `\n${handed.by} decides`);
  }
}

/** The whole episode in small, and which part of it the charts show; that is drawn and moved here. */
class DayView extends TimeView {
  constructor(canvas, episode, run, shown) {
    super(canvas, episode, run, new Span(episode.end));
    this.shown = shown;
  }

  drawLayer(context) {
    const base = this.height - 2;
    this.drawCurves(context, (count) => base - (count / this.episode.most) * (base - 4));
  }

  draw(time) {
    super.draw(time);
    const { context, colours, height, shown } = this;
    const [a, b] = [this.toX(shown.from), this.toX(shown.to)];
    context.globalAlpha = 0.6;
    context.fillStyle = colours.line;
    context.fillRect(this.left, 0, a - this.left, height);
    context.fillRect(b, 0, this.right - b, height);
    context.globalAlpha = 1;
    context.strokeStyle = colours.muted;
    context.lineWidth = 1.5;
    context.strokeRect(a, 1, b - a, height - 2);
    context.fillStyle = colours.muted;
    for (const x of [a, b]) context.fillRect(x - 3, height / 2 - 8, 6, 16);
  }

  /** What a pointer that goes down here moves: an end of the shown part, or all of it; null draws a new one. */
  findHandle(x) {
    const { from, to, isWhole } = this.shown;
    const distances = [Math.abs(x - this.toX(from)), Math.abs(x - this.toX(to))];
    if (Math.min(...distances) <= 8) return distances[0] < distances[1] ? "from" : "to";
    return !isWhole && x > this.toX(from) && x < this.toX(to) ? "all" : null;
  }

  describePoint(x) {
    return x < this.left || x > this.right ? null
      : `${formatClock(this.episode, this.toTime(x))}\ndrag: show a part of the day; twice: the whole`;
  }
}

/** A row per vehicle, time from left to right. */
class GanttView extends TimeView {
  resize(width, colours) {
    const n = this.episode.vehicles.length, { context } = this.layer ?? makeLayer(1, 1);
    this.row = n <= 8 ? 26 : n <= 40 ? 18 : n <= 200 ? 12 : 6;
    context.font = SMALL_FONT;
    const names = this.episode.vehicles.map(({ id }) => context.measureText(cutText(id, LONGEST_NAME)).width);
    // Room for the counts of the curves, too.
    const longest = names.reduce((most, value) => Math.max(most, value), 34);
    this.fit(width, n * this.row + 34, Math.min(0.3 * width, 10 + longest), colours);
  }

  get bottom() {
    return this.height - 22;
  }

  drawLayer(context) {
    this.drawScale(context);
    this.drawTimes(context);
    const { from, to } = this.span, isSeen = ({ start, end }) => end >= from && start <= to;
    this.episode.vehicles.forEach(({ id }, v) => {
      const y = v * this.row + 4;
      if (this.row >= 12) {
        context.fillStyle = this.colours.ink;
        context.textAlign = "right";
        // A long name is pressed together.
        const name = cutText(id, LONGEST_NAME);
        context.fillText(name, this.left - 6, y + this.row / 2 + 4, this.left - 8);
      }
      const { trips, errands, stops } = this.run.fleet[v];
      this.clip(context, () => {
        this.drawIdle(context, this.run.end, y);
        for (const trip of trips.filter(isSeen)) this.drawTrip(context, trip, y);
        for (const errand of errands.filter(isSeen)) this.drawErrand(context, errand, y);
        for (const stop of stops.filter(isSeen)) this.drawStop(context, stop, y);
      });
    });
  }

  /** The line below all bars. */
  drawIdle(context, end, y) {
    context.strokeStyle = this.colours.muted;
    context.lineWidth = 1.5;
    strokeLines(context, [[this.toX(0), y + this.row / 2, this.toX(end), y + this.row / 2]]);
  }

  drawTrip(context, trip, y) {
    const { colours, row } = this, x = this.toX(trip.start), end = this.toX(trip.end);
    const loaded = trip.pickup === null ? end : this.toX(trip.pickup);
    context.lineWidth = 1;
    context.fillStyle = colours.fetch;
    context.fillRect(x, y + 0.36 * row, loaded - x, 0.28 * row);
    if (row >= 12 && loaded - x > 3) {
      context.strokeStyle = colours.ink;
      context.strokeRect(x + 0.5, y + 0.36 * row, loaded - x - 1, 0.28 * row);
    }
    if (loaded < end) this.drawLoaded(context, trip, loaded, end, y);
    if (trip.recall !== null) this.drawRecall(context, end, y);
    else if (!trip.delivered) this.drawUndone(context, end, y);
  }

  /** A bar of charging, a row of strokes in a queue, a hollow bar on the way. */
  drawErrand(context, { state, start, end }, y) {
    const { colours, row } = this, x = this.toX(start), width = Math.max(1, this.toX(end) - x);
    context.lineWidth = 1;
    if (state === CHARGING) {
      context.fillStyle = colours.charge;
      context.fillRect(x, y + 0.12 * row, width, 0.76 * row);
      return;
    }
    context.fillStyle = colours.panel;
    context.fillRect(x, y + 0.36 * row, width, 0.28 * row);
    context.strokeStyle = state === QUEUED ? colours.charge : colours.ink;
    context.setLineDash(state === QUEUED ? [2, 2] : []);
    context.strokeRect(x + 0.5, y + 0.36 * row, width - 1, 0.28 * row);
    context.setLineDash([]);
  }

  /** A diamond where a vehicle was called back. */
  drawRecall(context, x, y) {
    traceSite(context, "diamond", x, y + this.row / 2, Math.min(4, this.row / 5));
    context.fillStyle = this.colours.mark;
    context.fill();
  }

  drawLoaded(context, trip, x, end, y) {
    const { colours, row } = this, height = 0.76 * row, top = y + 0.12 * row;
    context.fillStyle = colours.load;
    // A gap to the next bar, where there is room.
    const width = Math.max(1, end - x - (end - x > 4 ? 1 : 0));
    context.fillRect(x, top, width, height);
    const late = trip.delivered && this.run.findLateness(trip.task, Infinity) > 0;
    if (late) this.drawLate(context, x, width, top, height);
    // In that part of the bar that is seen.
    const begin = Math.max(x, this.left), room = Math.min(x + width, this.right) - begin - (late ? 12 : 4);
    const name = this.episode.tasks[trip.task].id;
    if (row >= 18 && context.measureText(name).width <= room) {
      context.fillStyle = colours["on-load"];
      context.textAlign = "left";
      context.fillText(name, begin + 3, y + row / 2 + 4);
    }
  }

  /** A bar's end, cut off aslant and filled: late. */
  drawLate(context, x, width, top, height) {
    const end = x + width, r = Math.min(0.6 * height, 10, 0.6 * width);
    context.fillStyle = this.colours.alarm;
    tracePolygon(context, [[end - r, top], [end, top], [end, top + height], [end - 0.3 * r, top + height]]);
    context.fill();
    if (width < 8) return;
    context.strokeStyle = this.colours.panel;
    context.lineWidth = 1;
    strokeLines(context, [[end - r - 1, top, end - 0.3 * r - 1, top + height]]);
  }

  /** A cross where a trip was broken off. */
  drawUndone(context, x, y) {
    const r = Math.min(5, this.row / 4), middle = y + this.row / 2;
    context.strokeStyle = this.colours.ink;
    context.lineWidth = 2;
    strokeLines(context, [[x - 2 * r, middle - r, x, middle + r], [x - 2 * r, middle + r, x, middle - r]]);
  }

  drawStop(context, stop, y) {
    const x = this.toX(stop.start), width = Math.max(2, this.toX(stop.end) - x);
    const top = y + 0.12 * this.row, height = 0.76 * this.row;
    context.save();
    context.beginPath();
    context.rect(x, top, width, height);
    context.fillStyle = this.colours.panel;
    context.fill();
    context.clip();
    context.strokeStyle = this.colours.alarm;
    context.lineWidth = 2;
    const lines = [];
    for (let k = x - height; k < x + width; k += 7) lines.push([k, top + height, k + height, top]);
    strokeLines(context, lines);
    context.restore();
    context.strokeStyle = this.colours.alarm;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, top + 0.5, Math.max(1, width - 1), height - 1);
  }

  /** What a bar is, in words; null beside the bars. */
  describePoint(x, y) {
    const v = Math.floor((y - 4) / this.row);
    if (v < 0 || v >= this.episode.vehicles.length || x < this.left) return null;
    const time = this.toTime(x), { id } = this.episode.vehicles[v];
    const { state, trip } = this.run.findState(v, time);
    if (trip === null) return `${id}: ${time < this.run.end ? state : this.run.status}${formatLevel(this.run, v, time)}`;
    const { episode } = this, task = episode.tasks[trip.task];
    const lines = [
      `${id}: ${task.id}, ${state}${formatLevel(this.run, v, time)}`,
      `${episode.sites[task.pickup].name} to ${episode.sites[task.delivery].name}`,
      `${formatNumber(trip.start)} to ${formatNumber(trip.end)} s, due at ${formatNumber(task.due)} s`,
    ];
    const late = this.run.findLateness(trip.task, Infinity);
    if (trip.recall !== null) lines.push(describeRecall(episode, this.run, trip));
    else if (!trip.delivered) lines.push("broken off");
    else if (late > 0) lines.push(`late by ${formatNumber(late)} s`);
    return lines.join("\n");
  }
}
