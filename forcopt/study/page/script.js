"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const table = document.querySelector("table");
const heads = [...table.tHead.rows[0].cells];
const rows = [...table.tBodies[0].rows];
const isNumber = column => rows.length > 0 && rows[0].cells[column].classList.contains("number");
const value = (row, column) => row.cells[column].dataset.value;
const unknown = v => ["nan", "inf", "-inf", "None", ""].includes(v);

function make(name, attributes = {}, parent = null, text = null) {
  const svg = ["svg", "g", "line", "path", "circle", "text"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, v] of Object.entries(attributes)) node.setAttribute(key, v);
  if (text !== null) node.textContent = text;
  if (parent) parent.append(node);
  return node;
}

// -- the table: a click or Enter on a heading sorts by it, a second one the other way round; the unknown stays last

function sort(column) {
  const head = heads[column];
  const order = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  heads.forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", order === 1 ? "ascending" : "descending");
  const number = isNumber(column);
  [...rows].sort((a, b) => {
    const [x, y] = [value(a, column), value(b, column)];
    if (unknown(x) || unknown(y)) return unknown(x) - unknown(y);
    return order * (number ? Number(x) - Number(y) : x.localeCompare(y));
  }).forEach(row => table.tBodies[0].append(row));
}

heads.forEach((head, column) => {
  head.tabIndex = 0;
  head.scope = "col";
  head.addEventListener("click", () => sort(column));
  head.addEventListener("keydown", event => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    sort(column);
  });
});

// -- the columns that are shown ------------------------------------------------------------------------------

heads.forEach((head, column) => {
  const box = make("input", {type: "checkbox"});
  box.checked = true;
  make("label", {}, document.getElementById("columns")).append(box, ` ${head.textContent}`);
  box.addEventListener("input", () => [head, ...rows.map(row => row.cells[column])].forEach(c => { c.hidden = !box.checked; }));
});

// -- filters: a text that some cell holds, and a choice for each column with few values -----------------------

const filters = document.getElementById("filters");
const search = document.getElementById("search");
filters.addEventListener("submit", event => event.preventDefault());
const choices = ["instance", "method", "status"].map(title => {
  const column = heads.findIndex(head => head.textContent === title);
  const values = column < 0 ? [] : [...new Set(rows.map(row => value(row, column)))];
  if (values.length < 2 || values.length > 100) return null;
  const select = make("select", {"data-column": title, "aria-label": title});
  make("option", {value: ""}, select, `every ${title}`);
  values.forEach(v => make("option", {value: v}, select, v));
  document.getElementById("shown").before(select);
  return {select, column};
}).filter(Boolean);

function filter() {
  const text = search.value.toLowerCase();
  for (const row of rows) {
    const found = !text || [...row.cells].some(cell => cell.textContent.toLowerCase().includes(text));
    row.hidden = !found || choices.some(c => c.select.value && c.select.value !== value(row, c.column));
  }
  const count = rows.filter(row => !row.hidden).length;
  document.getElementById("shown").textContent = `${count} of ${rows.length} runs`;
  if (current === "explore") explore();
}
filters.addEventListener("input", filter);

// -- declarations ---------------------------------------------------------------------------------------------

const dialog = document.getElementById("declaration");
document.querySelectorAll("button[data-declaration]").forEach(button => button.addEventListener("click", () => {
  const text = data.declarations[button.dataset.declaration];
  dialog.querySelector("h2").textContent = button.dataset.title;
  dialog.querySelector("pre").textContent = text;
  dialog.showModal();
}));

// -- charts ---------------------------------------------------------------------------------------------------

const [left, top_] = [80, 15];
const small = () => innerWidth < 700;  // a phone: the legend stands below the picture, and letters stay large
const dashes = ["", "8 4", "2 3", "8 3 2 3"];
const tip = document.getElementById("tip");

function scale(values, log, low, high) {
  const fine = values.filter(v => v !== null && Number.isFinite(v) && (!log || v > 0));
  let [least, most] = fine.length
    ? [fine.reduce((a, b) => Math.min(a, b)), fine.reduce((a, b) => Math.max(a, b))] : [log ? 1 : 0, 1];
  if (least === most) [least, most] = log ? [least / 2, most * 2] : [least - 0.5, most + 0.5];
  const go = log ? Math.log10 : v => v;
  const room = 0.03 * (go(most) - go(least));
  const [a, b] = [go(least) - room, go(most) + room];
  const at = v => low + (go(v) - a) / (b - a) * (high - low);
  return {at, ticks: log ? decades(a, b) : round(a, b, fine.every(Number.isInteger))};
}

function decades(a, b) {
  const step = Math.max(1, Math.ceil((b - a) / 8));
  const ticks = [];
  const fine = b - a < 2 ? [1, 2, 5] : [1];
  for (let k = Math.floor(a); k <= Math.ceil(b); k += step)
    for (const m of fine) if (k + Math.log10(m) >= a - 1e-9 && k + Math.log10(m) <= b + 1e-9) ticks.push(m * 10 ** k);
  return ticks;
}

function round(a, b, whole) {
  const raw = Math.max((b - a) / 6, whole ? 1 : 0), power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find(m => m * power >= raw);
  const ticks = [];
  for (let k = Math.ceil(a / step - 1e-9); k * step <= b + 1e-9 * (b - a); k++) ticks.push(k * step);
  return ticks;
}

const label = v => Math.abs(v) >= 1e5 || (v !== 0 && Math.abs(v) < 1e-3)
  ? v.toExponential(0) : String(Number(v.toPrecision(6)));

// One shape for each colour, for readers who see no colours.
const shapes = ["M0 -4a4 4 0 1 0 .01 0z", "M-4 -4h8v8h-8z", "M0 -5l5 5l-5 5l-5 -5z", "M0 -5l5 9h-10z", "M0 5l5 -9h-10z",
  "M-2 -5h4v3h3v4h-3v3h-4v-3h-3v-4h3z", "M-5 -3l2 -2l3 3l3 -3l2 2l-3 3l3 3l-2 2l-3 -3l-3 3l-2 -2l3 -3z", "M0 -6l2 4l4 0l-3 3l1 4l-4 -2l-4 2l1 -4l-3 -3l4 0z"];
const mark_ = (at, x, y, colour, parent, size = 1) =>
  make("path", {class: "mark", d: shapes[at % shapes.length], transform: `translate(${x} ${y}) scale(${size})`, fill: colour, opacity: .85}, parent);

// How many of the later series have a point within four units of this one: a marker below has to be larger.
const covering = (later, x, y) =>
  later.filter(places => places.some(([u, v]) => Math.abs(u - x) < 4 && Math.abs(v - y) < 4)).length;

const hiddenNames = new Set();  // switched off by a click on the legend

function draw(chart) {
  const holder = document.getElementById("chart");
  holder.replaceChildren();
  document.getElementById("note").textContent = chart.note;
  const names = [...new Set(chart.series.map(s => s.name))];
  const narrow = small(), width = narrow ? 420 : 900, right = narrow ? 15 : 210;
  const bottom = narrow ? 60 + 18 * names.length : 50;
  const height = narrow ? 320 + bottom : Math.max(480, top_ + 20 + 18 * names.length);
  const colourOf = name => {
    const colour = data.colours[names.indexOf(name) % data.colours.length];
    return colour === "#000000" ? "var(--ink)" : colour;
  };
  const dashOf = name => dashes[Math.floor(names.indexOf(name) / data.colours.length) % dashes.length];
  const svg = make("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": chart.title}, holder);
  const seen = chart.series.filter(s => !hiddenNames.has(s.name));
  const all = key => seen.flatMap(s => s[key] || []);
  const xs = scale(all("x"), chart.log_x, left, width - right);
  const ys = scale([...all("y"), ...all("low"), ...all("high")], chart.log_y, height - bottom, top_);
  for (const v of xs.ticks) {
    make("line", {class: "grid", x1: xs.at(v), x2: xs.at(v), y1: top_, y2: height - bottom}, svg);
    make("text", {x: xs.at(v), y: height - bottom + 18, "text-anchor": "middle"}, svg, label(v));
  }
  for (const v of ys.ticks) {
    make("line", {class: "grid", x1: left, x2: width - right, y1: ys.at(v), y2: ys.at(v)}, svg);
    make("text", {x: left - 8, y: ys.at(v) + 4, "text-anchor": "end"}, svg, label(v));
  }
  make("text", {x: (left + width - right) / 2, y: height - bottom + 42, "text-anchor": "middle"}, svg, chart.x);
  make("text", {transform: `translate(16 ${(height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle"}, svg, chart.y);
  const points = [];
  const placesOf = series => series.x.map((x, i) => [xs.at(x), ys.at(series.y[i]), i]).filter(p => p.every(Number.isFinite));
  const marked = seen.map(series => series.kind === "points" ? placesOf(series) : []);
  for (const [number, series] of seen.entries()) {
    const colour = colourOf(series.name), dash = series.dashed ? "5 4" : dashOf(series.name);
    const places = placesOf(series);
    if (series.kind !== "points" && places.length) {
      const path = places.map(([x, y], i) => i === 0 ? `M${x} ${y}` : series.kind === "steps" ? `H${x}V${y}` : `L${x} ${y}`);
      make("path", {d: path.join(""), fill: "none", stroke: colour, "stroke-width": 2, "stroke-dasharray": dash}, svg);
    }
    for (const [x, y, i] of places) {
      if (series.low && series.low[i] !== null && Number.isFinite(series.low[i]))
        make("line", {x1: x, x2: x, y1: ys.at(series.low[i]), y2: ys.at(series.high[i]), stroke: colour, opacity: .5}, svg);
      if (series.kind === "points")
        mark_(names.indexOf(series.name), x, y, colour, svg, 1 + .6 * covering(marked.slice(number + 1), x, y));
      points.push({x, y, text: series.tips[i] ?? `${series.name}: ${series.x[i]}, ${series.y[i]}`});
    }
  }
  names.forEach((name, at) => {
    const off = hiddenNames.has(name);
    const entry = make("g", {class: off ? "legend off" : "legend", tabindex: 0, role: "button", "aria-pressed": !off}, svg);
    const [x, y] = narrow ? [left, height - bottom + 64 + 18 * at] : [width - right + 10, top_ + 14 + 18 * at];
    make("path", {d: `M${x} ${y - 4}h24`, stroke: colourOf(name), "stroke-width": 3, "stroke-dasharray": dashOf(name)}, entry);
    mark_(at, x + 12, y - 4, colourOf(name), entry);
    make("text", {x: x + 30, y}, entry, name.length > 26 ? name.slice(0, 25) + "…" : name);
    const toggle = () => { off ? hiddenNames.delete(name) : hiddenNames.add(name); draw(chart); };
    entry.addEventListener("click", toggle);
    entry.addEventListener("keydown", event => { if (event.key === "Enter") toggle(); });
  });
  const mark = make("circle", {r: 7, fill: "none", stroke: "var(--ink)", "stroke-width": 2, visibility: "hidden"}, svg);
  svg.addEventListener("mousemove", event => {
    const box = svg.getBoundingClientRect(), zoom = width / box.width;
    const [x, y] = [(event.clientX - box.left) * zoom, (event.clientY - box.top) * zoom];
    let near = null, least = 30 ** 2;
    for (const p of points) {
      const distance = (p.x - x) ** 2 + (p.y - y) ** 2;
      if (distance < least) [near, least] = [p, distance];
    }
    tip.hidden = near === null;
    mark.setAttribute("visibility", near ? "visible" : "hidden");
    if (!near) return;
    mark.setAttribute("cx", near.x);
    mark.setAttribute("cy", near.y);
    tip.textContent = near.text;
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - 260)}px`;
    tip.style.top = `${event.clientY + 14}px`;
  });
  svg.addEventListener("mouseleave", () => { tip.hidden = true; mark.setAttribute("visibility", "hidden"); });
}

// -- any number against any other, of the runs that the filters leave -------------------------------------------

const numeric = heads.map((head, column) => column).filter(isNumber);
const axes = document.getElementById("axes");
const pick = ["x", "y"].map((axis, i) => {
  const box = make("label", {}, axes, `${axis} `);
  const select = make("select", {"data-axis": axis}, box);
  numeric.forEach(column => make("option", {value: column}, select, heads[column].textContent));
  const title = i === 0 ? data.start ?? "seconds" : "objective";
  const wanted = numeric.find(column => heads[column].textContent === title);
  if (wanted !== undefined) select.value = wanted;
  const log = make("label", {}, axes, " logarithmic ");
  return {select, log: make("input", {type: "checkbox"}, log)};
});
axes.addEventListener("input", explore);

function explore() {
  const [x, y] = pick.map(p => Number(p.select.value));
  const method = heads.findIndex(head => head.textContent === "method");
  const groups = new Map();
  for (const row of rows.filter(row => !row.hidden)) {
    const [u, v] = [value(row, x), value(row, y)];
    if (unknown(u) || unknown(v)) continue;
    const name = value(row, method);
    if (!groups.has(name)) groups.set(name, {name, kind: "points", x: [], y: [], tips: [], dashed: false});
    const group = groups.get(name);
    group.x.push(Number(u));
    group.y.push(Number(v));
    group.tips.push(`${row.dataset.title}: ${heads[x].textContent} ${row.cells[x].textContent}, ` +
      `${heads[y].textContent} ${row.cells[y].textContent}`);
  }
  draw({title: "any two numbers", x: heads[x].textContent, y: heads[y].textContent, series: [...groups.values()],
    log_x: pick[0].log.checked, log_y: pick[1].log.checked, note: "The runs that the filters leave."});
}

const tabs = document.getElementById("tabs");
let current = "";

function show(name) {
  current = name;
  [...tabs.children].forEach(tab => tab.setAttribute("aria-pressed", tab.dataset.chart === name));
  axes.hidden = name !== "explore";
  if (name === "explore") explore();
  else draw(data.charts[name]);
}

for (const [name, chart] of [...Object.entries(data.charts), ["explore", {title: "Any two numbers"}]])
  make("button", {type: "button", "data-chart": name}, tabs, chart.title).addEventListener("click", () => show(name));
if (rows.length && numeric.length) {
  document.getElementById("charts").hidden = false;
  show(data.start === null ? tabs.children[0].dataset.chart : "explore");
}
addEventListener("resize", () => { if (current) show(current); });
filter();
