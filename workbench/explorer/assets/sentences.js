// Describe a design in sentences, from the data that the page draws.

const EXAMPLE_ANSWER = 42;  // Sentences about one answer use this one if it exists.
const USUAL_SHARE = 0.95;  // "In 95 of 100 cases" refers to this probability.

// Write a number with four digits, rounded up.
function roundUp(value) {
  if (value === null || !Number.isFinite(value) || value === 0) return String(value);
  const step = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 3);
  return formatNumber(Math.ceil(value / step - 1e-9) * step, 4);
}

// Describe the root of a squared loss. Returns "" for other losses.
function describeRootLoss(view) {
  const isSquared = view.label.includes("squared");
  if (!isSquared || !(view.objective > 0) || view.status === "infeasible") return "";
  return `root mean squared error ${formatNumber(Math.sqrt(view.objective), 6)}`;
}

// Write 1 - gap with the gap rounded down.
function writeOneMinus(gap) {
  const step = 10 ** (Math.floor(Math.log10(gap)) - 1);
  return `1 - ${formatNumber(Math.floor(gap / step) * step, 2)}`;
}

// Find the smallest distance with probability USUAL_SHARE; null if the given mass is smaller.
//
// pairs: [distance, mass] of every noise value that is drawn.
function findUsualDistance(pairs) {
  let sum = 0;
  for (const [distance, mass] of pairs.sort((a, b) => a[0] - b[0])) {
    sum += mass;
    if (sum >= USUAL_SHARE - 1e-9) return distance;
  }
  return null;
}

// Describe how far outputs usually are from an answer. Returns "" if the distance is unknown.
function describeUsualError(subject, centre, distance) {
  if (distance === null) return "";
  if (distance === 0) return `${subject} is published unchanged in at least 95 of 100 cases`;
  return `${subject} is published as ${centre} ± ${formatNumber(distance, 4)} in 95 of 100 cases`;
}

// Describe the usual error of noise that is drawn as bars.
function describeNoiseBars(figure) {
  const values = figure.labels.map(Number);
  if (!figure.x.startsWith("noise") || !values.every(Number.isFinite)) return "";
  const isModular = figure.x.includes("added");
  if (!isModular) {
    const pairs = values.map((value, index) => [Math.abs(value), figure.values[index]]);
    const distance = findUsualDistance(pairs);
    return describeUsualError(`a true ${EXAMPLE_ANSWER}`, EXAMPLE_ANSWER, distance);
  }
  const modulus = values.length;
  const answer = Math.min(EXAMPLE_ANSWER, Math.floor(modulus / 2));
  const pairs = values.map((value, index) => (
    [Math.min(value, modulus - value), figure.values[index]]
  ));
  const sentence = describeUsualError(`a true ${answer}`, answer, findUsualDistance(pairs));
  return `${sentence} (modulo ${modulus})`;
}

// Describe the usual error of noise that is drawn as a density.
function describeNoiseDensity(series) {
  const { x, y } = series;
  const pairs = y.slice(0, -1).map((density, index) => (
    [Math.abs(x[index] + x[index + 1]) / 2, density * (x[index + 1] - x[index])]
  ));
  return describeUsualError("a true answer x", "x", findUsualDistance(pairs));
}

// Describe the outputs of one input of a channel.
function describeChannelRow(figure) {
  const exampleIndex = figure.rows.indexOf(String(EXAMPLE_ANSWER));
  const index = exampleIndex < 0 ? Math.floor(figure.rows.length / 2) : exampleIndex;
  const input = figure.rows[index];
  const masses = figure.values[index];
  const outputs = figure.columns.map(Number);
  const areNumbers = Number.isFinite(Number(input)) && outputs.every(Number.isFinite);
  if (areNumbers && figure.columns.includes(input)) {
    const pairs = outputs.map((output, column) => [Math.abs(output - Number(input)), masses[column]]);
    return describeUsualError(`a true ${input}`, input, findUsualDistance(pairs));
  }
  const likely = masses.map((mass, column) => [mass, figure.columns[column]]);
  likely.sort((a, b) => b[0] - a[0]);
  const shares = likely.slice(0, 3).filter(([mass]) => mass > 0);
  const texts = shares.map(([mass, name]) => `${name} in ${formatNumber(100 * mass, 3)}`);
  return `a true ${input} is published as ${texts.join(", ")} of 100 cases`;
}

// Describe how close outputs are to the true answer, or the most likely outputs.
function describeOutputs(view) {
  const figure = view.figures[0];
  if (!figure) return "";
  if (figure.kind === "bars") return describeNoiseBars(figure);
  if (figure.kind === "lines" && figure.series[0].look === "area") {
    return describeNoiseDensity(figure.series[0]);
  }
  const isChannel = figure.kind === "heat" && figure.y.startsWith("input");
  return isChannel ? describeChannelRow(figure) : "";
}

// Describe the success of an attacker who distinguishes two neighbours. Returns sentences.
function describeAttacker(risk) {
  if (!risk) return [];
  const guess = `An attacker who distinguishes two neighbours by one output is right in at most `
    + `${roundUp(100 * risk.guess)} of 100 cases (50 by guessing; advantage ${roundUp(risk.advantage)}).`;
  if (risk.factor === null) {
    return [guess, "For some outputs a belief of 1/2 becomes certainty. The change of the odds has no bound."];
  }
  const isNearOne = risk.posterior > 0.9995;
  const posterior = isNearOne ? writeOneMinus(1 / (1 + risk.factor)) : roundUp(risk.posterior);
  const odds = `the odds change by a factor of at most ${roundUp(risk.factor)}`;
  return [guess, `A belief of 1/2 becomes at most ${posterior}; ${odds}.`];
}

// Convert the fields of the first page to options of `workbench.recommend`.
function recommendOptions({ form, answers, range, max_shift, ...others }) {
  const filled = Object.fromEntries(Object.entries(others).filter(([, text]) => text !== ""));
  if (form === "range") {
    const sensitivity = max_shift ? { sensitivity: max_shift } : {};
    return { range, ...sensitivity, ...filled };
  }
  if (form === "labels") return { answers, neighbours: "all", ...filled };
  return { answers, max_shift, ...filled };
}
