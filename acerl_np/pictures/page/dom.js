/* What all pages have: elements, texts, tables, the theme, and words under the pointer. */

/** The first element that a selector finds, of a kind such as HTMLInputElement. @template {HTMLElement} T
 * @param {string} selector @param {ParentNode} root @param {new () => T} kind @returns {T} */
export function get(selector, root, kind) {
  const found = root.querySelector(selector);
  if (found instanceof kind) return found;
  throw new TypeError(`no ${kind.name} ${selector}`);
}

/** The first element that a selector finds. @param {string} selector @param {ParentNode} root */
export const find = (selector, root = document) => get(selector, root, HTMLElement);

/** @template {keyof HTMLElementTagNameMap} K @param {K} tag @param {(Node | string)[]} children */ export function make(tag, ...children) {
  const node = document.createElement(tag);
  node.append(...children);
  return node;
}

/** @param {Element} node @param {string} text */ export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A table in a box that scrolls, in an element whose heading, if it has one, names it and counts its rows. */
export class Table {
  /** @param {HTMLElement} parent @param {string} words @param {string[]} heads @param {string} owner Whose it is, for screen readers.
   * @param {boolean} numbers Whether the last column has numbers. */
  constructor(parent, words, heads, owner = "", numbers = false) {
    this.words = words;
    this.numbers = numbers;
    this.heading = parent.querySelector(":scope > h3, :scope > summary");
    this.heads = heads.map((head, c) => Object.assign(make("th", head), { scope: "col", className: this.choose(c, heads) }));
    this.body = make("tbody");
    const head = heads.length > 0 ? [make("thead", make("tr", ...this.heads))] : [];
    const box = Object.assign(make("div", make("table", ...head, this.body)), { className: "box", tabIndex: 0 });
    box.setAttribute("role", "group");
    // Boxes that scroll can be reached by keys, so they need names.
    box.setAttribute("aria-label", owner === "" ? words : `${words}, ${owner}`);
    parent.append(box);
    this.fill([]);
  }
  /** The class of a cell. @param {number} c @param {unknown[]} row */
  choose(c, row) { return this.numbers && c === row.length - 1 ? "number" : ""; }
  /** Show rows; rows and cells that are there are used again. @param {Row[]} rows @param {number | null} count */
  fill(rows, count = null) {
    const { body, heading, words, heads } = this;
    if (heading !== null) setText(heading, count === null ? words : `${words} (${count.toLocaleString("en")})`);
    const shown = rows.length > 0 ? rows : [{ cells: heads.map((_, c) => (c === 0 ? "none" : "")) }];
    while (body.rows.length > shown.length) body.lastElementChild?.remove();
    shown.forEach(({ cells, mark = "" }, k) => {
      const row = body.rows[k] ?? body.insertRow();
      if (row.className !== mark) row.className = mark;
      while (row.cells.length > cells.length) row.lastElementChild?.remove();
      cells.forEach((text, c) => {
        const cell = row.cells[c] ?? row.insertCell();
        setText(cell, text);
        cell.className = this.choose(c, cells);
      });
    });
  }
}

/** Follow the system's theme and the button. @param {() => void} redraw Called for the first theme, and for each that follows. */
export function followTheme(redraw) {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  /** @param {boolean} isDark */
  const change = (isDark) => {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    setText(find("#theme"), isDark ? "Light" : "Dark");
    redraw();
  };
  find("#theme").addEventListener("click", () => change(document.documentElement.dataset.theme !== "dark"));
  dark.addEventListener("change", () => change(dark.matches));
  change(dark.matches);
}

/** The pointer over a picture: what is there at the moment that `getTime` gives.
 * @param {{ canvas: HTMLCanvasElement, describePoint: (x: number, y: number, time: number) => string | null }[]} views
 * @param {() => number} getTime */
export function tellPoints(views, getTime) {
  const tip = find("#tip");
  for (const view of views) {
    view.canvas.addEventListener("pointermove", (event) => {
      const text = view.describePoint(event.offsetX, event.offsetY, getTime());
      tip.hidden = text === null;
      if (text === null) return;
      setText(tip, text);
      const { width, height } = tip.getBoundingClientRect();
      tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - width - 4))}px`;
      tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, window.innerHeight - height - 4))}px`;
    });
    view.canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  }
}
