/* The page of an episode: one clock for all runs. */

import { listen } from "./controls.js";
import { find, followTheme, get, setText } from "./dom.js";
import { listFloorMarks, listRunMarks, writeLegend } from "./legend.js";
import { Panel } from "./panel.js";
import { readEpisode } from "./run.js";
import { countUpTo } from "./scene.js";
import { SPEEDS, Span } from "./times.js";
import { formatClock, formatNumber, formatTick } from "./words.js";

/** A replay lasts at most so long, s, if one of the speeds allows it and the reader chooses no other. */
const USUAL_LENGTH = 120;
/** Pause between two renewals of texts and tables while it plays, ms; faster could not be read. */
const TEXT_EVERY = 150;
/** Pause between two pictures for those who want less motion, ms. */
const CALM_EVERY = 500;

export class Player {
  time = 0;
  playing = false;
  frames = 0;
  last = 0;
  written = 0;
  isAsked = false;
  /** Position in `decisions` while the reader goes from one to the next; null at any other time. */
  step = /** @type {number | null} */ (null);
  calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  /** @param {Episode} episode */
  constructor(episode) {
    const { runs, end } = this.episode = episode;
    this.span = new Span(end);
    this.panels = runs.map((run, k) => new Panel(run, k, this.span));
    find("#runs").dataset.runs = String(runs.length);
    /** All decisions of all runs on one clock. */
    this.decisions = runs.flatMap(({ decisions }, panel) => decisions.map(({ start }, n) => ({ start, panel, n })));
    this.decisions.sort((a, b) => a.start - b.start || a.panel - b.panel || a.n - b.n);
    this.speed = SPEEDS.find((speed) => end / speed <= USUAL_LENGTH) ?? SPEEDS[SPEEDS.length - 1];
  }
  resize() {
    const { episode, panels } = this;
    for (const panel of panels) panel.resize();
    writeLegend([...listFloorMarks(episode, panels[0].floor.shapes), ...listRunMarks(episode)]);
    this.show();
  }
  play() {
    if (this.playing) return;
    if (this.time >= this.episode.end) this.seek(0);
    this.playing = true;
    this.step = null;
    this.last = performance.now();
    setText(find("#play"), "Pause");
    this.request();
  }
  pause() {
    this.playing = false;
    setText(find("#play"), "Play");
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
  /** @param {number} now */ tick(now) {
    this.isAsked = false;
    if (!this.playing) return;
    // A page that was out of sight goes on where it was.
    const passed = Math.min(1, Math.max(0, now - this.last) / 1000), isSeen = this.span.holds(this.time);
    this.last = now;
    this.time = Math.min(this.episode.end, this.time + passed * this.speed);
    // Charts turn over with the clock, unless the reader looks elsewhere.
    if (isSeen) this.span.follow(this.time);
    this.frames += 1;
    if (this.time >= this.episode.end) return this.pause();
    this.show(now - this.written >= TEXT_EVERY);
    this.request();
  }
  /** Go to a moment, s. @param {number} time @param {number | null} step */
  seek(time, step = null) {
    this.step = step;
    this.time = Math.min(this.episode.end, Math.max(0, time));
    this.span.follow(this.time);
    this.show();
  }
  /** Change the part of the episode that the charts show. @param {string} how "in", "out", "earlier", "later" or "whole". */
  zoom(how) {
    const { span } = this, middle = span.holds(this.time) ? this.time : (span.from + span.to) / 2;
    if (how === "in") span.zoom(0.5, middle);
    else if (how === "out") span.zoom(2, middle);
    else if (how === "whole") span.show(0, span.end);
    else span.move((how === "later" ? 0.5 : -0.5) * span.length);
    this.show();
  }
  /** @param {number} speed */ setSpeed(speed) {
    this.speed = speed;
    get("#speed", document, HTMLSelectElement).value = String(speed);
  }
  /** To a higher (1) or a lower one (-1). @param {number} by */
  changeSpeed(by) { this.setSpeed(SPEEDS[SPEEDS.indexOf(this.speed) + by] ?? this.speed); }
  /** To the next decision (1) or the one before (-1) of all runs; tell screen readers which it is. @param {number} by */
  stepDecision(by) {
    const { decisions, panels } = this, target = this.findStep(by);
    if (this.playing && decisions.length > 0) this.pause();
    if (target < 0 || target >= decisions.length) return;
    this.seek(decisions[target].start, target);
    const { panel, n } = decisions[target], { run } = panels[panel];
    const words = [...(panels.length > 1 ? [run.label] : []), ...panels[panel].announce(run.decisions[n], n)];
    setText(find("#announce"), words.join(", "));
  }
  /** @param {number} by */ findStep(by) {
    if (this.step !== null) return this.step + by;
    const last = countUpTo(this.decisions, this.time) - 1;
    if (by < 0) return this.time > this.decisions[last]?.start ? last : last - 1;
    // At the very start those of that moment are still to be looked at.
    return this.time === 0 ? 0 : last + 1;
  }
  /** @param {boolean} write Whether texts are renewed, too. */ show(write = true) {
    const { decisions, step, time, panels } = this;
    panels.forEach((panel, k) => {
      // The last one of its run up to the step, or up to now.
      panel.shown = step === null ? countUpTo(panel.run.decisions, time) - 1
        : decisions.slice(0, step + 1).findLast((decision) => decision.panel === k)?.n ?? -1;
      panel.draw(time, step !== null && decisions[step].panel === k);
    });
    if (write) this.write();
  }
  write() {
    this.written = performance.now();
    const { episode, time, span } = this, clock = formatClock(episode, time), slider = get("#time", document, HTMLInputElement);
    setText(find("#clock"), clock);
    slider.value = String(time);
    slider.setAttribute("aria-valuetext", clock);
    const shown = span.isWhole ? "whole episode" : [span.from, span.to].map((at) => formatTick(episode, Math.round(at))).join(" to ");
    for (const panel of this.panels) {
      setText(find(".span", panel.root), shown);
      panel.write(time);
      if (!this.playing) panel.floor.canvas.setAttribute("aria-label", panel.describe(time));
    }
  }
}

function start() {
  const episode = readEpisode(find("#data").textContent), player = new Player(episode);
  const title = `${episode.name}: ${episode.runs.map(({ label }) => label).join(" beside ")}`;
  document.title = title;
  setText(find("#title"), title);
  setText(find("#subtitle"), `${formatNumber(episode.runs[0].tasks.length)} tasks, ${episode.vehicles.length} vehicles, ` +
    `${episode.sites.length} sites on floor ${episode.layout}`);
  listen(player);
  player.setSpeed(player.speed);
  followTheme(() => player.resize());
  return player;
}

// For the console: player.seek(120), player.episode.runs[0].locate(0, 120).
Object.assign(globalThis, { player: start() });
