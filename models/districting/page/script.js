"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const n = data.nodes.length, k = data.means.length;
const byId = id => document.getElementById(id);
const palette = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"];  // Okabe and Ito's
const districts = [...Array(k).keys()], nodes = [...Array(n).keys()];

function make(name, attributes = {}, parent = null, text = null) {
  const node = document.createElement(name);
  for (const [key, v] of Object.entries(attributes)) node.setAttribute(key, v);
  if (text !== null) node.textContent = text;
  if (parent) parent.append(node);
  return node;
}

const count = v => v.toLocaleString("en-US");
const exact = v => v.toLocaleString("en-US", {maximumSignificantDigits: 15});  // a bound is not rounded past the value
const number = v => v === null ? "-" : v.toLocaleString("en-US", {maximumSignificantDigits: Number.isInteger(v) ? 16 : 6});
const percent = v => v === null ? "-" : `${(100 * v).toFixed(1)} %`;
const signed = v => v === null ? "-" : v === 0 ? "0.00 %" : `${v < 0 ? "\u2212" : "+"}${(100 * Math.abs(v)).toFixed(2)} %`;
const named = name => name.replaceAll("_", " ").replace("polsby popper", "Polsby-Popper").replace("reock", "Reock");

// -- sums over the units of a district ------------------------------------------------------------------------

function sums(values) {
  const out = Array(k).fill(0);
  values.forEach((v, i) => { out[data.plan[i]] += v; });
  return out;
}
const quotient = (a, b) => a.map((v, i) => b[i] > 0 ? v / b[i] : null);

const people = sums(data.people), size = sums(Array(n).fill(1)), cuts = Array(k).fill(0), crossing = [], inner = [];
const beside = data.plan.map(() => []);
for (const [u, v] of data.edges) {
  beside[u].push(v);
  beside[v].push(u);
  const [a, b] = [data.plan[u], data.plan[v]];
  (a === b ? inner : crossing).push([u, v]);
  if (a !== b) { cuts[a] += 1; cuts[b] += 1; }
}
const [groups, elections] = data.sums;
const shares = Object.entries(groups).map(([name, [part, total]]) => ({name, part, total}));
for (const [name, [first, second]] of Object.entries(elections))
  shares.push({name: `${name}: ${data.parties[name][0]}`, part: first, total: first.map((v, i) => v + second[i])});
for (const share of shares) {
  share.units = quotient(share.part, share.total);
  share.districts = quotient(sums(share.part), sums(share.total));
}

const columns = [["population", people, count], ["deviation", people.map((v, d) => data.means[d] ? v / data.means[d] - 1 : null), signed]];
if (data.seats) columns.push(["seats", data.seats, count]);
columns.push(["units", size, count], ["cut edges", cuts, count]);
for (const share of shares) columns.push([share.name, share.districts, percent]);
for (const [name, values] of Object.entries(data.compactness))
  if (values.length) columns.push([name, values, v => v === null ? "-" : v.toFixed(3)]);

// -- texts ----------------------------------------------------------------------------------------------------

function proof() {
  if (data.violations.length) return "The plan violates constraints:";
  if (!data.status) return "The plan satisfies all constraints. How near it is to the best plan is not stated here.";
  const [less, end] = data.sense === "min" ? ["smaller", "least"] : ["larger", "most"];
  const value = `${data.objective} of this plan is ${number(data.value)}`;
  if (data.status === "optimal") return `Proved: the ${value}, and no plan has a ${less} one.`;
  if (data.bound === null) return `Not proved to be the best: the ${value}; no bound is known.`;
  return `Not proved to be the best: the ${value}, that of any plan at ${end} ${exact(data.bound)}.`;
}
byId("summary").textContent = `${count(n)} units with ${count(people.reduce((a, b) => a + b, 0))} people in ${count(k)} ` +
  `districts; ${count(crossing.length)} of ${count(data.edges.length)} pairs of neighbours are cut.`;
byId("proof").textContent = proof();
byId("violations").hidden = !data.violations.length;
const fromOne = text => text.replace(/^((?:population of |contiguity of )?district )(\d+)/, (_, words, d) => words + (Number(d) + 1));
data.violations.forEach(text => make("li", {}, byId("violations"), fromOne(text)));
byId("drawn").textContent = data.outlined ? "" : "The map has no outlines: units are points, joined to their " +
  "neighbours, and the area around a point is what lies nearest to it.";
for (const [name, v] of Object.entries(data.scores)) {
  make("dt", {}, byId("scores"), named(name));
  make("dd", {"data-score": name}, byId("scores"), number(v));
}

function facts(i) {
  const [name, county] = data.names[i], id = data.nodes[i];
  const title = name === null || String(name) === id ? id : `${name} (${id})`;
  const lines = [`district ${data.plan[i] + 1}`, `population ${count(data.people[i])}`];
  if (county !== null) lines.push(`county ${county}`);
  for (const share of shares) lines.push(`${share.name} ${percent(share.units[i])}`);
  return [title, lines];
}

// -- from the file's coordinates to the plane of the map: 1000 wide or high, downwards -------------------------------

function undone(steps) {
  const out = [];
  let [x, y] = [0, 0];
  for (let i = 0; i < steps.length; i += 2) out.push([data.low[0] + (x += steps[i]) * data.step, data.low[1] + (y += steps[i + 1]) * data.step]);
  return out;
}

function extent(points) {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of points) {
    if (x < box[0]) box[0] = x;
    if (y < box[1]) box[1] = y;
    if (x > box[2]) box[2] = x;
    if (y > box[3]) box[3] = y;
  }
  return box;
}

function planar(lines) {
  const every = lines.flat(2);
  let box = extent(every);
  let move = ([x, y]) => [x, -y];
  if (!data.whole && box[0] >= -180 && box[2] <= 180.01 && box[1] >= -90 && box[3] <= 90.01) {  // Lambert's azimuthal projection
    const wrapped = box[2] - box[0] > 180;  // on both sides of the meridian 180
    const turned = x => wrapped && x < 0 ? x + 360 : x;
    box = extent(every.map(([x, y]) => [turned(x), y]));
    const rad = Math.PI / 180, [lon, lat] = [(box[0] + box[2]) / 2 * rad, (box[1] + box[3]) / 2 * rad];
    move = ([x, y]) => {
      const [a, b] = [turned(x) * rad - lon, y * rad];
      const f = Math.sqrt(2 / Math.max(1e-9, 1 + Math.sin(lat) * Math.sin(b) + Math.cos(lat) * Math.cos(b) * Math.cos(a)));
      return [f * Math.cos(b) * Math.sin(a), -f * (Math.cos(lat) * Math.sin(b) - Math.sin(lat) * Math.cos(b) * Math.cos(a))];
    };
  }
  const moved = lines.map(unit => unit.map(ring => ring.map(move)));
  box = extent(moved.flat(2));
  const scale = 1000 / (Math.max(box[2] - box[0], box[3] - box[1]) || 1);
  return moved.map(unit => unit.map(ring => ring.map(([x, y]) => [(x - box[0]) * scale, (y - box[1]) * scale])));
}

function centre(rings) {  // the centroid of the largest ring
  let best = 0, spot = rings[0][0];
  for (const ring of rings) {
    let [area, sx, sy] = [0, 0, 0];
    const [ox, oy] = ring[0];
    for (let i = 0; i < ring.length; i++) {
      const [a, b] = ring[i], [c, d] = ring[(i + 1) % ring.length];
      const cross = (a - ox) * (d - oy) - (c - ox) * (b - oy);
      area += cross;
      sx += (a + c - 2 * ox) * cross;
      sy += (b + d - 2 * oy) * cross;
    }
    if (Math.abs(area) > best) [best, spot] = [Math.abs(area), [ox + sx / (3 * area), oy + sy / (3 * area)]];
  }
  return spot;
}

const median = values => values.length ? [...values].sort((a, b) => a - b)[values.length >> 1] : 0;

function hull(points) {  // convex, by the chain of Andrew
  const sorted = [...points].sort((p, q) => p[0] - q[0] || p[1] - q[1]);
  const chain = list => list.reduce((out, p) => {
    while (out.length > 1) {
      const [a, b] = [out[out.length - 2], out[out.length - 1]];
      if ((b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0) break;
      out.pop();
    }
    return [...out, p];
  }, []).slice(0, -1);
  return [...chain(sorted), ...chain(sorted.reverse())];
}

// The cell of a point: what lies nearer to it than to the others, within the hull of it, its neighbours, and theirs.
function cells(spots) {
  const far = (i, j) => Math.hypot(spots[i][0] - spots[j][0], spots[i][1] - spots[j][1]);
  const lengths = data.edges.map(([u, v]) => far(u, v)).filter(v => v > 0).sort((a, b) => a - b);
  const usual = median(lengths) || 100, pad = usual / 2;
  const limit = 4 * lengths[Math.floor(.95 * lengths.length)];  // of neighbours; bridges over water are longer
  const linked = beside.map((js, i) => js.filter(j => far(i, j) <= limit));
  const wide = Math.max(usual, 1000 / Math.sqrt(n)), grid = new Map(), key = (a, b) => a * 4096 + b;
  spots.forEach(([x, y], i) => {
    const at = key(Math.floor(x / wide), Math.floor(y / wide));
    grid.has(at) ? grid.get(at).push(i) : grid.set(at, [i]);
  });
  return spots.map(([x, y], i) => {
    const around = [...new Set([i, ...linked[i], ...linked[i].flatMap(j => linked[j])])].map(j => [spots[j][0] - x, spots[j][1] - y]);
    let ring = hull(around.flatMap(([a, b]) => [[a - pad, b - pad], [a + pad, b - pad], [a - pad, b + pad], [a + pad, b + pad]]));
    let most = Math.max(...ring.map(([a, b]) => a * a + b * b));
    const near = [], r = Math.sqrt(most);
    for (let a = Math.floor((x - 2 * r) / wide); a <= Math.floor((x + 2 * r) / wide); a++)
      for (let b = Math.floor((y - 2 * r) / wide); b <= Math.floor((y + 2 * r) / wide); b++)
        for (const j of grid.get(key(a, b)) || []) {
          const [dx, dy] = [spots[j][0] - x, spots[j][1] - y], square = dx * dx + dy * dy;
          if (square > 0 && square < 4 * most) near.push([square, dx, dy]);
        }
    near.sort((p, q) => p[0] - q[0]);
    for (const [square, dx, dy] of near) {
      if (square > 4 * most) break;
      const side = ring.map(([a, b]) => a * dx + b * dy - square / 2);  // positive: nearer to the other point
      if (side.every(s => s <= 0)) continue;
      const next = [];
      ring.forEach((p, t) => {
        const u = (t + 1) % ring.length, q = ring[u];
        if (side[t] <= 0) next.push(p);
        if (side[t] < 0 !== side[u] < 0) {
          const f = side[t] / (side[t] - side[u]);
          next.push([p[0] + f * (q[0] - p[0]), p[1] + f * (q[1] - p[1])]);
        }
      });
      ring = next;
      most = Math.max(...ring.map(([a, b]) => a * a + b * b));
    }
    return [ring.map(([a, b]) => [x + a, y + b])];
  });
}

const placed = planar(data.lines.map(unit => unit.map(undone)));
const spots = data.outlined ? placed.map(centre) : placed.map(unit => unit[0][0]);
const areas = data.outlined ? placed : cells(spots);
const boxes = areas.map(rings => extent(rings.flat()));
const whole = extent(boxes.flatMap(b => [[b[0], b[1]], [b[2], b[3]]]));
const spacing = median(data.edges.map(([u, v]) => Math.hypot(spots[u][0] - spots[v][0], spots[u][1] - spots[v][1]))) || 200;

function traced(rings) {
  const path = new Path2D();
  for (const ring of rings) {
    ring.forEach(([x, y], i) => i ? path.lineTo(x, y) : path.moveTo(x, y));
    path.closePath();
  }
  return path;
}
const kept = [];
const shape = i => kept[i] ??= traced(areas[i]);

// The paths of the districts: their areas, their borders, and the lines within, which two of their units share.
function outlines(areas) {
  const corner = new Map(), seen = new Map();
  const known = ([x, y]) => {
    const at = Math.round((x + 5000) * 500) * 1e8 + Math.round((y + 5000) * 500);
    if (!corner.has(at)) corner.set(at, corner.size);
    return corner.get(at);
  };
  const walks = areas.map(rings => rings.map(ring => {
    const ids = ring.map(known);
    return ids.map((a, t) => {
      const b = ids[(t + 1) % ids.length];
      return a < b ? a * 2 ** 26 + b : b * 2 ** 26 + a;
    });
  }));
  walks.forEach((unit, i) => unit.forEach(ring => ring.forEach(at => {
    const other = seen.get(at);
    seen.set(at, other === undefined ? data.plan[i] : other === data.plan[i] ? -1 : other);
  })));
  const border = districts.map(() => new Path2D()), hair = new Path2D();
  walks.forEach((unit, i) => unit.forEach((ring, r) => {
    let drawing = null;  // a run of segments goes on without a new start
    ring.forEach((at, t) => {
      const path = seen.get(at) === -1 ? hair : border[data.plan[i]], points = areas[i][r];
      if (path !== drawing) path.moveTo(...points[t]);
      path.lineTo(...points[(t + 1) % points.length]);
      drawing = path;
    });
  }));
  return {border, hair, filled: districts.map(d => traced(nodes.filter(i => data.plan[i] === d).flatMap(i => areas[i])))};
}

// Of a large map, corners are put together that a reader of the whole does not tell apart.
const heavy = areas.flat().reduce((a, ring) => a + ring.length, 0) > 5000;
function coarser() {
  const grain = .6, near = v => Math.round(v / grain) * grain;
  return areas.map(rings => rings.map(ring => ring.map(p => p.map(near)).filter(([x, y], t, all) => {
    const [a, b] = all[(t + all.length - 1) % all.length];
    return x !== a || y !== b;
  })).filter(ring => ring.length > 2));
}
let fine = null, coarse = null;
const paths = () => heavy && view.k < 2.5 * fitted ? coarse ??= outlines(coarser()) : fine ??= outlines(areas);

// Neighbours have different colours: the district with the most used colours around it is next (DSATUR). Of the
// colours that are left it gets the rarest, so that few districts look alike; if none is left, the first one that fits.
function colouring(spread = true) {
  if (k <= palette.length) return districts;
  const touching = districts.map(() => new Set());
  for (const [u, v] of crossing) {
    touching[data.plan[u]].add(data.plan[v]);
    touching[data.plan[v]].add(data.plan[u]);
  }
  const found = Array(k).fill(-1), used = districts.map(() => new Set()), often = Array(k).fill(0);
  const first = (a, b) => used[b].size - used[a].size || touching[b].size - touching[a].size;
  for (let left = [...districts]; left.length; left = left.slice(1)) {
    left.sort(first);
    const d = left[0], free = districts.filter(c => !used[d].has(c) && (c < palette.length || !spread));
    if (!free.length) return colouring(false);
    found[d] = spread ? free.reduce((a, b) => often[b] < often[a] ? b : a) : free[0];
    often[found[d]] += 1;
    touching[d].forEach(e => used[e].add(found[d]));
  }
  return found.map(c => c % palette.length);
}
const colour = colouring().map(c => palette[c]);

// -- colours of the page ----------------------------------------------------------------------------------------

const channels = text => [1, 3, 5].map(i => parseInt(text.length === 4 ? text[(i + 1) / 2] + text[(i + 1) / 2] : text.slice(i, i + 2), 16));
const mixed = (a, b, part) => {
  const [from, to] = [channels(a), channels(b)];
  return `rgb(${from.map((v, i) => Math.round(v + (to[i] - v) * part)).join(" ")})`;
};
let ink = {};
function read() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "ink", "border", "hair", "pale", "full", "soft", "strength"]) ink[name] = style.getPropertyValue(`--${name}`).trim();
  const strength = Number(ink.strength) * (data.outlined ? 1 : .65);
  ink.district = colour.map(c => mixed(ink.paper, c, strength));
}

const shade = byId("shade");
make("option", {value: ""}, shade, "by district");
shares.forEach((share, s) => make("option", {value: s}, shade, `by ${share.name}`));
make("option", {value: "people"}, shade, "by population");

function shading() {
  if (shade.value === "") return null;
  const values = shade.value === "people" ? data.people : shares[shade.value].units;
  const most = values.reduce((a, v) => Math.max(a, v ?? 0), 0) || 1;
  return {most, text: shade.value === "people" ? count : percent, of: i => values[i] === null ? ink.paper : mixed(ink.pale, ink.full, values[i] / most)};
}

// -- drawing ------------------------------------------------------------------------------------------------------

const map = byId("map"), base = byId("base"), top_ = byId("top"), tip = byId("tip");
const store = document.createElement("canvas");
const view = {k: 1, x: 0, y: 0}, stored = {k: 1, x: 0, y: 0};
let [width, height, dpr, fitted, waiting, rest] = [0, 0, 1, 1, false, 0];
const margin = .3;  // of the view, on each side of the painted picture
let shown = null, chosen = null, current = null, pinned = false;  // districts, and the unit

const lay = (ctx, right = 0, down = 0) => ctx.setTransform(dpr * view.k, 0, 0, dpr * view.k, dpr * (view.x + right), dpr * (view.y + down));

function near(i) {  // whether it lies in the painted picture
  const box = boxes[i], [x, y] = [margin * width, margin * height];
  return box[2] * view.k + view.x > -x && box[0] * view.k + view.x < width + x &&
    box[3] * view.k + view.y > -y && box[1] * view.k + view.y < height + y;
}

function paint() {
  const ctx = store.getContext("2d"), px = 1 / view.k, by = shading(), {border, hair, filled} = paths();
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.clearRect(0, 0, store.width, store.height);
  lay(ctx, margin * width, margin * height);
  ctx.lineJoin = ctx.lineCap = "round";
  for (const d of districts) {  // the inner half of a border is painted over
    ctx.strokeStyle = ink.border;
    ctx.lineWidth = (data.outlined ? 3.2 : 2.4) * px;
    ctx.stroke(border[d]);
    ctx.fillStyle = by ? ink.paper : ink.district[d];
    ctx.fill(filled[d]);
    if (by) nodes.forEach(i => { if (data.plan[i] === d && near(i)) { ctx.fillStyle = by.of(i); ctx.fill(shape(i)); } });
  }
  ctx.lineCap = "butt";
  if (data.outlined || by) {
    ctx.strokeStyle = by ? ink.border : ink.hair;
    ctx.globalAlpha = by ? .25 : .6;
    ctx.lineWidth = Math.min(.8, spacing * view.k / 25) * px;
    ctx.stroke(hair);
    ctx.globalAlpha = 1;
  }
  if (byId("links").checked) graph(ctx, px, by);
  labels(ctx);
}

function graph(ctx, px, by) {
  const thin = Math.min(1.3, spacing * view.k / 12) * px;
  for (const [edges, alpha] of by ? [[inner, .3]] : [[inner, .75], [crossing, .3]]) {
    const path = new Path2D();
    for (const [u, v] of edges) { path.moveTo(...spots[u]); path.lineTo(...spots[v]); }
    ctx.strokeStyle = ink.soft;
    ctx.globalAlpha = alpha;
    ctx.lineWidth = thin;
    ctx.stroke(path);
  }
  ctx.globalAlpha = 1;
  if (by) return;  // the colours of the units are to be seen
  const r = Math.min(7, Math.max(1.1, spacing * view.k / 5)) * px;
  const dot = (path, i) => { path.moveTo(spots[i][0] + r, spots[i][1]); path.arc(spots[i][0], spots[i][1], r, 0, 7); };
  ctx.strokeStyle = ink.border;
  ctx.lineWidth = Math.min(.8 * px, r / 4);
  for (const d of districts) {
    const path = new Path2D();
    nodes.forEach(i => { if (data.plan[i] === d) dot(path, i); });
    ctx.fillStyle = colour[d];
    ctx.fill(path);
    ctx.stroke(path);
  }
}

const middles = districts.map(d => {
  const own = nodes.filter(i => data.plan[i] === d);
  const [x, y] = [0, 1].map(a => own.reduce((s, i) => s + spots[i][a], 0) / own.length);
  return own.reduce((best, i) => {
    const far = (spots[i][0] - x) ** 2 + (spots[i][1] - y) ** 2;
    return best === null || far < best[0] ? [far, i] : best;
  }, null)?.[1];
});

function labels(ctx) {
  ctx.setTransform(dpr, 0, 0, dpr, dpr * margin * width, dpr * margin * height);
  ctx.font = "600 14px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.lineJoin = "round";
  const taken = [];
  districts.forEach(d => {
    if (middles[d] === undefined) return;
    const [x, y] = [spots[middles[d]][0] * view.k + view.x, spots[middles[d]][1] * view.k + view.y];
    if (taken.some(([a, b]) => Math.abs(a - x) < 22 && Math.abs(b - y) < 16)) return;
    taken.push([x, y]);
    ctx.strokeStyle = ink.paper;
    ctx.lineWidth = 4;
    ctx.strokeText(d + 1, x, y);
    ctx.fillStyle = ink.ink;
    ctx.fillText(d + 1, x, y);
  });
}

function highlight() {  // on a canvas of its own: the others are dimmed
  const ctx = top_.getContext("2d"), px = 1 / view.k, d = shown ?? chosen, {border, filled} = paths();
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.clearRect(0, 0, top_.width, top_.height);
  if (d !== null) {
    ctx.globalAlpha = .72;
    ctx.fillStyle = ink.paper;
    ctx.fillRect(0, 0, top_.width, top_.height);
    ctx.globalAlpha = 1;
    lay(ctx);
    ctx.lineJoin = ctx.lineCap = "round";
    ctx.strokeStyle = ink.border;
    ctx.lineWidth = 5 * px;
    ctx.stroke(border[d]);
    ctx.globalCompositeOperation = "destination-out";
    ctx.fill(filled[d]);
    ctx.globalCompositeOperation = "source-over";
  }
  if (current !== null) {
    lay(ctx);
    ctx.lineJoin = "round";
    for (const [style, wide] of [[ink.paper, 5], [ink.border, 2.5]]) {
      ctx.strokeStyle = style;
      ctx.lineWidth = wide * px;
      ctx.stroke(shape(current));
    }
  }
  map.dataset.district = d === null ? "" : d + 1;
  for (const [e, row] of rows.entries()) {
    row.classList.toggle("shown", e === d || current !== null && e === data.plan[current]);
    row.classList.toggle("chosen", e === chosen);
    row.querySelector("button").setAttribute("aria-pressed", e === chosen);
  }
}

function frame() {
  waiting = false;
  if (!heavy || !rest) {  // a large map is moved as a picture, and painted when it rests
    paint();
    Object.assign(stored, view);
  }
  const ctx = base.getContext("2d"), f = view.k / stored.k;
  ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
  ctx.clearRect(0, 0, width, height);
  ctx.drawImage(store, view.x - (stored.x + margin * width) * f, view.y - (stored.y + margin * height) * f,
    store.width / dpr * f, store.height / dpr * f);
  highlight();
  map.dataset.zoom = (view.k / fitted).toFixed(3);
  map.dataset.at = `${view.x.toFixed(1)} ${view.y.toFixed(1)}`;
  if (current !== null) point();
}

function draw(moving = false) {
  clearTimeout(rest);
  rest = moving && heavy ? setTimeout(() => draw(), 140) : 0;
  if (!waiting) requestAnimationFrame(frame);
  waiting = true;
}

// -- moving and zooming ---------------------------------------------------------------------------------------------

function bounded() {  // some of the map stays in sight
  const keep = 60;
  view.k = Math.min(Math.max(view.k, fitted * .7), fitted * 400);
  view.x = Math.min(Math.max(view.x, keep - whole[2] * view.k), width - keep - whole[0] * view.k);
  view.y = Math.min(Math.max(view.y, keep - whole[3] * view.k), height - keep - whole[1] * view.k);
}

function zoom(factor, x = width / 2, y = height / 2) {
  const old = view.k;
  view.k = Math.min(Math.max(view.k * factor, fitted * .7), fitted * 400);
  view.x = x - (x - view.x) * view.k / old;
  view.y = y - (y - view.y) * view.k / old;
  bounded();
  draw(true);
}

function move(dx, dy) {
  view.x += dx;
  view.y += dy;
  bounded();
  draw(true);
}

function fit() {
  const room = 24;
  fitted = view.k = Math.min((width - 2 * room) / (whole[2] - whole[0] || 1), (height - 2 * room) / (whole[3] - whole[1] || 1));
  view.x = (width - (whole[0] + whole[2]) * view.k) / 2;
  view.y = (height - (whole[1] + whole[3]) * view.k) / 2;
  draw();
}

new ResizeObserver(() => {
  const first = width === 0, kept = view.k / fitted;
  const middle = [(width / 2 - view.x) / view.k, (height / 2 - view.y) / view.k];
  [width, height, dpr] = [map.clientWidth, map.clientHeight, window.devicePixelRatio || 1];
  for (const canvas of [base, top_, store]) {
    const scale = canvas === store ? dpr * (1 + 2 * margin) : dpr;
    [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  }
  fit();
  if (first || Math.abs(kept - 1) < 1e-9) return;
  view.k = fitted * kept;
  [view.x, view.y] = [width / 2 - middle[0] * view.k, height / 2 - middle[1] * view.k];
  bounded();
}).observe(map);

// -- units ------------------------------------------------------------------------------------------------------------

function unitAt(x, y) {
  const [a, b] = [(x - view.x) / view.k, (y - view.y) / view.k], ctx = top_.getContext("2d");
  const found = nodes.filter(i => {
    const box = boxes[i];
    return a >= box[0] && a <= box[2] && b >= box[1] && b <= box[3];
  });
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  return found.find(i => ctx.isPointInPath(shape(i), a, b)) ?? null;
}

function point(x = null, y = null) {  // the tip at the pointer, else at the unit
  [x, y] = x === null ? [spots[current][0] * view.k + view.x, spots[current][1] * view.k + view.y] : [x, y];
  if (point.at && point.unit === current && pinned === false) [x, y] = point.at;
  tip.hidden = x < 0 || y < 0 || x > width || y > height;
  tip.style.left = `${Math.max(4, Math.min(x + 16, width - tip.offsetWidth - 6))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > height ? Math.max(4, y - tip.offsetHeight - 12) : y + 18}px`;
}

function show(i, at = null, keep = false) {
  pinned = keep;
  point.at = at;
  point.unit = i;
  if (i !== current) {
    current = i;
    tip.hidden = i === null;
    tip.replaceChildren();
    if (i !== null) {
      const [title, lines] = facts(i);
      make("strong", {}, tip, title);
      lines.forEach(line => make("div", {}, tip, line));
    }
    highlight();
  }
  if (i === null) return;
  point(...(at ?? []));
  if (keep) byId("said").textContent = facts(i).flat().join("; ");
}

function visit(i, closer = 1) {  // brings a unit into sight
  view.k = Math.max(view.k, fitted * closer);
  const [x, y] = [spots[i][0] * view.k + view.x, spots[i][1] * view.k + view.y];
  if (x < 50 || y < 50 || x > width - 50 || y > height - 50 || closer > 1)
    [view.x, view.y] = [width / 2 - spots[i][0] * view.k, height / 2 - spots[i][1] * view.k];
  bounded();
  show(i, null, true);
  draw();
}

function step(dx, dy) {  // to the neighbour that lies most in this direction
  if (current === null) {
    const [x, y] = [(width / 2 - view.x) / view.k, (height / 2 - view.y) / view.k];
    const far = i => (spots[i][0] - x) ** 2 + (spots[i][1] - y) ** 2;
    return visit(nodes.reduce((a, b) => far(b) < far(a) ? b : a));
  }
  const [x, y] = spots[current];
  let [best, next] = [.3, null];
  for (const j of beside[current]) {
    const [a, b] = [spots[j][0] - x, spots[j][1] - y], along = (a * dx + b * dy) / (Math.hypot(a, b) || 1);
    if (along > best) [best, next] = [along, j];
  }
  if (next !== null) visit(next);
}

// -- pointers, wheel, keys ------------------------------------------------------------------------------------------------

const held = new Map();
let moved = 0;
const place = event => {
  const box = top_.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};

top_.addEventListener("pointerdown", event => {
  top_.setPointerCapture(event.pointerId);
  held.set(event.pointerId, place(event));
  if (held.size === 1) moved = 0;
});
top_.addEventListener("pointermove", event => {
  const at = place(event), from = held.get(event.pointerId);
  if (!from) {
    if (event.pointerType === "mouse") {
      const i = unitAt(...at);
      if (i !== null || !pinned) show(i, at);
    }
    return;
  }
  moved += Math.hypot(at[0] - from[0], at[1] - from[1]);
  if (held.size === 1 && moved > 4) {
    top_.classList.add("dragged");
    if (point.at) show(null);
    move(at[0] - from[0], at[1] - from[1]);
  } else if (held.size === 2) {
    const other = [...held].find(([id]) => id !== event.pointerId)[1];
    const apart = p => Math.hypot(p[0] - other[0], p[1] - other[1]);
    const [mx, my] = [(at[0] + other[0]) / 2, (at[1] + other[1]) / 2];
    move((at[0] - from[0]) / 2, (at[1] - from[1]) / 2);
    if (apart(from) > 0) zoom(apart(at) / apart(from), mx, my);
  }
  held.set(event.pointerId, at);
});
for (const kind of ["pointerup", "pointercancel"])
  top_.addEventListener(kind, event => {
    if (!held.delete(event.pointerId)) return;
    top_.classList.remove("dragged");
    if (kind === "pointerup" && held.size === 0 && moved <= 4) {
      const at = place(event), i = unitAt(...at);
      show(i, i === null || event.pointerType === "mouse" ? at : null, i !== null);
      choose(i === null || chosen === data.plan[i] && event.pointerType === "mouse" ? null : data.plan[i]);
    }
  });
top_.addEventListener("pointerleave", () => { if (!pinned && held.size === 0) show(null); });
top_.addEventListener("wheel", event => {
  event.preventDefault();
  const lines = event.deltaMode === 1 ? 20 : 1;
  zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? .01 : .0016)), ...place(event));
}, {passive: false});

const arrows = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
top_.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const [dx, dy] = arrows[event.key] ?? [0, 0];
  if (dx || dy) event.shiftKey ? step(dx, dy) : move(-80 * dx, -80 * dy);
  else if (event.key === "+" || event.key === "=") zoom(1.5);
  else if (event.key === "-" || event.key === "_") zoom(1 / 1.5);
  else if (event.key === "0" || event.key === "Home") fit();
  else if (event.key === "Enter" && current !== null) choose(chosen === data.plan[current] ? null : data.plan[current]);
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", event => {
  if (event.key !== "Escape") return;
  shown = null;
  show(null);
  choose(null);
});
map.style.setProperty("--ratio", (whole[3] - whole[1]) / (whole[2] - whole[0]) || 1);
top_.setAttribute("aria-label", `Map of ${count(n)} units in ${count(k)} districts`);

byId("in").addEventListener("click", () => zoom(1.6));
byId("out").addEventListener("click", () => zoom(1 / 1.6));
byId("all").addEventListener("click", fit);

// -- tools and table ------------------------------------------------------------------------------------------------------

const titles = nodes.map(i => facts(i)[0]);
const listed = new DocumentFragment();
titles.forEach(value => make("option", {value}, listed));
byId("names").append(listed);
byId("tools").addEventListener("submit", event => event.preventDefault());
byId("find").addEventListener("change", () => {
  const text = byId("find").value.trim().toLowerCase();
  if (!text) return;
  const tests = [t => t === text, t => t.startsWith(text), t => t.includes(text)];
  const at = tests.reduce((found, test) => found >= 0 ? found : titles.findIndex(t => test(t.toLowerCase())), -1);
  if (at < 0) byId("said").textContent = `No unit has the name ${text}.`;
  else visit(at, Math.min(12, Math.max(1, Math.sqrt(n) / 8)));
});
byId("links").checked = !data.outlined;
byId("links").addEventListener("change", () => draw());
shade.addEventListener("change", () => {
  const by = shading(), scale = byId("scale");
  scale.hidden = by === null;
  scale.replaceChildren();
  if (by) {
    scale.append(`${shade.selectedOptions[0].textContent.replace(/^by /, "")} of a unit: ${by.text(0)}`);
    make("i", {}, scale);
    scale.append(by.text(by.most));
  }
  draw();
});

function choose(d) {
  chosen = d;
  draw();
}

const table = byId("districts"), body = table.tBodies[0];
const rows = districts.map(d => {
  const row = make("tr", {"data-district": d + 1}, body), head = make("th", {scope: "row"}, row);
  const button = make("button", {type: "button", "aria-pressed": "false", "aria-label": `highlight district ${d + 1}`}, head);
  const swatch = make("span", {class: "swatch"}, button);
  swatch.style.background = colour[d];
  button.append(d + 1);
  for (const [, values, text] of columns) make("td", {"data-value": values[d]}, row, text(values[d]));
  row.addEventListener("pointerenter", event => { if (event.pointerType === "mouse") { shown = d; highlight(); } });
  row.addEventListener("pointerleave", () => { shown = null; highlight(); });
  button.addEventListener("focus", () => { if (button.matches(":focus-visible")) { shown = d; highlight(); } });
  button.addEventListener("blur", () => { shown = null; highlight(); });
  row.addEventListener("click", () => {
    if (pinned) show(null);
    choose(chosen === d ? null : d);
  });
  return row;
});

[["district", districts], ...columns].forEach(([name, values]) => {
  const head = make("th", {scope: "col"}, table.tHead.rows[0]);
  make("button", {type: "button"}, head, name).addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    [...head.parentNode.cells].forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const last = v => v === null ? Infinity : down ? -v : v;
    [...districts].sort((a, b) => last(values[a]) - last(values[b]) || a - b).forEach(d => body.append(rows[d]));
  });
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { read(); draw(); });
read();
