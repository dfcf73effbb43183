// Draw the map of formulas: regions of the (ε, δ) plane, or the pieces of a curve over ε.

const MAX_LISTED_FORMULAS = 8;  // Further formulas are folded.
const DELTA_TICKS = [0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1];  // δ has a square-root scale.
const NUMBER_MARGIN = 8;  // A region's number is this many points of its border from its ends.
const MIN_NUMBERED_WIDTH = 16;  // A narrower region has no number (pixels).
const MIN_NUMBERED_HEIGHT = 18;  // A lower region has no number (pixels).
const MIN_TICK_DISTANCE = 15;  // Labels of ticks that are closer would touch (pixels).

// Compute the optimum of a region's formula at a point; null if doubles cannot represent it.
function optimumAt(region, epsilon, delta) {
  if (!region.denominator) return null;
  const deltaDegree = region.numerator_delta?.length ?? 0;
  const degree = Math.max(region.numerator.length, deltaDegree, region.denominator.length) - 1;
  // Dividing by the highest power of e^ε avoids an overflow.
  const evaluate = (coefficients) => (coefficients ?? []).reduce(
    (sum, value, power) => sum + value * Math.exp(((power - degree) * epsilon) / region.steps), 0,
  );
  const numerator = evaluate(region.numerator) + delta * evaluate(region.numerator_delta);
  const optimum = numerator / evaluate(region.denominator);
  return Number.isFinite(optimum) ? optimum : null;
}

// Keep the ticks whose labels do not touch.
function separateTicks(values, yScale) {
  const ticks = [];
  for (const value of values) {
    const isTooClose = ticks.length && yScale(ticks.at(-1)) - yScale(value) < MIN_TICK_DISTANCE;
    if (!isTooClose) ticks.push(value);
  }
  return ticks;
}

// Write the SVG path of a region: an area, or a line if the map is a curve over ε.
function regionPath(region, figure, xScale, yScale, bottom) {
  const upper = linePath(region.x, region.high, xScale, yScale);
  if (!region.denominator && !figure.moved) {
    const start = xScale(region.x[0]);
    return `M${start},${bottom}V${TOP}H${xScale(region.x.at(-1))}V${bottom}Z`;
  }
  if (!figure.moved) return upper;
  const lower = linePath([...region.x].reverse(), [...region.low].reverse(), xScale, yScale);
  return `${upper}${lower.replace("M", "L")}Z`;
}

// Draw the number of a region where the region is highest, if there is enough space.
function drawRegionNumber(region, figure, xScale, yScale) {
  const heightAt = (index) => yScale(region.low[index]) - yScale(region.high[index]);
  const middle = Math.floor(region.x.length / 2);
  let highest = middle;
  region.x.forEach((_, index) => {
    if (heightAt(index) > heightAt(highest)) highest = index;
  });
  // The number keeps this many points away from both ends of the region.
  const index = Math.min(Math.max(highest, NUMBER_MARGIN), region.x.length - 1 - NUMBER_MARGIN);
  const width = xScale(region.x.at(-1)) - xScale(region.x[0]);
  const isLow = figure.moved && heightAt(index) <= MIN_NUMBERED_HEIGHT;
  if (width <= MIN_NUMBERED_WIDTH || isLow) return [];
  const text = region.name.split(":")[0];
  const x = xScale(region.x[index]);
  const centre = (yScale(region.low[index]) + yScale(region.high[index])) / 2;
  const y = figure.moved ? centre : centre - 13;
  const halfWidth = 3 + 4 * text.length;
  const box = { x: x - halfWidth, y: y - 8, width: 2 * halfWidth, height: 16 };
  return [
    svg("rect", { ...box, fill: "var(--paper)", rx: 3 }),
    svg("text", { x, y: y + 4, "text-anchor": "middle" }, text),
  ];
}

// Choose the colours of a region.
function regionLook(region, figure) {
  if (!region.denominator || figure.moved) {
    const fill = region.denominator ? seriesColour(region.colour) : "var(--grid)";
    return { fill, stroke: "var(--paper)", "stroke-width": 1 };
  }
  return { fill: "none", stroke: seriesColour(region.colour), "stroke-width": 4 };
}

// Draw a map of formulas. figure.moved: the y axis is δ; otherwise it is the optimum.
//
// mark               The place of the design, {x, y}.
// tell(index, x, y)  Called while the reader points at a region. The index is -1 for no region.
// pick(x, y)         Called when the reader clicks on a point.
DRAWERS.map = function drawMap(figure, width, { mark, tell, pick } = {}) {
  const height = chartHeight(width) + 60;
  const bottom = height - BOTTOM;
  const regions = figure.regions;
  const xs = regions.flatMap((region) => region.x);
  const highs = regions.flatMap((region) => region.high).filter(Number.isFinite);
  const xLow = Math.min(...xs);
  const xHigh = Math.max(...xs);
  const yHigh = Math.max(...highs, 0) * (figure.moved ? 1 : 1.05) || 1;
  const xScale = makeScale(xLow, xHigh, LEFT, width - RIGHT, false);
  const squareRootScale = (y) => bottom - Math.sqrt(Math.max(y, 0) / yHigh) * (bottom - TOP);
  const yScale = figure.moved ? squareRootScale : makeScale(0, yHigh, bottom, TOP, false);
  const root = chartRoot(figure, width, height, "group", "chart map");
  const xTicks = axisTicks(xLow, xHigh, false, width < 420 ? 4 : 7);
  const deltaTicks = DELTA_TICKS.filter((value) => value <= yHigh);
  const yTicks = figure.moved ? separateTicks(deltaTicks, yScale) : axisTicks(0, yHigh, false);
  root.append(...drawFrame(width, height, figure, xScale, yScale, xTicks, yTicks).parts);

  const shapes = regions.map((region, index) => {
    const d = regionPath(region, figure, xScale, yScale, bottom);
    const range = `${formatNumber(region.x[0])} to ${formatNumber(region.x.at(-1))}`;
    const access = { tabindex: "0", role: "img", "aria-label": `${region.name}, ε ${range}` };
    const shape = svg("path", { d, ...regionLook(region, figure), class: "region", ...access });
    const middle = Math.floor(region.x.length / 2);
    const centre = (region.low[middle] + region.high[middle]) / 2;
    shape.addEventListener("focus", () => root.point(index, region.x[middle], centre));
    shape.addEventListener("blur", () => root.point(-1));
    return Object.assign(shape, { region: index });
  });
  root.append(...shapes);
  regions.forEach((region, index) => {
    const elements = drawRegionNumber(region, figure, xScale, yScale);
    root.append(...elements.map((node) => Object.assign(node, { region: index })));
  });
  const guide = svg("g", { "pointer-events": "none" });
  root.append(guide);

  root.place = (point) => {
    guide.replaceChildren();
    if (!point || !(point.x >= xLow && point.x <= xHigh && point.y >= 0 && point.y <= yHigh)) return;
    const place = { cx: xScale(point.x), cy: yScale(point.y), r: 6.5 };
    guide.append(svg("circle", { ...place, fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 2 }));
  };
  root.place(mark);
  root.point = (index, x = null, y = null) => {
    shapes.forEach((shape, position) => shape.classList.toggle("pointed", position === index));
    tell?.(index, x, y);
  };
  const toValues = (event) => {
    const box = root.getBoundingClientRect();
    const factor = width / box.width;
    const pixelX = (event.clientX - box.left) * factor;
    const pixelY = (event.clientY - box.top) * factor;
    const share = Math.min(Math.max((bottom - pixelY) / (bottom - TOP), 0), 1);
    const x = xScale.invert(Math.min(Math.max(pixelX, LEFT), width - RIGHT));
    return [x, figure.moved ? yHigh * share * share : yHigh * share];
  };
  root.addEventListener("pointermove", (event) => {
    root.point(event.target.region ?? -1, ...toValues(event));
  });
  root.addEventListener("pointerleave", () => root.point(-1));
  if (pick) {
    root.addEventListener("click", (event) => {
      if (event.target.region !== undefined) pick(...toValues(event));
    });
  }
  return root;
};

// Build a sentence instead of a map that would be one rectangle.
function makeSingleFormula(figure) {
  const [region] = figure.regions;
  const formula = region.name.replace(/^\d+: /, "");
  const ends = `${formatNumber(region.x[0], 3)} to ${formatNumber(region.x.at(-1), 3)}`;
  const isWhole = Math.max(...region.high) >= 1 && Math.min(...region.low) <= 0;
  const deltas = isWhole ? "every δ" : "every δ of the proven region";
  const text = region.denominator
    ? `One formula is the optimum for ε from ${ends} and ${deltas}: ${formula}.`
    : `For ε from ${ends} and ${deltas}: ${formula}.`;
  const note = figure.note ? el("p", { class: "soft" }, figure.note) : "";
  const box = el("figure", {}, el("h2", {}, "The formula of the optimum"), el("p", {}, text), note);
  box.mark = () => {};
  return box;
}

// Build the map with the list of its formulas, and a line about the region under the pointer.
//
// Pointing at a formula of the list highlights its region.
function makeMap(figure, options = {}) {
  if (figure.moved && figure.regions.length === 1) return makeSingleFormula(figure);
  const target = figure.moved ? "a region" : "the curve";
  const action = options.pick ? "; click to go there" : "";
  const hint = `Point at ${target} to read its formula${action}.`;
  const pointed = el("p", { class: "pointed", role: "status" });
  const colours = new Map();
  for (const region of figure.regions) {
    const colour = region.denominator ? seriesColour(region.colour) : "var(--grid)";
    colours.set(region.name, colour);
  }
  const names = [...colours.keys()];
  const items = names.map((name) => {
    const swatch = svg("rect", { width: 26, height: 12, fill: colours.get(name) });
    const picture = svg("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, swatch);
    return el("li", { tabindex: "0" }, picture, name);
  });
  const tell = (index, x, y) => {
    const region = figure.regions[index];
    items.forEach((item, position) => {
      item.classList.toggle("pointed", names[position] === region?.name);
    });
    if (!region) {
      pointed.textContent = hint;
      return;
    }
    const formula = region.name.replace(/^\d+: /, "");
    if (x === null) {
      pointed.textContent = formula;
      return;
    }
    const delta = figure.moved ? `, δ = ${formatNumber(y, 3)}` : "";
    const value = optimumAt(region, x, figure.moved ? y : 0);
    const optimum = value === null ? "" : `${formatNumber(value, 5)} = `;
    pointed.textContent = `ε = ${formatNumber(x, 3)}${delta}: ${optimum}${formula}`;
  };
  const node = makeFigure(figure, { ...options, tell });
  items.forEach((item, position) => {
    const index = figure.regions.findIndex((region) => region.name === names[position]);
    const point = (target) => node.querySelector("svg.map")?.point(target);
    for (const event of ["pointerenter", "focus"]) item.addEventListener(event, () => point(index));
    for (const event of ["pointerleave", "blur"]) item.addEventListener(event, () => point(-1));
  });
  tell(-1);
  node.querySelector("h2").after(pointed);
  const makeList = (entries) => (
    el("ol", { class: "formulas", "aria-label": "Formulas" }, ...entries)
  );
  const folded = items.splice(MAX_LISTED_FORMULAS);
  node.append(makeList(items));
  if (folded.length) {
    node.append(makeFolded(`${folded.length} more formulas`, () => [makeList(folded)]));
  }
  return node;
}
