/* Numbers, times and places in words. */

const NUMBERS = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

/** An episode of that many seconds has its scale in hours and minutes. */
const LONG = 7200;

function formatNumber(value) {
  return NUMBERS.format(value);
}

/** A value that is compared with others, to four figures: 0.01234, 245, 1812.5. */
function formatValue(value) {
  if (value === null) return "–";
  return String(Number(Math.abs(value) >= 1000 ? value.toFixed(1) : value.toPrecision(4)));
}

/** Seconds as h:mm:ss. */
function formatDuration(seconds) {
  const whole = Math.floor(seconds), two = (value) => String(value).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

/** The moment on the record's own clock, such as 2024-05-06 07:08:09; of the year 1, a time of no day. */
function formatMoment(epoch, seconds) {
  const moment = new Date(epoch + 1000 * Math.floor(seconds)).toISOString().slice(0, 19).replace("T", " ");
  return moment.startsWith("0001-") ? moment.slice(11) : moment;
}

/** The clock: seconds, and the time of day if the record has one. */
function formatClock(episode, seconds) {
  const own = episode.epoch === null ? formatDuration(seconds) : formatMoment(episode.epoch, seconds);
  return `${formatNumber(Math.floor(seconds))} s · ${own}`;
}

function formatDueIn(seconds) {
  if (seconds < -ROUNDING) return `late by ${formatNumber(Math.ceil(-seconds))} s`;
  return `${formatNumber(Math.floor(seconds))} s`;
}

function cutText(text, length) {
  return text.length <= length ? text : text.slice(0, length - 1) + "…";
}

/** Even steps, about `count` of them between two numbers: 1, 2 or 5 times a power of ten. */
function chooseTicks(low, high, count) {
  const raw = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw);
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high + 1e-9; k++) ticks.push(k * step);
  return ticks;
}

/** Times for the scale of a chart, s: even on the clock that it shows. */
function chooseTimes(episode, from, to, count) {
  if (episode.epoch === null && episode.end < LONG) return chooseTicks(from, to, count);
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  const days = 86400 * Math.ceil((to - from) / 86400 / count);
  const step = steps.find((value) => value * count >= to - from) ?? days;
  const zero = (episode.epoch ?? 0) / 1000, times = [];
  for (let k = Math.ceil((zero + from) / step); k * step - zero <= to; k++) times.push(k * step - zero);
  return times;
}

function formatTick(episode, time) {
  if (episode.epoch === null) return episode.end < LONG ? `${formatNumber(time)} s` : formatDuration(time);
  const moment = formatMoment(episode.epoch, time + 1e-6);
  if (moment.length === 8) return moment;
  // Midnight tells the day.
  return moment.endsWith("00:00:00") ? moment.slice(0, 10) : moment.slice(11);
}

/** What a vehicle does, in words. */
function describeVehicle(episode, run, v, time) {
  const { state, trip } = run.findState(v, time);
  const task = trip === null ? "" : `, ${episode.tasks[trip.task].id}`;
  return `${episode.vehicles[v].id}: ${state}${task}\n${describePlace(episode, run, v, time)}`;
}

function describePlace(episode, run, v, time) {
  const { a, b, part } = run.locate(v, time);
  const { sites } = episode;
  if (a === b || part === 0) return `at ${sites[a].id}`;
  if (part === 1) return `at ${sites[b].id}`;
  return `from ${sites[a].id} to ${sites[b].id}`;
}
