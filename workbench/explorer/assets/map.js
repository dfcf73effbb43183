// The map of formulas: regions of the (ε, δ) plane, or pieces of a curve over ε, that one points at.

const LISTED = 8;  // formulas, the others are folded
const SQUARES = [0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1];  // ticks of δ, shown by its square root

// The optimum that a region's formula says at a point; none where doubles do not hold it.
function optimumAt(one, epsilon, delta) {
  if (!one.denominator) return null;
  const size = Math.max(one.numerator.length, one.numerator_delta?.length ?? 0, one.denominator.length) - 1;
  const at = (values) => (values ?? []).reduce((sum, value, k) => sum + value * Math.exp(((k - size) * epsilon) / one.steps), 0);
  const found = (at(one.numerator) + delta * at(one.numerator_delta)) / at(one.denominator);
  return Number.isFinite(found) ? found : null;
}

// Those of the ticks whose labels do not touch.
const apart = (values, y) => values.reduce((kept, v) => (kept.length && y(kept.at(-1)) - y(v) < 15 ? kept : [...kept, v]), []);

// mark {x, y}: the design; tell(k, x, y): the reader points at a region (-1: at none); pick(x, y): at a point to go to.
DRAWERS.map = function drawMap(figure, width, { mark, tell, pick } = {}) {
  const height = tallness(width) + 60, regions = figure.regions, every = (name) => regions.flatMap((one) => one[name]);
  const x0 = Math.min(...every("x")), x1 = Math.max(...every("x")), y1 = Math.max(...every("high").filter(Number.isFinite), 0) * (figure.moved ? 1 : 1.05) || 1;
  const bottom = height - BOTTOM, x = scale(x0, x1, LEFT, width - RIGHT, false), flat = scale(0, y1, bottom, TOP, false);
  const y = figure.moved ? (v) => bottom - Math.sqrt(Math.max(v, 0) / y1) * (bottom - TOP) : flat;
  const root = svg("svg", { class: "chart map", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": figure.title });
  const box = frame(width, height, figure, x, y, ticks(x0, x1, false, width < 420 ? 4 : 7), figure.moved ? apart(SQUARES.filter((v) => v <= y1), y) : ticks(0, y1, false));
  root.append(...box.parts);
  const shapes = regions.map((one, k) => {
    const there = trace(one.x, one.high, x, y), back = trace([...one.x].reverse(), [...one.low].reverse(), x, y);
    const none = !one.denominator, area = figure.moved || none;
    const d = none && !figure.moved ? `M${x(one.x[0])},${bottom}V${TOP}H${x(one.x.at(-1))}V${bottom}Z` : area ? `${there}${back.replace("M", "L")}Z` : there;
    const look = area ? { fill: none ? "var(--grid)" : hue(one.colour), stroke: "var(--paper)", "stroke-width": 1 } : { fill: "none", stroke: hue(one.colour), "stroke-width": 4 };
    const shape = svg("path", { d, ...look, class: "region", tabindex: "0", role: "img", "aria-label": `${one.name}, ε ${short(one.x[0])} to ${short(one.x.at(-1))}` });
    const middle = Math.floor(one.x.length / 2);
    shape.addEventListener("focus", () => root.point(k, one.x[middle], (one.low[middle] + one.high[middle]) / 2));
    shape.addEventListener("blur", () => root.point(-1));
    return Object.assign(shape, { region: k });
  });
  root.append(...shapes);
  regions.forEach((one, region) => {
    const k = one.x.reduce((best, _, i) => (y(one.low[i]) - y(one.high[i]) > y(one.low[best]) - y(one.high[best]) ? i : best), Math.floor(one.x.length / 2));
    const i = Math.min(Math.max(k, 8), one.x.length - 9), tall = y(one.low[i]) - y(one.high[i]), wide = x(one.x.at(-1)) - x(one.x[0]);
    if (wide <= 16 || (figure.moved && tall <= 18)) return;
    const words = one.name.split(":")[0], px = x(one.x[i]), py = (y(one.low[i]) + y(one.high[i])) / 2 - (figure.moved ? 0 : 13), half = 3 + 4 * words.length;
    const sign = [svg("rect", { x: px - half, y: py - 8, width: 2 * half, height: 16, fill: "var(--paper)", rx: 3 }), svg("text", { x: px, y: py + 4, "text-anchor": "middle" }, words)];
    root.append(...sign.map((node) => Object.assign(node, { region })));
  });
  const guide = svg("g", { "pointer-events": "none" });
  root.append(guide);
  root.place = (at) => {
    guide.replaceChildren();
    if (at && at.x >= x0 && at.x <= x1 && at.y >= 0 && at.y <= y1) guide.append(svg("circle", { cx: x(at.x), cy: y(at.y), r: 6.5, fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 2 }));
  };
  root.place(mark);
  root.point = (k, px = null, py = null) => {
    shapes.forEach((shape, i) => shape.classList.toggle("pointed", i === k));
    tell?.(k, px, py);
  };
  const where = (event) => {
    const r = root.getBoundingClientRect(), scaled = width / r.width, px = (event.clientX - r.left) * scaled, py = (event.clientY - r.top) * scaled;
    const up = Math.min(Math.max((bottom - py) / (bottom - TOP), 0), 1);
    return [x.invert(Math.min(Math.max(px, LEFT), width - RIGHT)), figure.moved ? y1 * up * up : y1 * up];
  };
  root.addEventListener("pointermove", (event) => root.point(event.target.region ?? -1, ...where(event)));
  root.addEventListener("pointerleave", () => root.point(-1));
  if (pick) root.addEventListener("click", (event) => { if (event.target.region !== undefined) pick(...where(event)); });
  return root;
};

// The map with its formulas, each of which points at its region, and a line that says what is pointed at.
function mapNode(figure, options = {}) {
  const said = el("p", { class: "pointed", role: "status" }), empty = `Point at ${figure.moved ? "a region" : "the curve"} to read its formula${options.pick ? "; click to go there" : ""}.`;
  const shown = new Map(figure.regions.map((one) => [one.name, one.denominator ? hue(one.colour) : "var(--grid)"]));
  const entries = [...shown].map(([name, fill]) => el("li", { tabindex: "0" }, svg("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, svg("rect", { width: 26, height: 12, fill })), name));
  const names = [...shown.keys()];
  const tell = (k, px, py) => {
    const one = figure.regions[k], at = one && px !== null ? `ε = ${short(px, 3)}${figure.moved ? `, δ = ${short(py, 3)}` : ""}: ` : "", value = one && px !== null ? optimumAt(one, px, figure.moved ? py : 0) : null;
    said.textContent = one ? `${at}${value === null ? "" : `${short(value, 5)} = `}${one.name.replace(/^\d+: /, "")}` : empty;
    entries.forEach((entry, i) => entry.classList.toggle("pointed", names[i] === one?.name));
  };
  const node = figureNode(figure, { ...options, tell });
  entries.forEach((entry, i) => {
    const chart = () => node.querySelector("svg.map"), k = figure.regions.findIndex((one) => one.name === names[i]);
    for (const [event, to] of [["pointerenter", k], ["focus", k], ["pointerleave", -1], ["blur", -1]]) entry.addEventListener(event, () => chart()?.point(to));
  });
  tell(-1);
  node.querySelector("h2").after(said);
  const list = (some) => el("ol", { class: "formulas", "aria-label": "Formulas" }, ...some), rest = entries.splice(LISTED);
  node.append(list(entries), rest.length ? folded(`${rest.length} more formulas`, () => [list(rest)]) : "");
  return node;
}
