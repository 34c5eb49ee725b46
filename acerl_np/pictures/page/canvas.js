/* A pen with the theme's colours, and pictures: what changes seldom is drawn once, in a layer. */

import { get } from "./dom.js";

const COLOURS = /** @type {const} */ (["ink", "muted", "line", "panel", "fetch", "load", "on-load", "alarm", "on-alarm",
  "mark", "control", "charge", "handed"]);
export const FONT = "12px system-ui, sans-serif", SMALL_FONT = "11px system-ui, sans-serif", BOLD_FONT = `bold ${SMALL_FONT}`;

/** @typedef {(typeof COLOURS)[number]} Colour */ 
/** The theme's colours by name. */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const found = COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]);
  return /** @type {Colours} */ (Object.fromEntries(found));
}

/** Draws on a canvas, whose size it sets; it counts in CSS pixels. */
export class Pen {
  /** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
  constructor(canvas, width, height) {
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.context.scale(ratio, ratio);
    this.colours = readColours();
  }
  /** Fill and stroke what has been traced. @param {Paint} paint */
  paint({ fill, stroke, width = 1.5, dash = [], round = false, alpha = 1 }) {
    const { context, colours } = this, lineCap = round ? "round" : "butt";
    Object.assign(context, { globalAlpha: alpha, lineWidth: width, lineCap });
    if (fill !== undefined) context.fillStyle = colours[fill];
    if (stroke !== undefined) context.strokeStyle = colours[stroke];
    context.setLineDash(dash);
    if (fill !== undefined) context.fill();
    if (stroke !== undefined) context.stroke();
  }
  /** @param {Point[]} points @param {Paint} paint */ polygon(points, paint, isClosed = true) {
    this.context.beginPath();
    for (const [x, y] of points) this.context.lineTo(x, y);
    if (isClosed) this.context.closePath();
    this.paint(paint);
  }
  /** Of a circle the first `share` of its way round, from the top. @type {(...of: [number, number, number, Paint, number?]) => void} */
  circle(x, y, r, paint, share = 1) {
    this.context.beginPath();
    this.context.arc(x, y, r, -0.5 * Math.PI, (2 * share - 0.5) * Math.PI);
    this.paint(paint);
  }
  /** @param {number} x @param {number} y @param {number} width @param {number} height @param {Paint} paint */
  box(x, y, width, height, paint) {
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.paint(paint);
  }
  /** @param {Line[]} lines @param {Colour} stroke @param {number} width @param {Paint} more */ lines(lines, stroke, width = 1, more = {}) {
    this.context.beginPath();
    for (const [a, b, c, d] of lines) {
      this.context.moveTo(a, b);
      this.context.lineTo(c, d);
    }
    this.paint({ stroke, width, ...more });
  }
  /** @param {string} text @param {number} x @param {number} y @param {Letters} letters */
  text(text, x, y, { colour = "ink", align = "left", font = SMALL_FONT, halo = false, most } = {}) {
    const { context, colours } = this;
    Object.assign(context, { font, textAlign: align, fillStyle: colours[colour], globalAlpha: 1 });
    if (halo) {
      Object.assign(context, { strokeStyle: colours.panel, lineWidth: 3, lineJoin: "round" });
      context.setLineDash([]);
      context.strokeText(text, x, y);
    }
    context.fillText(text, x, y, most);
  }
  /** @param {string} text @param {string} font */ measure(text, font = SMALL_FONT) {
    this.context.font = font;
    return this.context.measureText(text).width;
  }
  /** Draw inside a box alone. @type {(...of: [number, number, number, number, () => void]) => void} */
  clip(x, y, width, height, draw) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
    draw();
    this.context.restore();
  }
}

/** A picture in an element that gives it its width. */
export class View {
  width = 1;
  height = 1;
  /** @param {HTMLElement} place */
  constructor(place) {
    this.place = place;
    this.canvas = get("canvas", place, HTMLCanvasElement);
    this.pen = this.layer = new Pen(this.canvas, 1, 1);
  }
  /** The width that there is. */
  get room() { return Math.max(200, Math.floor(this.place.clientWidth)); }
  /** @param {number} width @param {number} height */ open(width, height) {
    this.width = width;
    this.height = height;
    this.pen = new Pen(this.canvas, width, height);
    this.layer = new Pen(document.createElement("canvas"), width, height);
  }
  /** Begin the picture of a moment with the layer. */
  begin() {
    this.pen.context.globalAlpha = 1;
    this.pen.context.clearRect(0, 0, this.width, this.height);
    this.pen.context.drawImage(this.layer.canvas, 0, 0, this.width, this.height);
  }
}
