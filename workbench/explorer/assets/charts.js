// Draw figures as SVG from the data of workbench/explorer/figures.py.
//
// No text is ever parsed as HTML. Colours are variables of explorer.css, so that charts follow the
// theme. Saved charts have the colours of the light theme.

const SERIES_COLOURS = 8;
const DASH_PATTERNS = ["", "7 3", "2 3", "9 3 2 3"];

// The margins of a chart in pixels.
const LEFT = 72;
const RIGHT = 16;
const TOP = 14;
const BOTTOM = 46;

const CHARACTER_WIDTH = 6.6;  // The mean width of a character of a chart, in pixels.
const TOOLTIP_DISTANCE = 60;  // Points farther from the pointer have no tooltip (pixels).
const MIN_OUTLINED_BAR_WIDTH = 6;  // Narrower bars have a thin outline (pixels).
const HEAT_SHADES = 5;  // The colour scale of a heat map has these many colours in explorer.css.
const HEAT_LEVELS = 255;  // Cells of one level are one SVG path, because thousands of elements are slow.
const MIN_HEAT_SHARE = 0.004;  // Cells below this share of the scale are not drawn.
const COLOUR_BAR_STEPS = 40;
// Texts of heat maps have the colour --t0 up to the first share of the scale, then --t1, then --t2.
const HEAT_TEXT_SHARES = [0.48, 0.64];
const SEGMENT_SAMPLES = 25;  // A segment on a logarithmic axis is drawn through this many points.
const MAX_LOSS_RATIO = 20;  // Mechanisms with a larger multiple of the smallest loss are not drawn.

const seriesColour = (index) => `var(--s${index % SERIES_COLOURS})`;

// Create an SVG element. Attributes that are null or undefined are omitted.
function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  // Screen readers use the name of the chart and the table of its numbers instead of its texts.
  if (tag === "text") node.setAttribute("aria-hidden", "true");
  return node;
}

// Write a number with at most `digits` significant digits. Axes use five, tables use nine.
function formatNumber(value, digits = 5) {
  if (value === null || value === undefined) return "-";
  if (typeof value !== "number") return String(value);
  const rounded = Number(value.toPrecision(digits));
  const isExtreme = Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-4);
  return isExtreme ? rounded.toExponential().replace("e+", "e") : String(rounded);
}

// Choose at most about `maxCount` tick values of a logarithmic axis.
function logarithmicTicks(low, high, maxCount) {
  const candidates = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const factor of [1, 2, 5]) candidates.push(Number((factor * 10 ** power).toPrecision(3)));
  }
  let inside = candidates.filter((value) => value >= low * 0.999 && value <= high * 1.001);
  if (inside.length < 3) return axisTicks(low, high, false, maxCount).filter((value) => value > 0);
  if (inside.length > maxCount) {
    inside = inside.filter((value) => /^1(e|0|$)|^0\.0*1$/.test(String(value)));
  }
  const stride = Math.ceil(inside.length / maxCount);
  return inside.filter((_, index) => (inside.length - 1 - index) % stride === 0);
}

// Choose tick values of an axis from `low` to `high`.
function axisTicks(low, high, isLogarithmic, maxCount = 6) {
  if (isLogarithmic) return logarithmicTicks(low, high, maxCount);
  const rawStep = (high - low) / maxCount || 1;
  const power = 10 ** Math.floor(Math.log10(rawStep));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rawStep * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from(
    { length: Math.max(0, Math.min(count, 2 * maxCount)) },
    (_, index) => Number(((first + index) * step).toPrecision(12)),
  );
}

// Make a function from values to pixels, with `invert` from pixels to values.
//
// zeroPixel: the pixel of the value 0, which has no place on a logarithmic scale; null if unused.
function makeScale(low, high, fromPixel, toPixel, isLogarithmic, zeroPixel = null) {
  const transform = isLogarithmic ? Math.log : (value) => value;
  const span = transform(high) - transform(low) || 1;
  const scale = (value) => {
    if (zeroPixel !== null && value <= 0) return zeroPixel;
    return fromPixel + ((transform(value) - transform(low)) / span) * (toPixel - fromPixel);
  };
  scale.invert = (pixel) => {
    if (zeroPixel !== null && pixel < (zeroPixel + fromPixel) / 2) return 0;
    const clamped = Math.max(pixel, Math.min(fromPixel, toPixel));
    const position = transform(low) + ((clamped - fromPixel) / (toPixel - fromPixel)) * span;
    return isLogarithmic ? Math.exp(position) : position;
  };
  scale.isLogarithmic = isLogarithmic;
  return scale;
}

// Write the label of a vertical axis, turned by 90 degrees.
function verticalLabel(text, top, bottom) {
  const middle = (top + bottom) / 2;
  const attributes = { x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` };
  return svg("text", attributes, text);
}

// Draw the axes with ticks and labels. Returns the elements and the edges of the plot.
//
// xName: writes the label of a tick of the x axis. Default: `formatNumber`.
function drawFrame(width, height, figure, xScale, yScale, xTicks, yTicks, xName = formatNumber) {
  const left = LEFT;
  const right = width - RIGHT;
  const top = TOP;
  const bottom = height - BOTTOM;
  const parts = [];
  for (const value of yTicks) {
    const y = yScale(value);
    parts.push(svg("line", { x1: left, x2: right, y1: y, y2: y, stroke: "var(--grid)" }));
    parts.push(svg("text", { x: left - 7, y: y + 4, "text-anchor": "end" }, formatNumber(value)));
  }
  for (const value of xTicks) {
    const x = xScale(value);
    parts.push(svg("line", { x1: x, x2: x, y1: bottom, y2: bottom + 4, stroke: "var(--axis)" }));
    parts.push(svg("text", { x, y: bottom + 18, "text-anchor": "middle" }, xName(value)));
  }
  parts.push(svg("path", { d: `M${left},${top}V${bottom}H${right}`, fill: "none", stroke: "var(--axis)" }));
  const labelPlace = { x: (left + right) / 2, y: height - 8, "text-anchor": "middle" };
  parts.push(svg("text", labelPlace, figure.x.label));
  parts.push(verticalLabel(figure.y.label, top, bottom));
  return { parts, left, right, top, bottom };
}

// Write the SVG path of a line through points. Missing points interrupt it.
//
// hasSteps: keep each value until the next point instead of joining points by straight lines.
function linePath(xs, ys, xScale, yScale, hasSteps = false) {
  let path = "";
  let isDrawing = false;
  xs.forEach((value, index) => {
    if (value === null || ys[index] === null || !Number.isFinite(ys[index])) {
      isDrawing = false;
      return;
    }
    const x = xScale(value).toFixed(1);
    const y = yScale(ys[index]).toFixed(1);
    if (!isDrawing) path += `M${x},${y}`;
    else if (hasSteps) path += `H${x}V${y}`;
    else path += `L${x},${y}`;
    isDrawing = true;
  });
  return path;
}

// Sample a straight segment, which a logarithmic x axis bends. Returns [xs, ys].
function sampleSegment(xs, ys, xScale) {
  if (!xScale.isLogarithmic || xs[0] === xs[1]) return [xs, ys];
  const start = Math.max(xs[0], xs[1] * 1e-6);
  const lastIndex = SEGMENT_SAMPLES - 1;
  const sampleAt = (index) => start * (xs[1] / start) ** (index / lastIndex);
  const share = (index) => (sampleAt(index) - xs[0]) / (xs[1] - xs[0]);
  const shares = Array.from({ length: SEGMENT_SAMPLES }, (_, index) => share(index));
  if (xs[0] <= 0) shares.unshift(0);
  return [
    shares.map((part) => xs[0] + part * (xs[1] - xs[0])),
    shares.map((part) => ys[0] + part * (ys[1] - ys[0])),
  ];
}

// The SVG paths of markers of radius r around (x, y): circle, square, triangle, diamond.
const MARKER_PATHS = [
  (x, y, r) => `M${x - r},${y}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0Z`,
  (x, y, r) => `M${x - r},${y - r}h${2 * r}v${2 * r}h${-2 * r}Z`,
  (x, y, r) => `M${x},${y - 1.3 * r}L${x + 1.2 * r},${y + r}H${x - 1.2 * r}Z`,
  (x, y, r) => `M${x},${y - 1.3 * r}L${x + 1.3 * r},${y}L${x},${y + 1.3 * r}L${x - 1.3 * r},${y}Z`,
];

// Draw markers at the points of a series.
function drawMarkers(series, xScale, yScale, fill, radius = 3.4) {
  const colour = seriesColour(series.colour);
  const markerPath = MARKER_PATHS[series.colour % MARKER_PATHS.length];
  const markers = [];
  series.x.forEach((value, index) => {
    if (value === null || !Number.isFinite(series.y[index])) return;
    const d = markerPath(xScale(value), yScale(series.y[index]), radius);
    markers.push(svg("path", { d, fill, stroke: colour, "stroke-width": 1.6 }));
  });
  return markers;
}

// Draw straight segments given by pairs of points, with a tick at both ends of each.
function drawSegments(series, xScale, yScale, line) {
  const elements = [];
  const dash = series.look === "segments" ? null : "5 3";
  for (let index = 0; index + 1 < series.x.length; index += 2) {
    const ends = [series.x.slice(index, index + 2), series.y.slice(index, index + 2)];
    const [xs, ys] = sampleSegment(...ends, xScale);
    elements.push(svg("path", { ...line, d: linePath(xs, ys, xScale, yScale), "stroke-dasharray": dash }));
    const x = xScale(series.x[index]);
    const y = yScale(series.y[index]) - 4;
    elements.push(svg("path", { d: `M${x},${y}v8`, stroke: line.stroke }));
  }
  return elements;
}

// Draw the area between the values of a series and its lower bounds.
function drawBand(series, xScale, yScale) {
  const upper = linePath(series.x, series.y, xScale, yScale, series.steps);
  // The lower edge is drawn backwards. Its steps then keep the bound of the point on the right,
  // because no better bound is proven between two points.
  const backwards = [[...series.x].reverse(), [...series.low].reverse()];
  const lower = linePath(...backwards, xScale, yScale, series.steps);
  const d = `${upper}${lower.replace("M", "L")}Z`;
  return svg("path", { d, fill: seriesColour(series.colour), opacity: 0.22 });
}

// Draw one series of a figure. Returns its elements.
function drawSeries(series, xScale, yScale) {
  const colour = seriesColour(series.colour);
  const line = { fill: "none", stroke: colour, "stroke-width": 2, "stroke-linejoin": "round" };
  const d = () => linePath(series.x, series.y, xScale, yScale, series.steps);
  if (series.look === "hollow" || series.look === "proven") {
    const thinLine = svg("path", { ...line, "stroke-width": 1.2, opacity: 0.55, d: d() });
    const fill = series.look === "proven" ? colour : "var(--paper)";
    return [thinLine, ...drawMarkers(series, xScale, yScale, fill)];
  }
  if (series.look === "points") return drawMarkers(series, xScale, yScale, "var(--paper)");
  if (series.look === "halo") {
    const markers = drawMarkers(series, xScale, yScale, colour, 7);
    for (const marker of markers) marker.setAttribute("opacity", 0.35);
    return markers;
  }
  if (series.look === "filled") return drawMarkers(series, xScale, yScale, colour, 4);
  if (series.look === "area") {
    const path = d();
    const start = xScale(series.x[0]).toFixed(1);
    const area = svg("path", { d: `${path}V${yScale(0)}H${start}Z`, fill: colour, opacity: 0.25 });
    return [area, svg("path", { ...line, d: path })];
  }
  if (series.look === "band") return [drawBand(series, xScale, yScale)];
  if (series.look.endsWith("segments")) return drawSegments(series, xScale, yScale, line);
  const pattern = DASH_PATTERNS[series.colour % DASH_PATTERNS.length] || null;
  const dash = series.look === "dashed" ? "6 4" : pattern;
  return [svg("path", { ...line, d: d(), "stroke-dasharray": dash })];
}

// Draw the sample of a series in a legend, 26 x 12 pixels.
function legendMarks(series) {
  const identity = (value) => value;
  if (series.look === "band" || series.look === "area") {
    const band = { ...series, look: "band", x: [1, 25], y: [1, 1], low: [11, 11], steps: false };
    return drawSeries(band, identity, identity);
  }
  const hasMarkers = ["hollow", "points", "filled", "halo", "proven"].includes(series.look);
  const xs = hasMarkers ? [13] : [1, 25];
  return drawSeries({ ...series, x: xs, y: xs.map(() => 6), steps: false }, identity, identity);
}

const legendSwatch = (series) =>
  svg("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, ...legendMarks(series));

// Split a text into lines of at most `length` characters.
function wrapText(text, length) {
  return text.match(new RegExp(`.{1,${length}}(\\s|$)`, "g")) ?? [];
}

// Add the legend and the note below a chart before it is saved. Returns a function that undoes this.
function addLegend(chart, series, note = "") {
  const [, , width, height] = chart.getAttribute("viewBox").split(" ").map(Number);
  const legend = svg("g");
  let x = LEFT;
  let y = height + 12;
  for (const entry of series) {
    const entryWidth = 46 + CHARACTER_WIDTH * entry.name.length;
    if (x > LEFT && x + entryWidth > width) {
      x = LEFT;
      y += 18;
    }
    const name = svg("text", { x: 32, y: 10 }, entry.name);
    legend.append(svg("g", { transform: `translate(${x},${y - 10})` }, ...legendMarks(entry), name));
    x += entryWidth;
  }
  if (series.length) y += 18;
  const lineLength = Math.max(20, Math.floor((width - LEFT) / CHARACTER_WIDTH));
  for (const line of wrapText(note, lineLength)) {
    legend.append(svg("text", { x: LEFT, y }, line.trim()));
    y += 18;
  }
  if (series.length || note) {
    chart.append(legend);
    chart.setAttribute("viewBox", `0 0 ${width} ${y - 8}`);
  }
  return () => {
    legend.remove();
    chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
  };
}

const chartHeight = (width) => Math.max(230, Math.min(320, width * 0.56));

// Create the root element of a chart.
function chartRoot(figure, width, height, role = "img", className = "chart") {
  const viewBox = `0 0 ${width} ${height}`;
  return svg("svg", { class: className, viewBox, role, "aria-label": figure.title });
}

// Collect all finite coordinates of series, including their lower bounds. Returns [xs, ys].
function finiteCoordinates(seriesList) {
  const xs = [];
  const ys = [];
  for (const series of seriesList) {
    series.x.forEach((value, index) => {
      if (value === null || !Number.isFinite(series.y[index])) return;
      xs.push(value);
      ys.push(series.y[index]);
      if (series.low && Number.isFinite(series.low[index])) ys.push(series.low[index]);
    });
  }
  return [xs, ys];
}

// Choose the ranges of both axes of a line chart. `hasZero`: 0 has a place beside a logarithmic axis.
function chooseAxes(figure, xs, ys) {
  const positive = xs.filter((value) => value > 0);
  const mixesZero = figure.zero && positive.length > 0 && positive.length < xs.length;
  const isPositive = positive.length === xs.length;
  const isLogX = figure.x.log && positive.length > 0 && (mixesZero || isPositive);
  const isLogY = figure.y.log && Math.min(...ys) > 0;
  const yMax = Math.max(...ys);
  const yMin = Math.min(...ys);
  const yLow = isLogY ? yMin / 1.15 : Math.min(0, yMin);
  const yHigh = isLogY ? yMax * 1.15 : (yMax + 0.05 * (yMax - yLow)) || 1;
  const xLow = Math.min(...(isLogX ? positive : xs));
  const xMax = Math.max(...xs);
  const xHigh = xMax - xLow > 1e-9 * Math.abs(xMax) ? xMax : xLow + 1;
  return { isLogX, isLogY, xLow, xHigh, yLow, yHigh, hasZero: mixesZero && isLogX };
}

// Draw a figure of lines. Returns null if it has no points.
//
// mark              The place of the design, {x, y, proven}.
// drag(x, isDone)   Called while the reader moves the mark. isDone: the reader has let it go.
// limit(y, isDone)  Called while the reader moves the loss.
// pins              Further points, {name, x, y} of each.
function drawLines(figure, width, { mark, drag, limit, pins = [] } = {}) {
  const height = chartHeight(width);
  const finitePins = pins.filter((pin) => Number.isFinite(pin.x) && Number.isFinite(pin.y));
  const pinSeries = finitePins.map((pin, index) => (
    { name: pin.name, look: "filled", colour: 3 + index, x: [pin.x], y: [pin.y] }
  ));
  const seriesList = [...figure.series, ...pinSeries];
  const [xs, ys] = finiteCoordinates(seriesList);
  if (!xs.length) return null;
  const { isLogX, isLogY, xLow, xHigh, yLow, yHigh, hasZero } = chooseAxes(figure, xs, ys);
  const xStart = LEFT + (hasZero ? 44 : 8);
  const zeroPixel = hasZero ? LEFT + 12 : null;
  const xScale = makeScale(xLow, xHigh, xStart, width - RIGHT - 8, isLogX, zeroPixel);
  const yScale = makeScale(yLow, yHigh, height - BOTTOM, TOP, isLogY);
  const root = chartRoot(figure, width, height);
  const xTicks = axisTicks(xLow, xHigh, isLogX, width < 420 ? 4 : 7);
  if (hasZero) xTicks.unshift(0);
  const yTicks = axisTicks(yLow, yHigh, isLogY);
  const frame = drawFrame(width, height, figure, xScale, yScale, xTicks, yTicks);
  root.append(...frame.parts);
  if (hasZero) {
    const d = `M${LEFT + 26},${frame.bottom - 5}l-4,10m10,-10l-4,10`;
    root.append(svg("path", { d, stroke: "var(--axis)", fill: "none" }));
  }
  for (const series of seriesList) root.append(...drawSeries(series, xScale, yScale));
  const guide = svg("g");
  const overlay = svg("g");
  let knob = null;
  root.append(guide, overlay);

  const isInRange = (y) => Number.isFinite(y) && y >= yLow && y <= yHigh;
  root.place = (point) => {
    guide.replaceChildren();
    if (knob && isInRange(point?.y)) {
      knob.setAttribute("transform", `translate(${frame.right},${yScale(point.y)})`);
    }
    if (!point || !Number.isFinite(point.x) || point.x > xHigh) return;
    if (point.x < xLow && !(hasZero && point.x === 0)) return;
    const x = xScale(point.x);
    const guideLine = { x1: x, x2: x, y1: frame.top, y2: frame.bottom, stroke: "var(--ink)" };
    guide.append(svg("line", { ...guideLine, "stroke-dasharray": "4 3" }));
    if (!isInRange(point.y)) return;
    const fill = point.proven ? "var(--good)" : "var(--paper)";
    const dot = { cx: x, cy: yScale(point.y), r: 6.5, fill, stroke: "var(--ink)", "stroke-width": 2 };
    guide.append(svg("circle", dot));
  };
  root.place(mark);

  const toChartPixels = (event) => {
    const box = root.getBoundingClientRect();
    const factor = width / box.width;
    return [(event.clientX - box.left) * factor, (event.clientY - box.top) * factor];
  };
  showNearestPoint(root, overlay, toChartPixels, frame, seriesList, xScale, yScale, figure);
  if (drag) {
    const clampX = (pixel) => Math.min(Math.max(pixel, frame.left), frame.right);
    const isInPlot = (x, y) => x >= frame.left - 2 && y <= frame.bottom;
    root.style.cursor = "ew-resize";
    onDrag(root, toChartPixels, (x, y, isDone) => drag(xScale.invert(clampX(x)), isDone), isInPlot);
  }
  if (limit && mark && isInRange(mark.y)) {
    const place = `translate(${frame.right},${yScale(mark.y)})`;
    const look = { fill: "var(--ink)", style: "cursor:ns-resize" };
    knob = svg("path", { class: "knob", d: "M1,0l13,-7v14z", transform: place, ...look });
    const hint = `Drag the ${figure.y.label} to find the minimal ${figure.x.label}`;
    knob.append(svg("title", {}, hint));
    onDrag(knob, toChartPixels, (x, pixel, isDone) => {
      const y = Math.min(Math.max(pixel, frame.top), frame.bottom);
      knob.setAttribute("transform", `translate(${frame.right},${y})`);
      const line = { x1: frame.left, x2: frame.right, y1: y, y2: y, stroke: "var(--ink)" };
      overlay.replaceChildren(svg("line", { ...line, "stroke-dasharray": "2 3" }));
      limit(yScale.invert(y), isDone);
    });
    root.append(knob);
  }
  return root;
}

// Call report(x, y, isDone) while the reader drags an element with the main button.
//
// canStart(x, y): whether a drag may start at this place.
function onDrag(node, toChartPixels, report, canStart = () => true) {
  node.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !canStart(...toChartPixels(event))) return;
    event.preventDefault();
    event.stopPropagation();
    const move = (moveEvent) => report(...toChartPixels(moveEvent), false);
    const stop = (upEvent) => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", stop);
      report(...toChartPixels(upEvent), true);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", stop);
    report(...toChartPixels(event), false);
  });
}

// Find the point of all series that is nearest to a pixel.
function findNearestPoint(seriesList, xScale, yScale, pixelX, pixelY) {
  let nearest = null;
  for (const series of seriesList) {
    series.x.forEach((x, index) => {
      const y = series.y[index];
      if (x === null || !Number.isFinite(y)) return;
      const distance = Math.hypot(xScale(x) - pixelX, yScale(y) - pixelY);
      if (!nearest || distance < nearest.distance) nearest = { distance, x, y, name: series.name };
    });
  }
  return nearest;
}

// Show a tooltip at the point that is nearest to the pointer.
function showNearestPoint(root, overlay, toChartPixels, frame, seriesList, xScale, yScale, figure) {
  root.addEventListener("pointerleave", () => overlay.replaceChildren());
  root.addEventListener("pointermove", (event) => {
    if (event.buttons) return;
    const nearest = findNearestPoint(seriesList, xScale, yScale, ...toChartPixels(event));
    overlay.replaceChildren();
    if (!nearest || nearest.distance > TOOLTIP_DISTANCE) return;
    const x = xScale(nearest.x);
    const y = yScale(nearest.y);
    const axis = figure.x.label.split(",")[0];
    const value = formatNumber(nearest.y, 7);
    const text = `${axis} ${formatNumber(nearest.x)}: ${value} (${nearest.name})`;
    const ring = svg("circle", { cx: x, cy: y, r: 5, fill: "none", stroke: "var(--ink)" });
    overlay.append(ring, ...tooltip(text, x, y, frame.right));
  });
}

// Draw a text in a box above a place.
function tooltip(text, x, y, right) {
  const width = text.length * CHARACTER_WIDTH + 10;
  const left = Math.min(Math.max(x - width / 2, 2), Math.max(2, right - width));
  const top = Math.max(y - 30, 0);
  const look = { rx: 3, fill: "var(--paper)", stroke: "var(--axis)" };
  return [
    svg("rect", { x: left, y: top, width, height: 20, ...look }),
    svg("text", { x: left + 5, y: top + 14, class: "tip" }, text),
  ];
}

// Draw a figure of bars. figure.others: outlines {name, colour, x (labels as numbers), y} over them.
function drawBars(figure, width, { proven: isProven } = {}) {
  const height = chartHeight(width);
  const count = figure.values.length;
  const others = figure.others ?? [];
  const outlines = others.map((outline) => figure.labels.map((label) => {
    const index = outline.x.indexOf(Number(label));
    return index < 0 ? 0 : outline.y[index];
  }));
  const yMax = Math.max(...figure.values, ...outlines.flat()) * 1.06 || 1;
  const xScale = makeScale(-0.5, count - 0.5, LEFT, width - RIGHT, false);
  const yScale = makeScale(0, yMax, height - BOTTOM, TOP, false);
  const labelLength = Math.max(...figure.labels.map((label) => label.length));
  const maxLabels = Math.max(4, (width - 90) / (10 + 8 * labelLength));
  const stride = Math.max(1, Math.ceil(count / maxLabels));
  const zeroIndex = figure.labels.findLastIndex((label) => Number(label) === 0);
  const offset = zeroIndex < 0 ? 0 : zeroIndex % stride;  // The label of 0 is always shown.
  const xTicks = figure.labels.map((_, index) => index).filter((index) => index % stride === offset);
  const root = chartRoot(figure, width, height);
  const axes = { x: { label: figure.x }, y: { label: figure.y } };
  const yTicks = axisTicks(0, yMax, false);
  const labelOf = (index) => figure.labels[index];
  const frame = drawFrame(width, height, axes, xScale, yScale, xTicks, yTicks, labelOf);
  const barWidth = Math.max(1, (xScale(1) - xScale(0)) * 0.76);
  const look = {
    fill: seriesColour(0),
    "fill-opacity": isProven === false ? 0.45 : 1,
    stroke: seriesColour(0),
    "stroke-width": barWidth > MIN_OUTLINED_BAR_WIDTH ? 1.2 : 0.5,
  };
  root.append(...frame.parts);
  figure.values.forEach((value, index) => {
    const x = xScale(index) - barWidth / 2;
    const y = yScale(value);
    const bar = svg("rect", { x, width: barWidth, y, height: Math.max(0, yScale(0) - y), ...look });
    bar.append(svg("title", {}, `${figure.labels[index]}: ${formatNumber(value, 9)}`));
    root.append(bar);
  });
  outlines.forEach((values, index) => {
    const colour = others[index].colour;
    const xs = values.flatMap((_, position) => [position - 0.5, position + 0.5]);
    const ys = values.flatMap((value) => [value, value]);
    const dash = DASH_PATTERNS[colour % DASH_PATTERNS.length] || null;
    const line = { fill: "none", stroke: seriesColour(colour), "stroke-width": 1.8 };
    root.append(svg("path", { d: linePath(xs, ys, xScale, yScale), ...line, "stroke-dasharray": dash }));
  });
  return root;
}

// Return the colour of a share in 0..1 on the scale of heat maps.
//
// Large values are dark on light paper and bright on dark paper. A scale of several colours shows
// small values that the opacity of a single colour would hide.
function heatColour(share) {
  const position = Math.min(Math.max(share, 0), 1) * (HEAT_SHADES - 1);
  const index = Math.min(Math.floor(position), HEAT_SHADES - 2);
  const percent = Math.round(100 * (position - index));
  return `color-mix(in srgb, var(--h${index + 1}) ${percent}%, var(--h${index}))`;
}

// Choose the variable of explorer.css that can be read on a cell of this share.
function heatTextColour(share) {
  const [firstLimit, secondLimit] = HEAT_TEXT_SHARES;
  if (share < firstLimit) return "var(--t0)";
  return share < secondLimit ? "var(--t1)" : "var(--t2)";
}

// List the indices of the labels that fit when each needs `needed` pixels of a cell of `size`.
function fittingLabels(labels, size, needed) {
  const stride = Math.max(1, Math.ceil(needed / size));
  return labels.map((_, index) => index).filter((index) => index % stride === 0);
}

// Draw a heat map of figure.values (rows x columns).
function drawHeat(figure, width) {
  const rowCount = figure.rows.length;
  const columnCount = figure.columns.length;
  const rowNameLength = Math.max(2, ...figure.rows.map((name) => name.length));
  const columnNameLength = Math.max(...figure.columns.map((name) => name.length));
  const left = Math.min(LEFT + 40, 34 + 7 * rowNameLength);
  const idealHeight = rowCount * Math.min(34, (width - 80) / columnCount) + 104;
  const height = Math.max(250, Math.min(520, idealHeight));
  const bottom = height - 74;
  const cellWidth = (width - left - RIGHT) / columnCount;
  const cellHeight = (bottom - TOP) / rowCount;
  const maxValue = Math.max(...figure.values.map((row) => Math.max(...row)));
  const root = chartRoot(figure, width, height);
  const overlay = svg("g");
  const paths = Array(HEAT_LEVELS + 1).fill("");
  const texts = [];
  // Cells overlap by 0.3 pixels so that no gaps are visible between them.
  const wide = (cellWidth + 0.3).toFixed(2);
  const high = (cellHeight + 0.3).toFixed(2);
  const back = (-cellWidth - 0.3).toFixed(2);
  figure.values.forEach((row, rowIndex) => row.forEach((value, columnIndex) => {
    const share = Math.sqrt(value / maxValue);
    if (share < MIN_HEAT_SHARE) return;
    const x = left + columnIndex * cellWidth;
    const y = TOP + rowIndex * cellHeight;
    const cell = `M${x.toFixed(2)},${y.toFixed(2)}h${wide}v${high}h${back}Z`;
    paths[Math.round(HEAT_LEVELS * share)] += cell;
    if (cellHeight <= 15 || cellWidth < 11) return;
    const text = formatNumber(value, value < 0.001 ? 1 : 3);
    if (cellWidth <= 7 * text.length + 4) return;
    const place = { x: x + 0.5 * cellWidth, y: y + 0.5 * cellHeight + 4, "text-anchor": "middle" };
    const style = `fill:${heatTextColour(share)}`;
    texts.push(svg("text", { ...place, "pointer-events": "none", style }, text));
  }));
  paths.forEach((d, level) => {
    if (d) root.append(svg("path", { d, fill: heatColour(level / HEAT_LEVELS) }));
  });
  root.append(...texts);

  root.addEventListener("pointerleave", () => overlay.replaceChildren());
  root.addEventListener("pointermove", (event) => {
    const box = root.getBoundingClientRect();
    const y = ((event.clientY - box.top) * height) / box.height;
    const x = ((event.clientX - box.left) * width) / box.width;
    const row = Math.floor((y - TOP) / cellHeight);
    const column = Math.floor((x - left) / cellWidth);
    overlay.replaceChildren();
    if (row < 0 || column < 0 || row >= rowCount || column >= columnCount) return;
    const cell = { x: left + column * cellWidth, y: TOP + row * cellHeight };
    const size = { width: cellWidth, height: cellHeight };
    const look = { fill: "none", stroke: "var(--ink)", "stroke-width": 1.5 };
    const names = `${figure.y} ${figure.rows[row]}, ${figure.x} ${figure.columns[column]}`;
    const text = `${names}: ${formatNumber(figure.values[row][column], 9)}`;
    const middle = left + (column + 0.5) * cellWidth;
    overlay.append(svg("rect", { ...cell, ...size, ...look }));
    overlay.append(...tooltip(text, middle, cell.y, width - RIGHT));
  });

  for (const index of fittingLabels(figure.rows, cellHeight, 15)) {
    const y = TOP + (index + 0.5) * cellHeight + 4;
    root.append(svg("text", { x: left - 6, y, "text-anchor": "end" }, figure.rows[index]));
  }
  for (const index of fittingLabels(figure.columns, cellWidth, 10 + 7 * columnNameLength)) {
    const x = left + (index + 0.5) * cellWidth;
    root.append(svg("text", { x, y: bottom + 16, "text-anchor": "middle" }, figure.columns[index]));
  }
  const border = { x: left, y: TOP, width: width - left - RIGHT, height: bottom - TOP };
  root.append(svg("rect", { ...border, fill: "none", stroke: "var(--axis)" }));
  const labelPlace = { x: (left + width) / 2, y: bottom + 33, "text-anchor": "middle" };
  root.append(svg("text", labelPlace, figure.x));
  root.append(verticalLabel(figure.y, TOP, bottom));
  const step = Math.min(3, Math.max(0, (width - left - 200) / COLOUR_BAR_STEPS));
  for (let index = 0; index < COLOUR_BAR_STEPS; index++) {
    const fill = heatColour(index / (COLOUR_BAR_STEPS - 1));
    const x = left + index * step;
    root.append(svg("rect", { x, y: height - 24, width: step + 0.2, height: 9, fill }));
  }
  const scaleText = `0 to ${formatNumber(maxValue, 4)}, square-root scale`;
  root.append(svg("text", { x: left + COLOUR_BAR_STEPS * step + 8, y: height - 15 }, scaleText));
  root.append(overlay);
  return root;
}

// Draw classes of mechanisms: a dot at the loss, and a line down to the proven lower bound.
//
// Classes above MAX_LOSS_RATIO times the smallest loss are not drawn. open(row): returns the action
// of a click on a class, or null.
function drawDots(figure, width, { open } = {}) {
  const smallest = Math.min(...figure.rows.map((row) => row.value));
  const rows = figure.rows.filter((row) => row.value <= MAX_LOSS_RATIO * smallest);
  if (!rows.length) return null;
  const nameWidth = CHARACTER_WIDTH * Math.max(...rows.map((row) => row.name.length));
  // Names stand above their dots if they would take more than half of the width.
  const isNarrow = width < 560 || nameWidth > width / 2;
  const left = isNarrow ? 12 : Math.max(200, nameWidth + 16);
  const rowHeight = isNarrow ? 40 : 27;
  const height = rows.length * rowHeight + 52;
  const bottom = height - 44;
  const values = rows.flatMap((row) => [row.value, row.low > 0 ? row.low : row.value]);
  const low = Math.min(...values);
  const high = Math.max(...values);
  const isLogarithmic = high > 6 * low && low > 0;
  const padding = Math.max(0.06 * (high - low), 0.01 * high) || 1;
  const xLow = isLogarithmic ? low / 1.12 : Math.max(0, low - padding);
  const xHigh = isLogarithmic ? high * 1.12 : high + padding;
  const xScale = makeScale(xLow, xHigh, left + 8, width - 64, isLogarithmic);
  const root = chartRoot(figure, width, height, "group");
  for (const value of axisTicks(xLow, xHigh, isLogarithmic, isNarrow ? 4 : 6)) {
    const x = xScale(value);
    root.append(svg("line", { x1: x, x2: x, y1: 4, y2: bottom, stroke: "var(--grid)" }));
    root.append(svg("text", { x, y: bottom + 16, "text-anchor": "middle" }, formatNumber(value)));
  }
  const labelPlace = { x: (left + width) / 2, y: height - 6, "text-anchor": "middle" };
  root.append(svg("text", labelPlace, figure.x));
  rows.forEach((row, index) => {
    const y = index * rowHeight + rowHeight - (isNarrow ? 11 : 12);
    const hasBound = row.low !== null && row.low !== undefined;
    const boundText = hasBound ? `lower bound of the class: ${formatNumber(row.low, 9)}` : "";
    const description = [boundText, row.notes ?? ""].filter(Boolean).join("; ");
    const action = open?.(row);
    const label = `${row.name} ${formatNumber(row.value, 4)} ${description}`;
    const link = { class: "pick", role: "link", tabindex: "0", "aria-label": label };
    const group = svg("g", action ? link : {});
    const top = y - rowHeight / 2 - (isNarrow ? 8 : 0);
    const background = { x: 0, y: top, width, height: rowHeight, fill: "var(--paper)" };
    group.append(svg("rect", { ...background, "fill-opacity": 0 }));
    const besidePlace = { x: left - 8, y: y + 4, "text-anchor": "end" };
    group.append(svg("text", isNarrow ? { x: 12, y: y - 13 } : besidePlace, `${row.name} `));
    const x = xScale(row.value);
    if (hasBound) {
      const boundX = xScale(Math.max(row.low, xLow));
      const d = `M${boundX},${y}H${x}M${boundX},${y - 6}v12`;
      group.append(svg("path", { d, stroke: seriesColour(0), "stroke-width": 2, fill: "none" }));
    }
    const fill = row.certified ? seriesColour(0) : "var(--paper)";
    const dot = { cx: x, cy: y, r: 5.5, fill, stroke: seriesColour(0), "stroke-width": 2 };
    group.append(svg("circle", dot));
    group.append(svg("text", { x: x + 10, y: y + 4, class: "tip" }, `${formatNumber(row.value, 4)} `));
    group.append(svg("title", {}, description));
    if (action) {
      group.addEventListener("click", action);
      group.addEventListener("keydown", (event) => {
        if (event.key === "Enter") action();
      });
    }
    root.append(group);
  });
  return root;
}

// The drawing function of each kind of figure. map.js adds "map".
const DRAWERS = { lines: drawLines, bars: drawBars, heat: drawHeat, dots: drawDots };

// Return [heads, rows], the numbers of a figure.
//
// The numbers of a mechanism are its whole law in exact numbers. The result is null while they are
// unknown, because a picture may show only a part of the law.
function figureNumbers(figure) {
  if (figure.table) return [figure.table.heads, figure.table.rows];
  if (figure.law) return null;
  if (figure.kind === "bars") {
    const others = figure.others ?? [];
    const heads = [figure.x, figure.y, ...others.map((other) => other.name)];
    const rows = figure.labels.map((label, index) => {
      const values = others.map((other) => other.y[other.x.indexOf(Number(label))] ?? null);
      return [label, figure.values[index], ...values];
    });
    return [heads, rows];
  }
  if (figure.kind === "heat") {
    const heads = [`${figure.y} \\ ${figure.x}`, ...figure.columns];
    return [heads, figure.values.map((row, index) => [figure.rows[index], ...row])];
  }
  if (figure.kind === "dots") {
    const rows = figure.rows.map((row) => [row.name, row.value, row.low, row.certified]);
    return [["class", figure.x, "lower bound", "certified"], rows];
  }
  if (figure.kind === "map") {
    const rows = figure.regions.flatMap((region) => (
      region.x.map((x, index) => [region.name, x, region.low[index], region.high[index]])
    ));
    return [["formula", figure.x.label, "from", "to"], rows];
  }
  if (figure.kind !== "lines") return null;
  const hasBounds = figure.series.some((series) => series.low);
  const heads = ["series", figure.x.label, figure.y.label];
  if (hasBounds) heads.push("lower bound");
  const rows = [];
  for (const series of figure.series) {
    series.x.forEach((x, index) => {
      if (x === null) return;
      const row = [series.name, x, series.y[index]];
      if (hasBounds) row.push(series.low?.[index] ?? null);
      rows.push(row);
    });
  }
  return [heads, rows];
}

// Convert a colour that the browser has mixed to the form rgb(r,g,b), which every program reads.
function toRgb(text) {
  const mixed = /color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)\)/;
  return text.replace(mixed, (_, ...parts) => {
    const channels = parts.slice(0, 3).map((part) => Math.round(255 * Number(part)));
    return `rgb(${channels.join(",")})`;
  });
}

// Run a function while the page has the light theme, whatever theme the reader uses.
function withLightTheme(page, run) {
  const theme = page.dataset.theme;
  page.dataset.theme = "light";
  const result = run();
  if (theme) page.dataset.theme = theme;
  else delete page.dataset.theme;
  return result;
}

const SAVED_STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity"];

// Write a chart as an SVG file that needs no stylesheet.
function standaloneSvg(chart, page) {
  const copy = chart.cloneNode(true);
  const [, , width, height] = chart.getAttribute("viewBox").split(" ");
  const pairNodes = (original, clone) => {
    const children = [...original.children];
    return [[original, clone], ...children.flatMap((child, index) => pairNodes(child, clone.children[index]))];
  };
  withLightTheme(page, () => {
    for (const [original, clone] of pairNodes(chart, copy)) {
      const style = getComputedStyle(original);
      for (const name of SAVED_STYLES) clone.removeAttribute(name);
      const parts = SAVED_STYLES.map((name) => `${name}:${toRgb(style.getPropertyValue(name))}`);
      if (original.tagName === "text") parts.push(`font:${style.fontWeight} ${style.fontSize} sans-serif`);
      clone.setAttribute("style", parts.join(";"));
    }
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.querySelector(".knob")?.remove();
  copy.prepend(svg("rect", { width, height, fill: "#ffffff" }));
  return new XMLSerializer().serializeToString(copy);
}
