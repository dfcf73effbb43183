// What a design means in words, from the data that the page draws.

const TOLD = 42, CASES = 0.95;

// Four digits, rounded up.
function up(value) {
  if (value === null || !Number.isFinite(value) || value === 0) return String(value);
  const step = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 3);
  return short(Math.ceil(value / step - 1e-9) * step, 4);
}

// Of a squared loss its root: how far off a usual answer is.
function unit(view) {
  return view.label.includes("squared") && view.objective > 0 && view.status !== "infeasible" ? `root mean squared error ${short(Math.sqrt(view.objective), 6)}` : "";
}

// One less a little, the little rounded down.
function nearly(little) {
  const step = 10 ** (Math.floor(Math.log10(little)) - 1);
  return `1 - ${short(Math.floor(little / step) * step, 2)}`;
}

// The least distance within which 95 of 100 lie; none where the shown mass is less.
function radius(pairs) {
  let sum = 0;
  for (const [far, mass] of pairs.sort((a, b) => a[0] - b[0])) { sum += mass; if (sum >= CASES - 1e-9) return far; }
  return null;
}

function within(what, centre, far) {
  if (far === null) return "";
  return far === 0 ? `${what} is published as it is in at least 95 of 100 cases` : `${what} is published as ${centre} ± ${short(far, 4)} in 95 of 100 cases`;
}

// How near a published answer is to the true one, or what comes out most often.
function told(view) {
  const figure = view.figures[0];
  if (!figure) return "";
  if (figure.kind === "bars") {
    const values = figure.labels.map(Number);
    if (!figure.x.startsWith("noise") || !values.every(Number.isFinite)) return "";
    if (!figure.x.includes("added")) return within(`a true ${TOLD}`, TOLD, radius(values.map((v, k) => [Math.abs(v), figure.values[k]])));
    const order = values.length, at = Math.min(TOLD, Math.floor(order / 2));
    return `${within(`a true ${at}`, at, radius(values.map((v, k) => [Math.min(v, order - v), figure.values[k]])))} (modulo ${order})`;
  }
  if (figure.kind === "lines" && figure.series[0].look === "area") {
    const { x, y } = figure.series[0];
    return within("a true answer x", "x", radius(y.slice(0, -1).map((v, k) => [Math.abs(x[k] + x[k + 1]) / 2, v * (x[k + 1] - x[k])])));
  }
  if (figure.kind !== "heat" || !figure.y.startsWith("input")) return "";
  const found = figure.rows.indexOf(String(TOLD)), k = found < 0 ? Math.floor(figure.rows.length / 2) : found, at = figure.rows[k], row = figure.values[k];
  const outputs = figure.columns.map(Number);
  if (Number.isFinite(Number(at)) && outputs.every(Number.isFinite) && figure.columns.includes(at)) return within(`a true ${at}`, at, radius(outputs.map((v, j) => [Math.abs(v - Number(at)), row[j]])));
  const likely = row.map((mass, j) => [mass, figure.columns[j]]).sort((a, b) => b[0] - a[0]).slice(0, 3).filter(([mass]) => mass > 0);
  return `a true ${at} is published as ${likely.map(([mass, name]) => `${name} in ${short(100 * mass, 3)}`).join(", ")} of 100 cases`;
}

// What an attacker gains who tells two neighbours apart.
function leaks(risk) {
  if (!risk) return [];
  return [`Whoever must tell two neighbours apart by one output is right in at most ${up(100 * risk.guess)} of 100 cases (50 by guessing; advantage ${up(risk.advantage)}).`,
    risk.factor === null ? "A suspicion of 1/2 becomes certainty for some outputs; the odds move without bound." : `A suspicion of 1/2 becomes at most ${risk.posterior > 0.9995 ? nearly(1 / (1 + risk.factor)) : up(risk.posterior)}; the odds move by a factor of at most ${up(risk.factor)}.`];
}

// The options of `workbench.recommend` that the fields of the first page spell.
function queried({ form, answers, range, max_shift, ...rest }) {
  const filled = Object.fromEntries(Object.entries(rest).filter(([, text]) => text !== ""));
  if (form === "range") return { range, ...(max_shift ? { sensitivity: max_shift } : {}), ...filled };
  return form === "labels" ? { answers, neighbours: "all", ...filled } : { answers, max_shift, ...filled };
}

// What the page shows for a command of `workbench design`, as the text of a query; null of no command.
function stateOf(command, families) {
  const words = (command ?? "").match(/"[^"]*"|'[^']*'|\S+/g)?.map((word) => word.replace(/^(["'])(.*)\1$/, "$2")) ?? [], entry = families.get(words[2]);
  if (words[1] !== "design" || !entry) return null;
  const query = new URLSearchParams({ family: words[2] }), rest = words.slice(3);
  while (rest.length) {
    const [flag, equals] = rest.shift().split(/=(.*)/s), option = entry.options.find((one) => `--${one.flag.replaceAll("_", "-")}` === flag);
    if (!option) return null;
    query.append(option.name, option.kind === "flag" ? "true" : equals ?? rest.shift());
  }
  return String(query);
}
