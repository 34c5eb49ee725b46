/* What happened over time, on one axis: the part that is shown, curves of tasks, and the whole day. */

import { View } from "./canvas.js";
import { countUpTo, findLast, findNow } from "./scene.js";
import { chooseTicks, chooseTimes, formatClock, formatNumber, formatTick } from "./words.js";

/** Seconds of the episode in one of the reader's. */
export const SPEEDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];
/** Shortest time that fills the charts, s. */
export const LEAST_SPAN = 30;

/** The part of the episode that the charts show, the same in all runs; s. */
export class Span {
  from = 0;
  to = 0;
  /** @param {number} end */
  constructor(end) {
    this.end = end;
    this.show(0, end);
  }
  get length() { return this.to - this.from; }
  get isWhole() { return this.length >= this.end; }
  /** Show this part, or one as long inside the episode. @param {number} from @param {number} to */
  show(from, to) {
    const length = Math.min(this.end, Math.max(LEAST_SPAN, to - from));
    this.from = Math.min(Math.max(0, from), this.end - length);
    this.to = this.from + length;
  }
  /** @param {number} by */ move(by) { this.show(this.from + by, this.to + by); }
  /** Show `factor` as much, a moment staying where it is. @param {number} factor @param {number} moment */
  zoom(factor, moment) {
    const length = Math.min(this.end, Math.max(LEAST_SPAN, factor * this.length));
    const share = (moment - this.from) / this.length;
    this.show(moment - share * length, moment + (1 - share) * length);
  }
  /** Whether a moment is in sight. @param {number} time */
  holds(time) { return time >= this.from && time <= this.to; }
  /** Turn over to where a moment is, if it is out of sight. @param {number} time */
  follow(time) { if (!this.holds(time)) this.show(time - 0.1 * this.length, time + 0.9 * this.length); }
}

/** A picture over time; `draw` draws again what has changed only when the span has. */
export class TimeView extends View {
  left = 0;
  right = 0;
  drawn = "";
  /** @param {HTMLElement} place @param {Scene} scene @param {Span} span @param {number} foot Room for times below, px. */
  constructor(place, scene, span, foot = 0) {
    super(place);
    this.scene = scene;
    this.span = span;
    this.foot = foot;
  }
  /** Take up the width; names stand left of `left`, px. @param {number} height @param {number} left */
  fit(height, left) {
    this.open(this.room, height);
    this.left = left;
    this.right = this.width - 10;
    this.drawn = "";
  }
  /** @param {number} time */ toX(time) {
    return this.left + ((time - this.span.from) / this.span.length) * (this.right - this.left);
  }
  /** @param {number} x */ toTime(x) {
    const share = (x - this.left) / (this.right - this.left);
    return this.span.from + Math.min(1, Math.max(0, share)) * this.span.length;
  }
  /** Where lines of the scale end, px. */
  get bottom() { return this.height - this.foot; }
  /** @param {Pen} _pen */ drawLayer(_pen) {}
  /** @param {number} time */ draw(time) {
    const { span, layer, width, height } = this, key = `${span.from} ${span.to}`, x = this.toX(time);
    if (this.drawn !== key) {
      this.drawn = key;
      layer.context.clearRect(0, 0, width, height);
      this.drawLayer(layer);
    }
    this.begin();
    if (span.holds(time)) this.pen.lines([[x, 0, x, this.bottom]], "mark", 2);
  }
  /** Even moments as lines, and in words below. @param {Pen} pen */
  drawScale(pen) {
    const { span, scene: { day } } = this, room = day.epoch === null ? 80 : 100;
    const times = chooseTimes(day, span.from, span.to, (this.right - this.left) / room);
    pen.lines(times.map((time) => [this.toX(time), 2, this.toX(time), this.bottom]), "line");
    if (this.foot === 0) return;
    for (const time of times) {
      const text = formatTick(day, time), half = pen.measure(text) / 2;
      // Near the ends the text would leave the picture.
      const x = Math.min(Math.max(this.toX(time), half), this.width - half);
      pen.text(text, x, this.bottom + 14, { colour: "muted", align: "center" });
    }
  }
  /** Draw only between the ends of the axis. @param {Pen} pen @param {() => void} draw */
  clip(pen, draw) { pen.clip(this.left, 0, this.right - this.left, this.height, draw); }
  /** A count over time: the area below its steps, or a line along them.
   * @param {Pen} pen @param {Curve} curve @param {(count: number) => number} toY @param {Paint} paint */
  drawSteps(pen, curve, toY, paint) {
    const { from, to } = this.span, steps = curve.slice(Math.max(0, countUpTo(curve, from) - 1), Math.max(1, countUpTo(curve, to)));
    // Each step lasts to the next one.
    const points = steps.flatMap(({ start, count }, k) =>
      [start, steps[k + 1]?.start ?? Math.min(to, this.scene.end)].map((time) => /** @type {Point} */ ([this.toX(time), toY(count)])));
    if (paint.fill === undefined) pen.polygon(points, paint, false);
    else pen.polygon([...points, [points[points.length - 1][0], toY(0)], [points[0][0], toY(0)]], paint);
  }
  /** @param {Pen} pen @param {(count: number) => number} toY */ drawCurves(pen, toY) {
    const { waiting, late } = this.scene.curves;
    this.clip(pen, () => {
      this.drawSteps(pen, waiting, toY, { fill: "control" });
      this.drawSteps(pen, late, toY, { fill: "alarm" });
      this.drawSteps(pen, waiting, toY, { stroke: "ink" });
    });
  }
}

/** How many tasks wait and how many are late and not delivered, on the chart's axis. */
export class CurveView extends TimeView {
  /** @param {Pen} pen */ drawLayer(pen) {
    const { most } = this.scene.day, base = this.bottom - 4, { left, right } = this;
    /** @param {number} count */
    const toY = (count) => base - (count / most) * (base - 8);
    // A band where a baseline decided in the policy's place.
    this.clip(pen, () => this.scene.handed.forEach(({ start, end }) => {
      pen.box(this.toX(start), 0, Math.max(1, this.toX(end) - this.toX(start)), this.height, { fill: "handed" });
    }));
    this.drawScale(pen);
    const ticks = chooseTicks(0, most, 3).filter(Number.isInteger);
    for (const count of ticks) {
      const y = Math.min(base, Math.max(10, toY(count) + 4));
      pen.text(formatNumber(count), left - 6, y, { colour: "muted", align: "right" });
    }
    pen.lines(ticks.map((count) => [left, toY(count), right, toY(count)]), "line");
    this.drawCurves(pen, toY);
  }
  describe() {
    const { curves, handed, end: last } = this.scene;
    const words = Object.entries(curves).map(([name, curve]) => {
      const peak = curve.reduce((best, step) => (step.count > best.count ? step : best));
      return `at most ${formatNumber(peak.count)} ${name}, at ${formatNumber(peak.start)} s`;
    });
    for (const { start, end, by } of handed) words.push(`${by} decides from ${formatNumber(start)} to ${formatNumber(end)} s`);
    return `Curves of tasks over ${formatNumber(last)} s: ${words.join("; ")}`;
  }
  /** @param {number} x */ describePoint(x) {
    if (x < this.left || x > this.right) return null;
    const time = this.toTime(x), { day, curves: { waiting, late }, handed } = this.scene;
    /** @param {Curve} curve */
    const count = (curve) => formatNumber((findLast(curve, time) ?? curve[0]).count);
    const by = findNow(handed, time)?.by;
    return `${formatClock(day, time)}\n${count(waiting)} waiting\n${count(late)} late, not delivered` +
      (by === undefined ? "" : `\n${by} decides`);
  }
}

/** The whole episode in small, and which part of it the charts show; that is drawn and moved here. */
export class DayView extends TimeView {
  /** @param {HTMLElement} place @param {Scene} scene @param {Span} shown */
  constructor(place, scene, shown) {
    super(place, scene, new Span(scene.day.end));
    this.shown = shown;
  }
  /** @param {Pen} pen */ drawLayer(pen) {
    const base = this.height - 2;
    this.drawCurves(pen, (count) => base - (count / this.scene.day.most) * (base - 4));
  }
  /** @param {number} time */ draw(time) {
    super.draw(time);
    const { pen, height, left, right, shown } = this, a = this.toX(shown.from), b = this.toX(shown.to);
    pen.box(left, 0, a - left, height, { fill: "line", alpha: 0.6 });
    pen.box(b, 0, right - b, height, { fill: "line", alpha: 0.6 });
    pen.box(a, 1, b - a, height - 2, { stroke: "muted" });
    for (const x of [a, b]) pen.box(x - 3, height / 2 - 8, 6, 16, { fill: "muted" });
  }
  /** What a pointer that goes down here moves: an end of the shown part, or all of it; null draws a new one. @param {number} x */
  findHandle(x) {
    const from = this.toX(this.shown.from), to = this.toX(this.shown.to);
    if (Math.min(Math.abs(x - from), Math.abs(x - to)) <= 8) return Math.abs(x - from) < Math.abs(x - to) ? "from" : "to";
    return !this.shown.isWhole && x > from && x < to ? "all" : null;
  }
  /** @param {number} x */ describePoint(x) {
    return x < this.left || x > this.right ? null
      : `${formatClock(this.scene.day, this.toTime(x))}\ndrag: show a part of the day; twice: the whole`;
  }
}
