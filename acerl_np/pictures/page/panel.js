/* One run on the page: its pictures, figures, decision and lists. */

import { Table, find, get, setText } from "./dom.js";
import { FloorView, NAMED_VEHICLES } from "./floor.js";
import { GanttView } from "./gantt.js";
import { BROKEN, IDLE, LOADED, TO_PICKUP } from "./scene.js";
import { CurveView, DayView } from "./times.js";
import { countStates, describeRecall, describeVehicle, describeWork, formatClock, formatNumber, formatValue, listVehicle,
  listWaiting } from "./words.js";

const CURVE_HEIGHT = 84, DAY_HEIGHT = 34;

export class Panel {
  /** The decision that is shown; while it plays, the last one that has fallen. */
  shown = -1;
  drawn = NaN;
  /** @param {Run} run @param {number} place @param {Span} span */
  constructor(run, place, span) {
    this.run = run;
    const { content } = get("#run", document, HTMLTemplateElement);
    const root = this.root = find(".run", document.importNode(content, true));
    const title = find("h2", root), { label } = run;
    title.id = `run-${place}`;
    setText(title, label);
    root.setAttribute("aria-labelledby", title.id);
    this.floor = new FloorView(find(".floor", root), run);
    this.gantt = new GanttView(find(".gantt", root), run, span);
    this.curves = new CurveView(find(".curves", root), run, span);
    this.day = new DayView(find(".day", root), run, span);
    for (const view of [this.gantt, this.curves]) view.canvas.setAttribute("aria-label", view.describe());
    this.details = get(".vehicles", root, HTMLDetailsElement);
    this.alternatives = new Table(find(".alternatives", root), "Alternatives", ["Vehicle", "Task", "Rule", "Value"], label, true);
    this.parts = new Table(find(".parts", root), "Parts of the score", ["", "Difference", "Score"], label, true);
    this.waiting = new Table(find(".waiting", root), "Waiting tasks", ["Task", "Pickup", "Delivery", "Due in"], label, true);
    this.vehicles = new Table(this.details, "Vehicles", ["Vehicle", "State", "Place", "Task"], label);
    const recalls = run.recalls.map((trip) => ({ cells: [`${formatNumber(trip.end)} s`, describeRecall(run, trip)] }));
    new Table(find(".recalls", root), "Called back", [], label).fill(recalls, recalls.length);
    find(".recalls", root).hidden = recalls.length === 0;
    find("#runs").append(root);
  }
  resize() {
    this.floor.resize(Math.max(260, Math.min(560, 0.5 * window.innerHeight)));
    this.gantt.resize();
    this.curves.fit(CURVE_HEIGHT, this.gantt.left);
    this.day.fit(DAY_HEIGHT, this.gantt.left);
  }
  /** @param {number} time @param {boolean} marked Whether to mark the decision on the floor. */ draw(time, marked) {
    this.floor.draw(time, marked ? this.run.decisions[this.shown] : null);
    for (const view of [this.gantt, this.curves, this.day]) view.draw(time);
  }
  /** Renew figures, lists and, once it is another one, the decision. @param {number} time */
  write(time) {
    const { run } = this, now = run.measure(time), { makespan, tardiness, late, waiting, objective } = run.data;
    const waits = listWaiting(run, time);
    /** @type {Record<string, string>} */
    const figures = {
      finished: `${formatNumber(now.finished)} of ${formatNumber(run.tasks.length)}`,
      waiting: formatNumber(waits.length), late: formatNumber(now.late), tardiness: `${now.tardiness.toFixed(1)} s`,
      outcome: makespan === null ? `– (${run.status})`
        : `${formatNumber(makespan)} s / ${tardiness.toFixed(1)} s${now.over ? ` · ${run.status}` : ""}`,
      service: makespan === null ? "–" : `${(100 * late).toFixed(1)} % / ${waiting.toFixed(1)} s`, objective,
    };
    for (const node of this.root.querySelectorAll("dd")) setText(node, figures[node.dataset.figure ?? ""]);
    find(".objective", this.root).hidden = objective === "";
    this.waiting.fill(waits, waits.length);
    if (this.shown !== this.drawn) this.writeDecision(run.decisions[this.shown]);
    this.drawn = this.shown;
    if (this.details.open) this.writeVehicles(time);
  }
  /** @param {number} time */ writeVehicles(time) {
    this.vehicles.fill(this.run.fleet.map((_, v) => ({ cells: listVehicle(this.run, v, time) })));
  }
  /** @param {Decision} [decision] None has fallen yet without one. */ writeDecision(decision) {
    const { root, run } = this, { alternatives = [], parts = [], chosen = -1 } = decision ?? {};
    setText(find(".decision h3", root), decision ? `Decision ${this.shown + 1} of ${run.decisions.length}` : "No decision yet");
    setText(find(".chosen", root), decision ? this.describeDecision(decision) : "");
    setText(find(".why", root), decision ? describeReason(decision) + this.describeOutlooks(decision) : "");
    this.alternatives.fill(alternatives.map(({ vehicle, task, rule, value }, k) => (
      { cells: [...this.namePair(vehicle, task), rule || "–", formatValue(value)], mark: k === chosen ? "picked" : "" })));
    find(".parts", root).hidden = parts.length === 0;
    const other = alternatives.find((_, k) => k !== chosen);
    if (parts.length === 0 || other === undefined) return;
    // What sets the chosen pair's score apart from the next best one's.
    const all = Number(alternatives[chosen].value) - Number(other.value);
    const rest = parts.reduce((left, part) => left - part.value, all);
    setText(this.parts.heads[0], `Score beside ${this.namePair(other.vehicle, other.task).join(" ")}`);
    this.parts.fill([
      ...parts.map((part) => ({ cells: [part.words, describeDifference(part), formatGain(part.value)] })),
      ...(Math.abs(rest) < 0.005 ? [] : [{ cells: ["all else", "", formatGain(rest)] }]),
      { cells: ["in all", "", formatGain(all)], mark: "sum" },
    ]);
  }
  /** @param {number} vehicle @param {number} task */ namePair(vehicle, task) {
    return [this.run.day.vehicles[vehicle].id, this.run.tasks[task].id];
  }
  /** What becomes of all that waits, with the chosen pair and with the next best. @param {Decision} decision */
  describeOutlooks({ outlooks }) {
    if (outlooks.length === 0) return "";
    const [own, other] = outlooks.map(({ end, late }) => `${formatClock(this.run.day, end)}, ${formatNumber(late)} s late`);
    const { vehicle, task, what } = outlooks[1];
    return `. Then ${what} done by ${own} in all; with ${this.namePair(vehicle, task).join(" ")}: ${other}`;
  }
  /** @param {Decision} decision */ describeDecision(decision) {
    const { run } = this, { start, vehicle, task } = decision;
    if (vehicle < 0) return `${formatNumber(start)} s: all wait`;
    const recalled = run.recalls.filter(({ recall }) => run.decisions[recall] === decision);
    const { pickup, delivery } = run.tasks[task], { sites } = run.day;
    return `${formatNumber(start)} s: ${this.namePair(vehicle, task).join(" takes ")}, ${sites[pickup].name} → ${sites[delivery].name}` +
      recalled.map((trip) => `; ${describeRecall(run, trip)}`).join("");
  }
  /** For screen readers. @param {Decision} decision @param {number} n */
  announce(decision, n) {
    return [`decision ${n + 1} of ${this.run.decisions.length}`, this.describeDecision(decision), describeReason(decision)];
  }
  /** The floor's picture in words. @param {number} time */
  describe(time) {
    const { run } = this, fleet = [...run.fleet.keys()], words = [];
    if (fleet.length <= NAMED_VEHICLES) words.push(...fleet.map((v) => describeVehicle(run, v, time).replace("\n", " ")));
    else words.push(`Vehicles: ${countStates(run, time, [IDLE, TO_PICKUP, LOADED, BROKEN])}`);
    if (run.waits.length > 0) {
      const n = fleet.filter((v) => run.findWait(v, time)).length;
      words.push(`${n === 0 ? "nobody waits" : n === 1 ? "1 waits" : `${n} wait`} for others`);
    }
    words.push(...run.machines.map((machine) => `${run.day.sites[machine.site].name}: ${describeWork(run, machine, time)}`));
    return `Floor at ${formatNumber(Math.floor(time))} s. ${words.join("; ")}`;
  }
}

/** @param {Decision} decision */ const describeReason = ({ by, measure, alternatives }) =>
  alternatives.length === 0 ? `by ${by}` : `by ${by}; value: ${measure}`;

/** What sets a pair apart, such as "31 s less". @param {Part} part */
const describeDifference = ({ unit, difference }) =>
  `${unit === "" ? "" : `${formatValue(Math.abs(difference))} ${unit} `}${difference > 0 ? "more" : "less"}`;

/** @param {number} value */ const formatGain = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
