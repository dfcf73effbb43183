// Figures as SVG, from the plain data of workbench/explorer/figures.py. No text is ever parsed as HTML.

const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#777777"];
const DASHES = ["", "7 3", "2 3", "9 3 2 3"];

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A number in at most five digits, for axes and readouts; tables show nine.
function short(value, digits = 5) {
  if (typeof value !== "number") return value === null || value === undefined ? "-" : String(value);
  const text = String(Number(value.toPrecision(digits)));
  return Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-4) ? Number(value.toPrecision(digits)).toExponential() : text;
}

function ticks(low, high, log, most = 6) {
  if (log) {
    const found = [];
    for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++)
      for (const m of [1, 2, 5]) found.push(m * 10 ** k);
    const inside = found.filter((v) => v >= low * 0.999 && v <= high * 1.001);
    if (inside.length < 3) return ticks(low, high, false, most).filter((v) => v > 0);
    return inside.length > most + 3 ? inside.filter((v) => /^1(e|0|$)|^0\.0*1$/.test(String(v))) : inside;
  }
  const raw = (high - low) / most || 1, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= raw);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

function scale(low, high, from, to, log) {
  const f = log ? Math.log : (v) => v, span = f(high) - f(low) || 1;
  const at = (v) => from + ((f(v) - f(low)) / span) * (to - from);
  at.invert = (p) => {
    const t = f(low) + ((p - from) / (to - from)) * span;
    return log ? Math.exp(t) : t;
  };
  return at;
}

function frame(width, height, figure, x, y, xTicks, yTicks, names) {
  const left = 62, bottom = height - 46, right = width - 14, top = 12;
  const parts = [];
  for (const v of yTicks) {
    parts.push(svg("line", { x1: left, x2: right, y1: y(v), y2: y(v), stroke: "#e3e7eb" }));
    parts.push(svg("text", { x: left - 7, y: y(v) + 4, "text-anchor": "end" }, names?.y ? names.y(v) : short(v)));
  }
  for (const v of xTicks) {
    parts.push(svg("line", { x1: x(v), x2: x(v), y1: bottom, y2: bottom + 4, stroke: "#57606a" }));
    parts.push(svg("text", { x: x(v), y: bottom + 18, "text-anchor": "middle" }, names?.x ? names.x(v) : short(v)));
  }
  parts.push(svg("path", { d: `M${left},${top}V${bottom}H${right}`, fill: "none", stroke: "#57606a" }));
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

function drawSeries(one, x, y) {
  const colour = COLOURS[one.colour % COLOURS.length], line = { fill: "none", stroke: colour, "stroke-width": 2 };
  const dash = DASHES[Math.floor(one.colour / COLOURS.length) % DASHES.length];
  const points = (fill) => one.x.map((v, i) => v === null || one.y[i] === null || one.y[i] === "inf" ? "" :
    svg("circle", { cx: x(v), cy: y(one.y[i]), r: 3.4, fill, stroke: colour, "stroke-width": 1.6 }));
  if (one.look === "hollow") return [svg("path", { ...line, "stroke-width": 1, opacity: 0.55, d: trace(one.x, one.y, x, y, one.steps) }), ...points("#fff")];
  if (one.look === "halo") return points(colour).filter(Boolean).map((mark) => { mark.setAttribute("r", 7); mark.setAttribute("opacity", 0.4); return mark; });
  if (one.look === "filled") return points(colour);
  if (one.look === "band") {
    // Backwards the steps keep the bound of the point on the right: between two points nothing better is proven.
    const up = trace(one.x, one.y, x, y, one.steps), down = trace([...one.x].reverse(), [...one.low].reverse(), x, y, one.steps);
    return [svg("path", { d: `${up}${down.replace("M", "L")}Z`, fill: colour, opacity: 0.22 })];
  }
  if (one.look.endsWith("segments")) {
    const found = [];
    for (let k = 0; k + 1 < one.x.length; k += 2) {
      found.push(svg("path", { ...line, d: trace(one.x.slice(k, k + 2), one.y.slice(k, k + 2), x, y), "stroke-dasharray": one.look === "segments" ? "" : "5 3" }));
      found.push(svg("path", { d: `M${x(one.x[k])},${y(one.y[k]) - 4}v8`, stroke: colour }));
    }
    return found;
  }
  return [svg("path", { ...line, d: trace(one.x, one.y, x, y, one.steps), "stroke-dasharray": one.look === "dashed" ? "6 4" : dash })];
}

function swatch(one) {
  const node = svg("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" });
  const at = ["hollow", "filled", "halo"].includes(one.look) ? [13] : [1, 25];
  const shown = one.look === "band" ? { ...one, x: [1, 25], y: [1, 1], low: [11, 11] } : { ...one, x: at, y: at.map(() => 6) };
  node.append(...drawSeries(shown, (v) => v, (v) => v));
  return node;
}

// lines: mark {x, y, proven}; drag(x, done): the reader moves the mark; limit(y, done): moves the error instead.
function drawLines(figure, width, { mark, drag, limit } = {}) {
  const height = Math.max(250, Math.min(340, width * 0.58));
  const shown = figure.series, xs = [], ys = [];
  for (const one of shown) one.x.forEach((v, i) => {
    if (v === null || !Number.isFinite(one.y[i])) return;
    xs.push(v); ys.push(one.y[i]);
    if (one.low && Number.isFinite(one.low[i])) ys.push(one.low[i]);
  });
  if (!xs.length) return null;
  const logX = figure.x.log && Math.min(...xs) > 0, logY = figure.y.log && Math.min(...ys) > 0;
  const highY = Math.max(...ys), lowY = Math.min(...ys);
  const y0 = logY ? lowY / 1.15 : Math.min(0, lowY), y1 = logY ? highY * 1.15 : (highY + 0.05 * (highY - y0)) || 1;
  const x0 = Math.min(...xs), x1 = Math.max(...xs) === x0 ? x0 + 1 : Math.max(...xs);
  const x = scale(x0, x1, 62, width - 14, logX), y = scale(y0, y1, height - 46, 12, logY);
  const root = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": figure.title });
  const box = frame(width, height, figure, x, y, ticks(x0, x1, logX, width < 420 ? 4 : 7), ticks(y0, y1, logY));
  root.append(...box.parts);
  for (const one of shown) root.append(...drawSeries(one, x, y));
  const guide = svg("g"), over = svg("g");
  root.append(guide, over);
  const place = (at) => {
    guide.replaceChildren();
    if (!at || !Number.isFinite(at.x) || at.x < x0 || at.x > x1) return;
    guide.append(svg("line", { x1: x(at.x), x2: x(at.x), y1: box.top, y2: box.bottom, stroke: "#000", "stroke-dasharray": "4 3" }));
    if (Number.isFinite(at.y) && at.y >= y0 && at.y <= y1)
      guide.append(svg("circle", { cx: x(at.x), cy: y(at.y), r: 6.5, fill: at.proven ? "#000" : "#fff", stroke: "#000", "stroke-width": 2.2 }));
  };
  place(mark);
  root.place = place;
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
  if (limit && mark && Number.isFinite(mark.y)) {
    const knob = svg("path", { d: "M0,0l-11,-7v14z", transform: `translate(${box.left},${y(mark.y)})`, fill: "#000", style: "cursor:ns-resize", tabindex: "-1" });
    knob.append(svg("title", {}, `Drag the ${figure.y.label}: finds the least ${figure.x.label}`));
    moves(knob, where, (px, py, done) => {
      const at = Math.min(Math.max(py, box.top), box.bottom);
      knob.setAttribute("transform", `translate(${box.left},${at})`);
      over.replaceChildren(svg("line", { x1: box.left, x2: box.right, y1: at, y2: at, stroke: "#000", "stroke-dasharray": "2 3" }));
      limit(y.invert(at), done);
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
    const wide = text.length * 6.6 + 10, at = Math.min(Math.max(x(best.v) - wide / 2, 2), box.right - wide), up = Math.max(y(best.w) - 30, 0);
    over.append(svg("circle", { cx: x(best.v), cy: y(best.w), r: 5, fill: "none", stroke: "#000" }),
      svg("rect", { x: at, y: up, width: wide, height: 20, rx: 3, fill: "#fff", stroke: "#57606a" }),
      svg("text", { x: at + 5, y: up + 14, class: "tip" }, text));
  });
}

function drawBars(figure, width, { proven } = {}) {
  const height = Math.max(250, Math.min(340, width * 0.58)), count = figure.values.length;
  const high = Math.max(...figure.values) * 1.06 || 1;
  const x = scale(-0.5, count - 0.5, 62, width - 14, false), y = scale(0, high, height - 46, 12, false);
  const every = Math.max(1, Math.ceil(count / Math.max(4, (width - 90) / 34)));
  const at = figure.labels.map((_, i) => i).filter((i) => i % every === 0);
  const root = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": figure.title });
  const box = frame(width, height, { x: { label: figure.x }, y: { label: figure.y } }, x, y, at, ticks(0, high, false), { x: (i) => figure.labels[i] });
  const wide = Math.max(1, (x(1) - x(0)) * 0.76);
  root.append(...box.parts, ...figure.values.map((v, i) => {
    const bar = svg("rect", { x: x(i) - wide / 2, width: wide, y: y(v), height: Math.max(0, y(0) - y(v)), fill: proven ? COLOURS[0] : "#fff", stroke: COLOURS[0], "stroke-width": wide > 6 ? 1.8 : 0.6 });
    bar.append(svg("title", {}, `${figure.labels[i]}: ${short(v, 9)}`));
    return bar;
  }));
  return root;
}

// Viridis at five places; the larger the darker.
const SHADES = [[253, 231, 37], [94, 201, 98], [33, 145, 140], [59, 82, 139], [68, 1, 84]];
function shade(t) {
  const p = Math.min(Math.max(t, 0), 1) * (SHADES.length - 1), k = Math.min(Math.floor(p), SHADES.length - 2);
  return `rgb(${SHADES[k].map((a, i) => Math.round(a + (SHADES[k + 1][i] - a) * (p - k))).join(",")})`;
}

function drawHeat(figure, width) {
  const rows = figure.rows.length, columns = figure.columns.length, left = 62, top = 12;
  const height = Math.max(250, Math.min(520, rows * Math.min(34, (width - 80) / columns) + 100));
  const bottom = height - 70, w = (width - left - 14) / columns, h = (bottom - top) / rows;
  const most = Math.max(...figure.values.flat());
  const root = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": figure.title });
  figure.values.forEach((line, i) => line.forEach((v, j) => {
    if (!v) return;
    const t = Math.sqrt(v / most);
    const cell = svg("rect", { x: left + j * w, y: top + i * h, width: w, height: h, fill: shade(t) });
    cell.append(svg("title", {}, `${figure.y} ${figure.rows[i]}, ${figure.x} ${figure.columns[j]}: ${short(v, 9)}`));
    root.append(cell);
    const words = short(v, v < 0.001 ? 1 : 3);
    if (w > 7 * words.length + 4 && h > 15) root.append(svg("text", { x: left + (j + 0.5) * w, y: top + (i + 0.5) * h + 4, "text-anchor": "middle", "pointer-events": "none", style: `fill:${t > 0.5 ? "#fff" : "#000"}` }, words));
  }));
  const label = (list, size, room) => list.map((_, k) => k).filter((k) => k % Math.max(1, Math.ceil(room / size)) === 0);
  for (const i of label(figure.rows, h, 15)) root.append(svg("text", { x: left - 6, y: top + (i + 0.5) * h + 4, "text-anchor": "end" }, figure.rows[i]));
  for (const j of label(figure.columns, w, 10 + 7 * Math.max(...figure.columns.map((name) => name.length)))) root.append(svg("text", { x: left + (j + 0.5) * w, y: bottom + 16, "text-anchor": "middle" }, figure.columns[j]));
  root.append(svg("rect", { x: left, y: top, width: width - left - 14, height: bottom - top, fill: "none", stroke: "#57606a" }));
  root.append(svg("text", { x: (left + width) / 2, y: bottom + 33, "text-anchor": "middle" }, figure.x));
  root.append(svg("text", { x: 14, y: (top + bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(top + bottom) / 2})` }, figure.y));
  for (let k = 0; k < 40; k++) root.append(svg("rect", { x: left + k * 3, y: height - 22, width: 3.2, height: 9, fill: shade(k / 39) }));
  root.append(svg("text", { x: left + 128, y: height - 13 }, `0 … ${short(most, 4)}; white: 0`));
  return root;
}

// The numbers behind a figure: heads and rows.
function numbers(figure) {
  if (figure.kind === "bars") return [[figure.x, figure.y], figure.labels.map((name, i) => [name, figure.values[i]])];
  if (figure.kind === "heat") return [[`${figure.y} \\ ${figure.x}`, ...figure.columns], figure.values.map((line, i) => [figure.rows[i], ...line])];
  if (figure.kind !== "lines") return null;
  const rows = [];
  for (const one of figure.series) one.x.forEach((v, i) => { if (v !== null) rows.push([one.name, v, one.y[i]]); });
  return [["series", figure.x.label, figure.y.label], rows];
}
