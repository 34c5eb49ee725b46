/* What all pages have: texts, tables, the legend, the theme, and words under the pointer. */

const find = (id) => document.getElementById(id);
const setText = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

/** Fill a table's body; rows and cells that are there are used again. */
function fillRows(body, rows) {
  while (body.rows.length > rows.length) body.lastElementChild.remove();
  rows.forEach(({ cells, mark = "" }, k) => {
    const row = body.rows[k] ?? body.insertRow();
    if (row.className !== mark) row.className = mark;
    cells.forEach((text, c) => {
      const cell = row.cells[c] ?? row.insertCell();
      setText(cell, text);
      const last = c === cells.length - 1 && body.dataset.numbers === "yes";
      if (last) cell.className = "number";
    });
    while (row.cells.length > cells.length) row.lastElementChild.remove();
  });
}

/** One entry of the legend: a drawn mark and its meaning. */
function addMark(words, width, draw) {
  const entry = document.createElement("span"), canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  draw(sizeCanvas(canvas, width, 20));
  entry.append(canvas, document.createTextNode(words));
  find("legend").append(entry);
}

/** Marks of the floor's picture: vehicles in all states that the floor has, and in `others`; tasks, sites. */
function drawFloorMarks(episode, shapes, colours, others = []) {
  find("legend").replaceChildren();
  const { sites } = episode, charges = sites.some(({ slots }) => slots > 0);
  const parks = sites.some(({ places }) => places > 0);
  const more = [...(parks ? [PARKED] : []), ...(charges ? [QUEUED, CHARGING] : []), ...(parks || charges ? [ERRAND] : []), ...others];
  for (const state of [IDLE, TO_PICKUP, LOADED, BROKEN, ...more]) {
    addMark(`vehicle ${state}`, 26, (context) => drawVehicle(context, colours, state, 12, 10, 8, 0));
  }
  const tasks = [
    ["task waits", {}],
    ["a vehicle is on its way to it", { fetched: true }],
    ["task is late", { late: true }],
  ];
  for (const [words, task] of tasks) addMark(words, 16, (context) => drawParcel(context, colours, task, 8, 10));
  if (new Set(shapes.values()).size === shapes.size) {
    for (const [kind, shape] of shapes) {
      addMark(cutText(kind, LONGEST_NAME) || "site", 16, (context) => drawSite(context, colours, shape, 8, 10, 5));
    }
  }
  if (episode.hasLevels) {
    addMark("level of the battery", 26, (context) => drawLevel(context, colours.charge, 0.7, 12, 10, 8));
  }
  if (charges) addMark("charger", 18, (context) => drawBerth(context, colours, true, 9, 10, 7));
  if (parks) addMark("parking place", 18, (context) => drawBerth(context, colours, false, 9, 10, 7));
}

function drawCurveMarks(colours) {
  addMark("tasks that wait", 26, (context) => {
    context.fillStyle = colours.control;
    context.fillRect(0, 7, 26, 11);
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.5;
    strokeLines(context, [[0, 7, 26, 7]]);
  });
  addMark("tasks late, not delivered", 26, (context) => {
    context.fillStyle = colours.alarm;
    context.fillRect(0, 7, 26, 11);
  });
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  setText(find("theme"), theme === "dark" ? "Light" : "Dark");
}

/** Follow the system's theme and the button; `redraw` when it changes. */
function followTheme(redraw) {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const change = (theme) => {
    setTheme(theme);
    redraw();
  };
  setTheme(dark.matches ? "dark" : "light");
  find("theme").addEventListener("click", () => {
    change(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  });
  dark.addEventListener("change", () => change(dark.matches ? "dark" : "light"));
}

/** The pointer over a picture: what is there at the moment that `getTime` gives. */
function tellPoints(views, getTime) {
  const tip = find("tip");
  const tell = (event, text) => {
    tip.hidden = text === null;
    if (text === null) return;
    setText(tip, text);
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - width - 4))}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, window.innerHeight - height - 4))}px`;
  };
  for (const view of views) {
    view.canvas.addEventListener("pointermove", (event) => {
      tell(event, view.describePoint(event.offsetX, event.offsetY, getTime()));
    });
    view.canvas.addEventListener("pointerleave", (event) => tell(event, null));
  }
}
