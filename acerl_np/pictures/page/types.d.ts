/* What modules pass to each other: the data that Python writes, and what is made of them. Times are seconds. */

type Pen = import("./canvas.js").Pen;
type Scene = import("./scene.js").Scene;
type Run = import("./run.js").Run;
type Span = import("./times.js").Span;
type TimeView = import("./times.js").TimeView;
type DayView = import("./times.js").DayView;
type Player = import("./replay.js").Player;

// Drawing; lengths are CSS pixels.
type Colour = import("./canvas.js").Colour;
type Colours = Record<Colour, string>;
type Point = [x: number, y: number];
type Line = [x: number, y: number, u: number, w: number];
type Paint = { fill?: Colour; stroke?: Colour; width?: number; dash?: number[]; round?: boolean; alpha?: number };
/** `halo`: readable on whatever is below; `most`: the width into which a longer text is pressed. */
type Letters = { colour?: Colour; align?: CanvasTextAlign; font?: string; halo?: boolean; most?: number };
/** Where times are, between which ends they are seen, and how high a row is. */
type Chart = { row: number; left: number; right: number; toX: (time: number) => number };
/** Its meaning, its width, and what draws it. */
type Mark = [words: string, width: number, draw: (pen: Pen) => void];
type Row = { cells: string[]; mark?: string };
type Seen = { state: string; x: number; y: number; angle: number; stack: number; first: boolean; wait?: Wait };

// The floor, the day and what holds; sites, vehicles and tasks are positions.
type Site = { id: string; x: number; y: number; kind: string; stations: string; name: string; slots: number; places: number; use: number };
type Vehicle = { id: string; site: number; capacity?: number; critical?: number; size?: Point };
type Edge = { a: number; b: number; oneWay: boolean };
type Floor = { layout: string; sites: Site[]; edges: Edge[]; vehicles: Vehicle[]; hasLevels: boolean };
/** `epoch`: time zero, ms since 1970; `most` tasks that a curve shows; `mostWaited` at a site, or before a lane. */
type Day = Floor & { epoch: number | null; end: number; most: number; mostWaited: number };
type Task = { id: string; pickup: number; delivery: number; arrival: number; due: number; after: number; state?: string };
type Place = { start: number; a: number; b: number; reach: number; first: number; last: number };
type Bar = { start: number; end: number };
/** From each start on it is the count. */
type Curve = { start: number; count: number }[];
type Wait = Bar & { vehicle: number; site: number; ahead: number; holder: number };
type Work = Bar & { task: number; queued: number };
type Machine = { site: number; work: Work[] };
type Doing = { state: string; trip: { task: number } | null };
type Standing = { task: number; fetched: boolean; late: boolean };

// What `replay.py` writes: rows, in which texts and legs are positions, too.
type FloorData = {
  layout: string; sites: [id: string, x: number, y: number, kind: string, stations: string][];
  edges: [a: number, b: number, oneWay: number][]; berths: [site: number, slots: number, places: number][];
  vehicles: [id: string, site: number, capacity?: number, critical?: number][];
  sizes?: Point[];
};
type EpisodeData = FloorData & {
  name: string; epoch: string | null; runs: RunData[];
  tasks: [id: string, pickup: number, delivery: number, arrival?: number, due?: number][];
};
type RunData = {
  label: string; status: string; end: number; makespan: number | null; tardiness: number; late: number; waiting: number;
  objective: string; texts: string[]; decisions: DecisionRow[]; trips: (TripRow | null)[]; levels: number[][];
  errands: [state: number, vehicle: number, start: number, end: number, site: number, arrived: number, way: number[]][];
  legs: [begin: number, a: number, b: number, reach: number, first?: number, last?: number][][];
  stops: [vehicle: number, start: number, end: number][];
  jobs?: [from: number | null, due: number | null, after: number][];
  machines?: [site: number, work: [task: number, queued: number, start: number, end: number][]][];
  waits?: [vehicle: number, start: number, end: number, site: number, ahead: number, holder: number][];
};
type DecisionRow = [
  time: number, vehicle: number, task: number, by: number, measure: number, chosen: number,
  alternatives: [vehicle: number, task: number, rule: number, value: number | null][],
  parts?: [words: number, unit: number, difference: number, value: number][],
  outlooks?: [vehicle: number, task: number, what: number, end: number, late: number][],
];
type TripRow = [end: number, pickup: number | null, delivered: number, way: number[], recall?: number | null, pause?: number];

// An episode.
type Episode = Day & { name: string; runs: Run[] };
type Part = { words: string; unit: string; difference: number; value: number };
type Decision = {
  start: number; vehicle: number; task: number; by: string; measure: string; chosen: number; parts: Part[];
  alternatives: { vehicle: number; task: number; rule: string; value: number | null }[];
  outlooks: { vehicle: number; task: number; what: string; end: number; late: number }[];
};
type Drive = Bar & { vehicle: number; site: number; arrived: boolean; places: Place[] };
/** `recall`: the decision that called it back, or -1; `pause`: how long it waits at the pickup until the task is ready. */
type Trip = Drive & { task: number; pickup: number | null; delivered: boolean; recall: number; pause: number };
type TripBar = Bar & Pick<Trip, "pickup" | "delivered" | "recall" | "pause">;
type Errand = Drive & { state: string };

// What a service tells, by the names of its events.
type Parts = {
  floor: FloorData & { version: string }; now: number | null; orders: Order[]; overdue?: Record<string, string>; figures: Figures;
  /** `end`: when it should be delivered; of one without a vehicle the seconds that it takes at least. */
  tasks: [id: string, pickup: number, delivery: number, due: number | null, state: string, vehicle: number, end: number | null][];
  vehicles: [state: string, task: string | null, level: number | null, way: [site: number, time: number][]][];
  queue: [time: number, waiting: number, late: number][]; refused: { wall: number; number: number | null; why: string }[];
};
type Figures = {
  time: number | null; start: number; waiting: number; announced: number; delivered: number; delay: number; refused: number; policy: string;
};
type Order = { time: number; kind: string; vehicle: string; task?: string; site?: string; rule?: string; reason?: string | Reason | null };
type Reason = { by: string; measure: string; options: { vehicle: string; task: string; value: number | null }[]; parts: string[]; outlook: string };
type LiveTask = Task & { state: string; vehicle: number; finish: number | null; least: number };
