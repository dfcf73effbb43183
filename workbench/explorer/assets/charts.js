// Figures as SVG, from the plain data of workbench/explorer/figures.py. No text is ever parsed as HTML. Colours are
// variables of explorer.css, so that a chart follows the theme; saved ones have the colours of paper.

const HUES = 8, DASHES = ["", "7 3", "2 3", "9 3 2 3"];
const hue = (k) => `var(--s${k % HUES})`;

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) node.setAttribute(name, value);
  node.append(...children);
  if (tag === "text") node.setAttribute("aria-hidden", "true");  // the chart has a name, and its numbers are a table
  return node;
}

// A number in at most five digits, for axes and readouts; tables show nine.
function short(value, digits = 5) {
  if (typeof value !== "number") return value === null || value === undefined ? "-" : String(value);
  const text = String(Number(value.toPrecision(digits)));
  return Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-4) ? Number(value.toPrecision(digits)).toExponential().replace("e+", "e") : text;
}

function ticks(low, high, log, most = 6) {
  if (log) {
    const found = [];
    for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++)
      for (const m of [1, 2, 5]) found.push(Number((m * 10 ** k).toPrecision(3)));
    let inside = found.filter((v) => v >= low * 0.999 && v <= high * 1.001);
    if (inside.length < 3) return ticks(low, high, false, most).filter((v) => v > 0);
    if (inside.length > most) inside = inside.filter((v) => /^1(e|0|$)|^0\.0*1$/.test(String(v)));
    const every = Math.ceil(inside.length / most);
    return inside.filter((_, k) => (inside.length - 1 - k) % every === 0);
  }
  const raw = (high - low) / most || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= raw * 0.999);
  const first = Math.ceil(low / step - 1e-9), count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, Math.min(count, 2 * most)) }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

// zero: the place of 0 apart from a logarithmic scale, null where there is none.
function scale(low, high, from, to, log, zero = null) {
  const f = log ? Math.log : (v) => v, span = f(high) - f(low) || 1;
  const at = (v) => (zero !== null && v <= 0 ? zero : from + ((f(v) - f(low)) / span) * (to - from));
  at.invert = (p) => {
    if (zero !== null && p < (zero + from) / 2) return 0;
    const t = f(low) + ((Math.max(p, Math.min(from, to)) - from) / (to - from)) * span;
    return log ? Math.exp(t) : t;
  };
  at.log = log;
  return at;
}

const LEFT = 72, RIGHT = 16, TOP = 14, BOTTOM = 46;

function frame(width, height, figure, x, y, xTicks, yTicks, names) {
  const left = LEFT, bottom = height - BOTTOM, right = width - RIGHT, top = TOP, parts = [];
  for (const v of yTicks) {
    parts.push(svg("line", { x1: left, x2: right, y1: y(v), y2: y(v), stroke: "var(--grid)" }));
    parts.push(svg("text", { x: left - 7, y: y(v) + 4, "text-anchor": "end" }, short(v)));
  }
  for (const v of xTicks) {
    parts.push(svg("line", { x1: x(v), x2: x(v), y1: bottom, y2: bottom + 4, stroke: "var(--axis)" }));
    parts.push(svg("text", { x: x(v), y: bottom + 18, "text-anchor": "middle" }, names?.x ? names.x(v) : short(v)));
  }
  parts.push(svg("path", { d: `M${left},${top}V${bottom}H${right}`, fill: "none", stroke: "var(--axis)" }));
  parts.push(svg("text", { x: (left + right) / 2, y: height - 8, "text-anchor": "middle" }, figure.x.label));
  parts.push(svg("text", { x: 14, y: (top + bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(top + bottom) / 2})` }, figure.y.label));
  return { parts, left, right, top, bottom };
}

function trace(xs, ys, x, y, steps = false) {
  let path = "", pen = false;
  xs.forEach((v, i) => {
    if (v === null || ys[i] === null || !Number.isFinite(ys[i])) { pen = false; return; }
    const at = x(v).toFixed(1), up = y(ys[i]).toFixed(1);
    path += !pen ? `M${at},${up}` : steps ? `H${at}V${up}` : `L${at},${up}`;
    pen = true;
  });
  return path;
}

// A straight piece, which a logarithmic axis bends.
function bent(xs, ys, x) {
  if (!x.log || xs[0] === xs[1]) return [xs, ys];
  const from = Math.max(xs[0], xs[1] * 1e-6), share = (k) => (from * (xs[1] / from) ** (k / 24) - xs[0]) / (xs[1] - xs[0]);
  const places = [...(xs[0] <= 0 ? [0] : []), ...Array.from({ length: 25 }, (_, k) => share(k))];
  return [places.map((t) => xs[0] + t * (xs[1] - xs[0])), places.map((t) => ys[0] + t * (ys[1] - ys[0]))];
}

const SHAPES = [
  (a, b, r) => `M${a - r},${b}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0Z`,
  (a, b, r) => `M${a - r},${b - r}h${2 * r}v${2 * r}h${-2 * r}Z`,
  (a, b, r) => `M${a},${b - 1.3 * r}L${a + 1.2 * r},${b + r}H${a - 1.2 * r}Z`,
  (a, b, r) => `M${a},${b - 1.3 * r}L${a + 1.3 * r},${b}L${a},${b + 1.3 * r}L${a - 1.3 * r},${b}Z`,
];

function drawSeries(one, x, y) {
  const colour = hue(one.colour), line = { fill: "none", stroke: colour, "stroke-width": 2, "stroke-linejoin": "round" };
  const dash = DASHES[one.colour % DASHES.length], shape = SHAPES[one.colour % SHAPES.length];
  const points = (fill, r = 3.4) => one.x.flatMap((v, i) => v === null || !Number.isFinite(one.y[i]) ? [] :
    [svg("path", { d: shape(x(v), y(one.y[i]), r), fill, stroke: colour, "stroke-width": 1.6 })]);
  if (one.look === "hollow" || one.look === "proven") return [svg("path", { ...line, "stroke-width": 1.2, opacity: 0.55, d: trace(one.x, one.y, x, y, one.steps) }), ...points(one.look === "proven" ? colour : "var(--paper)")];
  if (one.look === "halo") return points(colour, 7).map((mark) => { mark.setAttribute("opacity", 0.35); return mark; });
  if (one.look === "filled") return points(colour, 4);
  if (one.look === "area") {
    const path = trace(one.x, one.y, x, y, one.steps), ends = [one.x[0], one.x.at(-1)].map((v) => x(v).toFixed(1));
    return [svg("path", { d: `${path}V${y(0)}H${ends[0]}Z`, fill: colour, opacity: 0.25 }), svg("path", { ...line, d: path })];
  }
  if (one.look === "band") {
    // Backwards the steps keep the bound of the point on the right: between two points nothing better is proven.
    const up = trace(one.x, one.y, x, y, one.steps), down = trace([...one.x].reverse(), [...one.low].reverse(), x, y, one.steps);
    return [svg("path", { d: `${up}${down.replace("M", "L")}Z`, fill: colour, opacity: 0.22 })];
  }
  if (one.look.endsWith("segments")) {
    const found = [];
    for (let k = 0; k + 1 < one.x.length; k += 2) {
      const [xs, ys] = bent(one.x.slice(k, k + 2), one.y.slice(k, k + 2), x);
      found.push(svg("path", { ...line, d: trace(xs, ys, x, y), "stroke-dasharray": one.look === "segments" ? null : "5 3" }));
      found.push(svg("path", { d: `M${x(one.x[k])},${y(one.y[k]) - 4}v8`, stroke: colour }));
    }
    return found;
  }
  return [svg("path", { ...line, d: trace(one.x, one.y, x, y, one.steps), "stroke-dasharray": one.look === "dashed" ? "6 4" : dash || null })];
}

// How a legend shows a series, on 26 x 12.
function marks(one) {
  const at = ["hollow", "filled", "halo", "proven"].includes(one.look) ? [13] : [1, 25];
  const shown = one.look === "band" || one.look === "area" ? { ...one, look: "band", x: [1, 25], y: [1, 1], low: [11, 11], steps: false } : { ...one, x: at, y: at.map(() => 6), steps: false };
  return drawSeries(shown, (v) => v, (v) => v);
}

const swatch = (one) => svg("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, ...marks(one));

// The legend and the note under a chart that is saved; what is returned takes them away again.
function legended(node, series, note = "") {
  const [, , width, height] = node.getAttribute("viewBox").split(" ").map(Number), rows = svg("g");
  let x = LEFT, y = height + 12;
  for (const one of series) {
    const wide = 46 + 6.6 * one.name.length;
    if (x > LEFT && x + wide > width) { x = LEFT; y += 18; }
    rows.append(svg("g", { transform: `translate(${x},${y - 10})` }, ...marks(one), svg("text", { x: 32, y: 10 }, one.name)));
    x += wide;
  }
  if (series.length) y += 18;
  for (const line of note.match(new RegExp(`.{1,${Math.max(20, Math.floor((width - LEFT) / 6.6))}}(\\s|$)`, "g")) ?? []) {
    rows.append(svg("text", { x: LEFT, y }, line.trim()));
    y += 18;
  }
  if (series.length || note) { node.append(rows); node.setAttribute("viewBox", `0 0 ${width} ${y - 8}`); }
  return () => { rows.remove(); node.setAttribute("viewBox", `0 0 ${width} ${height}`); };
}

const tallness = (width) => Math.max(230, Math.min(320, width * 0.56));

// lines: mark {x, y, proven}; drag(x, done): the reader moves the mark; limit(y, done): moves the error instead; pins:
// further points {name, x, y}.
function drawLines(figure, width, { mark, drag, limit, pins = [] } = {}) {
  const height = tallness(width), xs = [], ys = [];
  const pinned = pins.filter((one) => Number.isFinite(one.x) && Number.isFinite(one.y)).map((one, k) => ({ name: one.name, look: "filled", colour: 3 + k, x: [one.x], y: [one.y] }));
  const shown = [...figure.series, ...pinned];
  for (const one of shown) one.x.forEach((v, i) => {
    if (v === null || !Number.isFinite(one.y[i])) return;
    xs.push(v); ys.push(one.y[i]);
    if (one.low && Number.isFinite(one.low[i])) ys.push(one.low[i]);
  });
  if (!xs.length) return null;
  const above = xs.filter((v) => v > 0), zero = figure.zero && above.length > 0 && above.length < xs.length;
  const logX = figure.x.log && above.length > 0 && (zero || above.length === xs.length), logY = figure.y.log && Math.min(...ys) > 0;
  const highY = Math.max(...ys), lowY = Math.min(...ys);
  const y0 = logY ? lowY / 1.15 : Math.min(0, lowY), y1 = logY ? highY * 1.15 : (highY + 0.05 * (highY - y0)) || 1;
  const x0 = Math.min(...(logX ? above : xs)), far = Math.max(...xs), x1 = far - x0 > 1e-9 * Math.abs(far) ? far : x0 + 1;
  const apart = zero && logX;
  const x = scale(x0, x1, LEFT + (apart ? 44 : 8), width - RIGHT - 8, logX, apart ? LEFT + 12 : null), y = scale(y0, y1, height - BOTTOM, TOP, logY);
  const root = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": figure.title });
  const at = ticks(x0, x1, logX, width < 420 ? 4 : 7);
  const box = frame(width, height, figure, x, y, apart ? [0, ...at] : at, ticks(y0, y1, logY));
  root.append(...box.parts);
  if (apart) root.append(svg("path", { d: `M${LEFT + 26},${box.bottom - 5}l-4,10m10,-10l-4,10`, stroke: "var(--axis)", fill: "none" }));
  for (const one of shown) root.append(...drawSeries(one, x, y));
  const guide = svg("g"), over = svg("g");
  let knob = null;
  root.append(guide, over);
  root.place = (where) => {
    guide.replaceChildren();
    if (knob && Number.isFinite(where?.y) && where.y >= y0 && where.y <= y1) knob.setAttribute("transform", `translate(${box.right},${y(where.y)})`);
    if (!where || !Number.isFinite(where.x) || where.x > x1 || (where.x < x0 && !(apart && where.x === 0))) return;
    guide.append(svg("line", { x1: x(where.x), x2: x(where.x), y1: box.top, y2: box.bottom, stroke: "var(--ink)", "stroke-dasharray": "4 3" }));
    if (Number.isFinite(where.y) && where.y >= y0 && where.y <= y1)
      guide.append(svg("circle", { cx: x(where.x), cy: y(where.y), r: 6.5, fill: where.proven ? "var(--good)" : "var(--paper)", stroke: "var(--ink)", "stroke-width": 2 }));
  };
  root.place(mark);
  const where = (event) => {
    const r = root.getBoundingClientRect(), k = width / r.width;
    return [(event.clientX - r.left) * k, (event.clientY - r.top) * k];
  };
  hover(root, over, where, box, shown, x, y, figure);
  const inside = (v) => Math.min(Math.max(v, box.left), box.right);
  if (drag) {
    root.style.cursor = "ew-resize";
    moves(root, where, (px, py, done) => drag(x.invert(inside(px)), done), (px, py) => px >= box.left - 2 && py <= box.bottom);
  }
  if (limit && mark && Number.isFinite(mark.y) && mark.y >= y0 && mark.y <= y1) {
    knob = svg("path", { class: "knob", d: "M1,0l13,-7v14z", transform: `translate(${box.right},${y(mark.y)})`, fill: "var(--ink)", style: "cursor:ns-resize" });
    knob.append(svg("title", {}, `Drag the ${figure.y.label}: finds the least ${figure.x.label}`));
    moves(knob, where, (px, py, done) => {
      const up = Math.min(Math.max(py, box.top), box.bottom);
      knob.setAttribute("transform", `translate(${box.right},${up})`);
      over.replaceChildren(svg("line", { x1: box.left, x2: box.right, y1: up, y2: up, stroke: "var(--ink)", "stroke-dasharray": "2 3" }));
      limit(y.invert(up), done);
    });
    root.append(knob);
  }
  return root;
}

function moves(node, where, tell, starts = () => true) {
  node.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !starts(...where(event))) return;
    event.preventDefault(); event.stopPropagation();
    const move = (e) => tell(...where(e), false);
    const up = (e) => { removeEventListener("pointermove", move); removeEventListener("pointerup", up); tell(...where(e), true); };
    addEventListener("pointermove", move); addEventListener("pointerup", up);
    tell(...where(event), false);
  });
}

function hover(root, over, where, box, shown, x, y, figure) {
  root.addEventListener("pointerleave", () => over.replaceChildren());
  root.addEventListener("pointermove", (event) => {
    if (event.buttons) return;
    const [px, py] = where(event);
    let best = null;
    for (const one of shown) one.x.forEach((v, i) => {
      if (v === null || !Number.isFinite(one.y[i])) return;
      const far = Math.hypot(x(v) - px, y(one.y[i]) - py);
      if (!best || far < best.far) best = { far, v, w: one.y[i], one };
    });
    over.replaceChildren();
    if (!best || best.far > 60) return;
    const text = `${figure.x.label.split(",")[0]} ${short(best.v)}: ${short(best.w, 7)} (${best.one.name})`;
    over.append(svg("circle", { cx: x(best.v), cy: y(best.w), r: 5, fill: "none", stroke: "var(--ink)" }), ...tip(text, x(best.v), y(best.w), box.right));
  });
}

// Words above a place.
function tip(text, x, y, right) {
  const wide = text.length * 6.6 + 10, at = Math.min(Math.max(x - wide / 2, 2), Math.max(2, right - wide)), up = Math.max(y - 30, 0);
  return [svg("rect", { x: at, y: up, width: wide, height: 20, rx: 3, fill: "var(--paper)", stroke: "var(--axis)" }), svg("text", { x: at + 5, y: up + 14, class: "tip" }, text)];
}

// bars: others {name, colour, x (labels as numbers), y}: outlines over them.
function drawBars(figure, width, { proven } = {}) {
  const height = tallness(width), count = figure.values.length, others = figure.others ?? [];
  const place = new Map(figure.labels.map((name, i) => [Number(name), i]));
  const placed = others.map((one) => figure.labels.map((name) => { const k = one.x.indexOf(Number(name)); return k < 0 ? 0 : one.y[k]; }));
  const high = Math.max(...figure.values, ...placed.flat()) * 1.06 || 1;
  const x = scale(-0.5, count - 0.5, LEFT, width - RIGHT, false), y = scale(0, high, height - BOTTOM, TOP, false);
  const every = Math.max(1, Math.ceil(count / Math.max(4, (width - 90) / (10 + 8 * Math.max(...figure.labels.map((name) => name.length))))));
  const middle = place.has(0) ? place.get(0) % every : 0, at = figure.labels.map((_, i) => i).filter((i) => i % every === middle);
  const root = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": figure.title });
  const box = frame(width, height, { x: { label: figure.x }, y: { label: figure.y } }, x, y, at, ticks(0, high, false), { x: (i) => figure.labels[i] });
  const wide = Math.max(1, (x(1) - x(0)) * 0.76), solid = proven !== false;
  root.append(...box.parts, ...figure.values.map((v, i) => {
    const bar = svg("rect", { x: x(i) - wide / 2, width: wide, y: y(v), height: Math.max(0, y(0) - y(v)), fill: hue(0), "fill-opacity": solid ? 1 : 0.45, stroke: hue(0), "stroke-width": wide > 6 ? 1.2 : 0.5 });
    bar.append(svg("title", {}, `${figure.labels[i]}: ${short(v, 9)}`));
    return bar;
  }));
  placed.forEach((values, k) => {
    const [from, to] = [0, 1].map((end) => values.map((_, i) => i - 0.5 + end)), xs = from.flatMap((v, i) => [v, to[i]]), ys = values.flatMap((v) => [v, v]);
    root.append(svg("path", { d: trace(xs, ys, x, y), fill: "none", stroke: hue(others[k].colour), "stroke-width": 1.8, "stroke-dasharray": DASHES[others[k].colour % DASHES.length] || null }));
  });
  return root;
}

// The larger the darker on light paper, the brighter on dark paper: an opacity of one colour would lose small values, so
// it is a scale of five colours, from explorer.css.
const SHADES = 5;
function shade(t) {
  const p = Math.min(Math.max(t, 0), 1) * (SHADES - 1), k = Math.min(Math.floor(p), SHADES - 2), share = Math.round(100 * (p - k));
  return `color-mix(in srgb, var(--h${k + 1}) ${share}%, var(--h${k}))`;
}

// Cells of one shade are one path: ten thousand elements of their own would take a tenth of a second.
const LEVELS = 255;
function drawHeat(figure, width) {
  const rows = figure.rows.length, columns = figure.columns.length, top = TOP;
  const left = Math.min(LEFT + 40, 34 + 7 * Math.max(2, ...figure.rows.map((name) => name.length)));
  const height = Math.max(250, Math.min(520, rows * Math.min(34, (width - 80) / columns) + 104));
  const bottom = height - 74, w = (width - left - RIGHT) / columns, h = (bottom - top) / rows;
  const most = Math.max(...figure.values.map((line) => Math.max(...line)));
  const root = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": figure.title });
  const paths = Array(LEVELS + 1).fill(""), over = svg("g"), letters = [];
  figure.values.forEach((line, i) => line.forEach((v, j) => {
    const t = Math.sqrt(v / most);
    if (t < 0.004) return;
    paths[Math.round(LEVELS * t)] += `M${(left + j * w).toFixed(2)},${(top + i * h).toFixed(2)}h${(w + 0.3).toFixed(2)}v${(h + 0.3).toFixed(2)}h${(-w - 0.3).toFixed(2)}Z`;
    if (h <= 15 || w < 11) return;
    const words = short(v, v < 0.001 ? 1 : 3);
    if (w > 7 * words.length + 4) letters.push(svg("text", { x: left + (j + 0.5) * w, y: top + (i + 0.5) * h + 4, "text-anchor": "middle", "pointer-events": "none", style: `fill:var(--t${t < 0.48 ? 0 : t < 0.64 ? 1 : 2})` }, words));
  }));
  root.append(...paths.flatMap((d, k) => d ? [svg("path", { d, fill: shade(k / LEVELS) })] : []), ...letters);
  root.addEventListener("pointerleave", () => over.replaceChildren());
  root.addEventListener("pointermove", (event) => {
    const r = root.getBoundingClientRect(), i = Math.floor(((event.clientY - r.top) * height / r.height - top) / h), j = Math.floor(((event.clientX - r.left) * width / r.width - left) / w);
    over.replaceChildren();
    if (i < 0 || j < 0 || i >= rows || j >= columns) return;
    over.append(svg("rect", { x: left + j * w, y: top + i * h, width: w, height: h, fill: "none", stroke: "var(--ink)", "stroke-width": 1.5 }),
      ...tip(`${figure.y} ${figure.rows[i]}, ${figure.x} ${figure.columns[j]}: ${short(figure.values[i][j], 9)}`, left + (j + 0.5) * w, top + i * h, width - RIGHT));
  });
  const label = (list, size, room) => list.map((_, k) => k).filter((k) => k % Math.max(1, Math.ceil(room / size)) === 0);
  for (const i of label(figure.rows, h, 15)) root.append(svg("text", { x: left - 6, y: top + (i + 0.5) * h + 4, "text-anchor": "end" }, figure.rows[i]));
  for (const j of label(figure.columns, w, 10 + 7 * Math.max(...figure.columns.map((name) => name.length)))) root.append(svg("text", { x: left + (j + 0.5) * w, y: bottom + 16, "text-anchor": "middle" }, figure.columns[j]));
  root.append(svg("rect", { x: left, y: top, width: width - left - RIGHT, height: bottom - top, fill: "none", stroke: "var(--axis)" }));
  root.append(svg("text", { x: (left + width) / 2, y: bottom + 33, "text-anchor": "middle" }, figure.x));
  root.append(svg("text", { x: 14, y: (top + bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(top + bottom) / 2})` }, figure.y));
  const step = Math.min(3, Math.max(0, (width - left - 200) / 40));
  for (let k = 0; k < 40; k++) root.append(svg("rect", { x: left + k * step, y: height - 24, width: step + 0.2, height: 9, fill: shade(k / 39) }));
  root.append(svg("text", { x: left + 40 * step + 8, y: height - 15 }, `0 to ${short(most, 4)}, square-root scale`), over);
  return root;
}

// Classes by what they cost: a dot, and a line down to what is proven of the class. Those that cost more than twenty times
// the best are named below, not drawn. open(name): the reader picks one.
const FARTHEST = 20;
function drawDots(figure, width, { open } = {}) {
  const best = Math.min(...figure.rows.map((one) => one.value)), near = figure.rows.filter((one) => one.value <= FARTHEST * best);
  if (!near.length) return null;
  const narrow = width < 560, left = narrow ? 12 : 200, line = narrow ? 40 : 27, height = near.length * line + 52, bottom = height - 44;
  const values = near.flatMap((one) => [one.value, one.low > 0 ? one.low : one.value]), low = Math.min(...values), high = Math.max(...values);
  const log = high > 6 * low && low > 0, pad = Math.max(0.06 * (high - low), 0.01 * high) || 1;
  const x0 = log ? low / 1.12 : Math.max(0, low - pad), x1 = log ? high * 1.12 : high + pad;
  const x = scale(x0, x1, left + 8, width - 64, log);
  const root = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": figure.title });
  for (const v of ticks(x0, x1, log, narrow ? 4 : 6)) root.append(svg("line", { x1: x(v), x2: x(v), y1: 4, y2: bottom, stroke: "var(--grid)" }), svg("text", { x: x(v), y: bottom + 16, "text-anchor": "middle" }, short(v)));
  root.append(svg("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, figure.x));
  near.forEach((one, k) => {
    const up = k * line + line - (narrow ? 11 : 12), from = one.low === null || one.low === undefined ? null : x(Math.max(one.low, x0));
    const more = [one.low == null ? "" : `none of its class costs less than ${short(one.low, 9)}`, one.notes ?? ""].filter(Boolean).join("; ");
    const row = svg("g", open?.(one) ? { class: "pick", role: "link", tabindex: "0", "aria-label": `${one.name} ${short(one.value, 4)} ${more}` } : {});
    row.append(svg("rect", { x: 0, y: up - line / 2 - (narrow ? 8 : 0), width, height: line, fill: "var(--paper)", "fill-opacity": 0 }));
    row.append(svg("text", narrow ? { x: 12, y: up - 13 } : { x: left - 8, y: up + 4, "text-anchor": "end" }, `${one.name} `));
    if (from !== null) row.append(svg("path", { d: `M${from},${up}H${x(one.value)}M${from},${up - 6}v12`, stroke: hue(0), "stroke-width": 2, fill: "none" }));
    row.append(svg("circle", { cx: x(one.value), cy: up, r: 5.5, fill: one.certified ? hue(0) : "var(--paper)", stroke: hue(0), "stroke-width": 2 }));
    row.append(svg("text", { x: x(one.value) + 10, y: up + 4, class: "tip" }, `${short(one.value, 4)} `));
    row.append(svg("title", {}, more));
    const go = open?.(one);
    if (go) {
      row.addEventListener("click", go);
      row.addEventListener("keydown", (event) => { if (event.key === "Enter") go(); });
    }
    root.append(row);
  });
  return root;
}

const DRAWERS = { lines: drawLines, bars: drawBars, heat: drawHeat, dots: drawDots };

// The numbers behind a figure: heads and rows. Those of a mechanism are its whole law, in exact numbers; null where they
// are not known yet, as what a picture shows of a law may be a part of it.
function numbers(figure) {
  if (figure.table) return [figure.table.heads, figure.table.rows];
  if (figure.law) return null;
  if (figure.kind === "bars") {
    const others = figure.others ?? [];
    return [[figure.x, figure.y, ...others.map((one) => one.name)], figure.labels.map((name, i) => [name, figure.values[i], ...others.map((one) => one.y[one.x.indexOf(Number(name))] ?? null)])];
  }
  if (figure.kind === "heat") return [[`${figure.y} \\ ${figure.x}`, ...figure.columns], figure.values.map((line, i) => [figure.rows[i], ...line])];
  if (figure.kind === "dots") return [["class", figure.x, "no less than", "certified"], figure.rows.map((one) => [one.name, one.value, one.low, one.certified])];
  if (figure.kind === "map") return [["formula", figure.x.label, "from", "to"], figure.regions.flatMap((one) => one.x.map((v, i) => [one.name, v, one.low[i], one.high[i]]))];
  if (figure.kind !== "lines") return null;
  const rows = [], lower = figure.series.some((one) => one.low);
  for (const one of figure.series) one.x.forEach((v, i) => { if (v !== null) rows.push([one.name, v, one.y[i], ...(lower ? [one.low?.[i] ?? null] : [])]); });
  return [["series", figure.x.label, figure.y.label, ...(lower ? ["no less than"] : [])], rows];
}

// A mixed colour as every program reads it.
function plainColour(text) {
  return text.replace(/color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)\)/, (_, ...parts) => `rgb(${parts.slice(0, 3).map((part) => Math.round(255 * Number(part))).join(",")})`);
}

// A drawn chart as a text that stands alone: colours of paper, whatever the theme.
function standalone(node, page) {
  const before = page.dataset.theme;
  page.dataset.theme = "light";
  const copy = node.cloneNode(true), [, , width, height] = node.getAttribute("viewBox").split(" ");
  const pairs = (a, b) => [[a, b], ...[...a.children].flatMap((child, k) => pairs(child, b.children[k]))];
  for (const [from, to] of pairs(node, copy)) {
    const style = getComputedStyle(from), kept = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity"];
    for (const name of kept) to.removeAttribute(name);
    to.setAttribute("style", kept.map((name) => `${name}:${plainColour(style.getPropertyValue(name))}`).join(";") + (from.tagName === "text" ? `;font:${style.fontWeight} ${style.fontSize} sans-serif` : ""));
  }
  if (before) page.dataset.theme = before; else delete page.dataset.theme;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width); copy.setAttribute("height", height);
  copy.querySelector(".knob")?.remove();
  copy.prepend(svg("rect", { width, height, fill: "#ffffff" }));
  return new XMLSerializer().serializeToString(copy);
}
