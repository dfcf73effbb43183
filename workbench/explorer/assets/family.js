// The page of a family: its options, its sliders and the board of its design.
//
// A slider asks for a design at once. Everything that takes longer (the certificate, curves, the
// privacy profile, published mechanisms, formulas) follows in the background, in order of usefulness.

const LATE_MILLISECONDS = 400;  // After this time the page says that it is computing.
const ABORT_MILLISECONDS = 1500;  // A design that has run this long is stopped for a newer request.
const SLOW_DESIGN_MILLISECONDS = 120;  // Slower designs are replaced by those of a nearby budget.
const PROVE_MILLISECONDS = 1000;  // After a slower design the proof runs beside the sliders.
const BACKGROUND_DELAY_MILLISECONDS = 250;  // Curves and proofs start after this pause.
const FOLD_WIDTH = 900;  // The options are folded on pages up to this width (pixels).
const MAX_STORED_STEPS = 60;  // Designs of curves that are kept for a nearby budget.
const SOLVING = "solving …";

const BUDGET_OPTIONS = [
  "epsilon", "delta", "rho", "mu", "alpha", "curve", "tradeoff", "max_loss", "bits", "runs",
];
// A design is also private at every larger value of these numbers, or fits into more bits.
const LARGER_IS_WEAKER = ["epsilon", "delta", "rho", "mu", "bits"];
// A design is also private at every smaller value of this number.
const SMALLER_IS_WEAKER = ["runs"];
// Options that are lists of points, with the names of both coordinates.
const POINT_OPTIONS = { curve: ["ε", "δ"], tradeoff: ["α", "β"] };

const removeErrorName = (message) => message.replace(/^\w+: /, "");
const isAbort = (error) => error.name === "AbortError";

// Whether the text of an option is empty.
function isEmptyText(value) {
  const isEmptyList = Array.isArray(value) && !value.length;
  return value === "" || value === null || value === undefined || isEmptyList;
}

// Read points such as "0.5:0.1,1:0.01". Returns pairs of numbers.
function readPoints(text) {
  return String(text).split(",").map((part) => part.split(":").map(Number));
}

// Build the page of a family. Returns {read(query), stop(), leave()}.
//
// compared: the query text of a request -> its row of the comparison on the first page;
// open(queryText): opens another page.
function makeFamilyPage(root, { families, host, say, status, place, bar, stop, compared, open }) {
  let state = { family: [...families.keys()][0], given: {} };
  let controls = {};  // Name of an option -> its control.
  // The answer of the task "fields": `unfit` are the options that the request cannot have, and
  // `instead` maps an option to the options that it would replace.
  let room = { unfit: [], instead: {}, moved: [] };
  let isHere = false;  // Whether this page is the one that is shown.
  let isDragging = false;  // Whether the reader moves a slider, whose steps share a history entry.
  const curves = new Map();  // Key of a request without one number -> {figure, overlays, left}.
  const steps = new Map();  // The same key -> designs at values of that number: {at, view} of each.

  let designStart = 0;  // The time when the current design started. 0 while none is computed.
  let hasNewerRequest = false;  // Whether the request changed while a design was computed.
  let designMilliseconds = 0;  // How long the last design took.
  let fastController = null;  // The AbortController of the current design.
  let slowController = null;  // The AbortController of the background tasks.
  let backgroundTimer = 0;  // Starts the background tasks.
  let lateTimer = 0;  // Greys the previous design.

  const familySelect = el(
    "select", { id: "family", "aria-label": "Family" },
    ...[...families.values()].map(({ name, title }) => el("option", { value: name }, `${name}: ${title}`)),
  );
  const exampleSelect = el("select", { id: "example", "aria-label": "Example" });
  const saveExport = (answer) => download(`explore-${state.family}.html`, answer.html, "text/html");
  const runExport = () => runOnce("export", "computing the page", saveExport);
  const exportButton = el("button", { type: "button", onclick: runExport }, "Export page");
  const preventSubmit = (event) => event.preventDefault();
  const form = el("form", { "aria-label": "Request", onsubmit: preventSubmit });
  const summary = el("summary", {}, "Question and options");
  const options = el("details", { class: "controls" }, summary, form);
  const sliders = el("form", { class: "sliders", "aria-label": "Budget", onsubmit: preventSubmit });

  // The options are open on wide pages. They stay as the reader left them until the width changes
  // from wide to narrow or back.
  let wasWide = null;
  new ResizeObserver(([{ contentRect }]) => {
    if (!contentRect.width) return;
    const isWide = contentRect.width > FOLD_WIDTH;
    if (isWide !== wasWide) options.open = isWide;
    wasWide = isWide;
  }).observe(root);

  const board = makeBoard({
    live: true,
    open,
    sliders,
    move: (name, value, isDone) => setOption(name, writeThreeDigits(value), isDone),
    limit: minimise,
    listMinimisable: minimisableNumbers,
    showBudget: showDefaults,
    pick(x, y) {
      if (y !== null) {
        state.given = { ...state.given, delta: writeThreeDigits(y) };
        controls.delta?.set(state.given.delta);
      }
      setOption("epsilon", writeThreeDigits(x), true);
    },
  });
  const layout = el("div", { class: "layout" }, options, board.root);

  const currentFamily = () => families.get(state.family);
  const ask = (task, fields = {}, signal, progress = () => {}) => (
    host.ask(task, { ...state, ...fields }, signal, progress)
  );
  const formulaKey = () => {
    const given = { ...state.given, epsilon: null, delta: null };
    return JSON.stringify([state.family, "formulas", given]);
  };
  const keyWithout = (name, given = state.given) => (
    JSON.stringify([state.family, { ...given, [name]: null }])
  );

  // Show the values of the budget that the family uses for empty fields.
  function showDefaults(values) {
    for (const [name, value] of Object.entries(values)) {
      const input = controls[name]?.node.querySelector("input[type=text]");
      input?.setAttribute("placeholder", formatNumber(value));
    }
  }

  // Grey the previous design if the next one takes long.
  function expectDesign() {
    clearTimeout(lateTimer);
    lateTimer = setTimeout(() => board.showWaiting("computing …"), LATE_MILLISECONDS);
  }

  // Say that a computation was stopped.
  function showStopped() {
    say("Stopped.");
    clearTimeout(lateTimer);
    board.showWaiting("Stopped.");
  }

  // Return the row of the first page that answers a request, if there is one.
  function findComparedRow(given) {
    const query = new URLSearchParams({ family: state.family });
    for (const [name, value] of Object.entries(given)) {
      for (const text of [value].flat()) query.append(name, text);
    }
    return compared.get(normaliseQuery(query));
  }

  // Show a design, with the loss that the first page found for its request.
  function showDesign(view) {
    clearTimeout(lateTimer);
    board.show({ ...view, comparedLoss: findComparedRow(view.given)?.objective });
  }

  // Compute the design of the current request. Requests that arrive meanwhile are computed
  // afterwards; only the newest one counts.
  async function computeDesign() {
    if (designStart) {
      hasNewerRequest = true;
      if (performance.now() - designStart > ABORT_MILLISECONDS) fastController?.abort();
      return;
    }
    let hasFailed;
    do {
      hasFailed = !(await computeOneDesign());
    } while (hasNewerRequest && isHere);
    clearTimeout(backgroundTimer);
    if (isHere && !hasFailed) {
      backgroundTimer = setTimeout(runBackground, BACKGROUND_DELAY_MILLISECONDS);
    }
  }

  // Compute one design and show it. Returns whether the background may follow.
  async function computeOneDesign() {
    hasNewerRequest = false;
    designStart = performance.now();
    const start = designStart;
    const controller = new AbortController();
    fastController = controller;
    stop.disabled = false;
    const solvingTimer = setTimeout(() => say(SOLVING), LATE_MILLISECONDS);
    let mayContinue = true;
    try {
      // What the first page has designed is not designed again.
      const comparedView = findComparedRow(givenTexts())?.view;
      const view = comparedView ?? await ask("design", {}, controller.signal);
      designMilliseconds = performance.now() - start;
      if (!isHere) return false;
      acceptDesign(view);
    } catch (error) {
      const isSlow = /^(Stopped: Stopped after|NotProven)/.test(error.message);
      if (isAbort(error)) {
        if (!hasNewerRequest) showStopped();
      } else if (isSlow) {
        await proveSlowDesign(controller.signal);
      } else {
        showFailure(error);
        mayContinue = false;
      }
    } finally {
      clearTimeout(solvingTimer);
      designStart = 0;
    }
    stop.disabled = !slowController;
    return mayContinue;
  }

  // Show the design of the current request, and store it if its budget is a curve.
  function acceptDesign(view) {
    const isQuiet = status.className === "status" && status.textContent !== SOLVING;
    if (!hasNewerRequest && !isQuiet) say("");
    if (!hasNewerRequest || !steps.size) {
      markInvalid();
      showDesign(view);
    }
    if (hasNewerRequest) expectDesign();
    rememberCurveDesign(view);
  }

  // Compute the proof of a design that the sliders cannot wait for.
  async function proveSlowDesign(signal) {
    say(SOLVING);
    try {
      await showProof("prove", signal);
    } catch (error) {
      if (!isAbort(error)) throw error;
      if (!hasNewerRequest) showStopped();
    }
    if (status.textContent === SOLVING) say("");
  }

  // Show the stored design of a nearby budget while the solver is slow. It is private here too.
  function showNearbyDesign(name, text) {
    const stored = steps.get(keyWithout(name));
    const value = Number(text || 0);
    if (designMilliseconds < SLOW_DESIGN_MILLISECONDS || !stored?.length) return;
    if (!Number.isFinite(value)) return;
    const isReversed = SMALLER_IS_WEAKER.includes(name);
    if (!isReversed && !LARGER_IS_WEAKER.includes(name)) return;
    const sorted = [...stored].sort((a, b) => a.at - b.at);
    const below = sorted.filter((step) => step.at < value);
    const notAbove = sorted.filter((step) => step.at <= value);
    const nearest = isReversed ? sorted.find((step) => step.at >= value) : notAbove.at(-1);
    const next = isReversed ? below.at(-1) : sorted.find((step) => step.at > value);
    if (!nearest) return;
    const isExact = nearest.at === value;
    const low = isExact ? nearest.view.bound : next?.view.bound;
    let note = "";
    if (!isExact) {
      const high = formatNumber(nearest.view.objective, 5);
      const interval = Number.isFinite(low) ? `between ${formatNumber(low, 5)} and ${high}` : `at most ${high}`;
      const source = `the design at ${SYMBOLS[name] ?? name} = ${formatNumber(nearest.at)}`;
      const property = name === "bits" ? "fits into" : "is private at";
      note = `Shown: ${source}, which ${property} ${formatNumber(value)} too. `
        + `The smallest ${nearest.view.label} here is ${interval}.`;
    }
    const hot = { ...nearest.view.hot, [name]: value };
    showBorrowedDesign({ ...nearest.view, hot }, note);
  }

  // Show a design of another budget, marked as not proven for this one.
  function showBorrowedDesign(view, note) {
    const flags = { preliminary: true, borrowed: true, proving: true, certified: false };
    showDesign({ ...view, ...flags, given: { ...state.given }, note });
  }

  // Store a design for a list of points, for nearby lists.
  function rememberCurveDesign(view) {
    const name = Object.keys(POINT_OPTIONS).find((option) => option in view.given);
    if (!name || view.objective === null) return;
    const key = keyWithout(name, view.given);
    const stored = steps.get(key) ?? [];
    const step = { points: readPoints(view.given[name]), view };
    steps.set(key, [...stored.slice(-MAX_STORED_STEPS), step]);
  }

  // Show the stored design of nearby points while the solver is slow.
  //
  // A design is private at every curve that is nowhere below its own, and at every trade-off
  // function that is nowhere above its own.
  function showNearbyCurveDesign(name, text) {
    const points = readPoints(text);
    const sign = name === "curve" ? 1 : -1;
    const isPrivateHere = (step) => {
      if (step.points?.length !== points.length) return false;
      return step.points.every(([position, height], index) => (
        position === points[index][0] && sign * height <= sign * points[index][1]
      ));
    };
    const usable = (steps.get(keyWithout(name)) ?? []).filter(isPrivateHere);
    if (designMilliseconds < SLOW_DESIGN_MILLISECONDS || !usable.length) return;
    const best = usable.reduce((a, b) => (b.view.objective < a.view.objective ? b : a));
    const loss = formatNumber(best.view.objective, 5);
    const note = `Shown: the design of another ${name}, which is private at this one too. `
      + `The optimal loss here is at most ${loss}.`;
    showBorrowedDesign(best.view, note);
  }

  // Return the options of the request without those that are empty, as the views repeat them.
  function givenTexts() {
    return Object.fromEntries(Object.entries(state.given).filter(([, value]) => !isEmptyText(value)));
  }

  // Show an error beside the option that it names, with a text that would be understood.
  function showFailure(error) {
    clearTimeout(lateTimer);
    if (!(error instanceof Failure)) console.error(error);
    const text = error.message.replace(/^InvalidRequest: /, "");
    say(text, true);
    const name = Object.keys(controls).find((option) => new RegExp(`^${option}\\b`).test(text));
    markInvalid(name, text);
    const proposal = name ? proposePlainText(name, state.given[name]) : null;
    board.showError(text, proposal && {
      text: `Use ${proposal.text}${proposal.note}`,
      action: () => setOption(name, proposal.text, true),
    });
    root.dispatchEvent(new CustomEvent("workbench-failed", { bubbles: true, detail: text }));
  }

  // Mark the control of one option as invalid and all others as valid.
  function markInvalid(invalidName = null, text = null) {
    for (const [name, control] of Object.entries(controls)) {
      control.fail(name === invalidName ? text : null);
    }
  }

  // Compute and show the certified design: the numbers of the command line.
  async function showProof(task, signal) {
    try {
      const view = await ask(task, {}, signal);
      if (!signal.aborted && isHere) showDesign(view);
    } catch (error) {
      if (isAbort(error)) throw error;
      if (!(error instanceof Failure)) console.error(error);
      const { view } = board;
      const isCurrent = view && JSON.stringify(view.given) === JSON.stringify(givenTexts());
      const note = removeErrorName(error.message);
      if (isCurrent) showDesign({ ...view, proving: false, preliminary: false, note });
      else showFailure(error);
    }
  }

  // List the tasks of the background: [task, fields of its request].
  function planBackground() {
    const { view } = board;
    const family = currentFamily();
    const hasMechanism = view && view.objective !== null;
    const jobs = [];
    if (hasMechanism && family.certifies && !view.certificate) {
      const isSlow = view.quick === false || designMilliseconds > PROVE_MILLISECONDS;
      jobs.push([isSlow ? "prove" : "certify"]);
    } else if (view?.borrowed || view?.preliminary) {
      jobs.push(["complete"]);
    }
    if (!family.known) jobs.push(["suggestions"]);
    jobs.push(["fields"]);
    if (hasMechanism) {
      const names = sliderNames();
      jobs.push(...names.map((name) => ["along", { along: name }]));
      jobs.push(["profile"], ["rivals"], ["formulas"]);
      jobs.push(...names.map((name) => ["along", { along: name, finer: true }]));
    }
    return jobs;
  }

  // List the numbers of the budget that have sliders.
  function sliderNames() {
    return Object.keys(board.view?.hot ?? {}).filter((name) => !room.unfit.includes(name));
  }

  // Run one background task.
  async function runJob(task, fields, signal) {
    if (["certify", "prove", "complete"].includes(task)) await showProof(task, signal);
    else if (task === "suggestions") await loadSuggestions(signal);
    else if (task === "fields") await loadRoom(signal);
    else if (!room.unfit.includes(fields.along)) await showPart(task, fields, signal);
  }

  // Run everything that takes longer. A change of the request stops it.
  async function runBackground() {
    const controller = new AbortController();
    slowController = controller;
    stop.disabled = false;
    const jobs = planBackground();
    const missingValues = (fields) => curves.get(keyWithout(fields.along))?.left;
    let isSettled = false;
    // The list of jobs grows while it is processed.
    for (const [task, fields = {}] of jobs) {
      if (controller.signal.aborted) break;
      if (fields.finer && !isSettled) {
        isSettled = true;
        announceSettled();
      }
      const before = missingValues(fields);
      try {
        await runJob(task, fields, controller.signal);
        const after = missingValues(fields);
        if (fields.finer && after && after !== before) jobs.push([task, fields]);
      } catch (error) {
        if (!isAbort(error)) throw error;
        if (slowController === controller) say("Stopped.");
        break;
      }
    }
    if (slowController !== controller) return;
    slowController = null;
    stop.disabled = !designStart;
    if (!isSettled) announceSettled();
  }

  // Announce that all cards have content. Curves may still become finer.
  function announceSettled() {
    board.fillColumns();
    const { dataset } = board.root;
    dataset.settled = String(Number(dataset.settled ?? 0) + 1);
    root.dispatchEvent(new CustomEvent("workbench-settled", { bubbles: true }));
  }

  // Return the key and the title of the card of a task.
  function cardOf(task, name) {
    if (task === "along") return [`along ${name}`, `Loss against ${SYMBOLS[name] ?? name}`];
    if (task === "profile") return ["privacy", "Privacy"];
    if (task === "formulas") return ["formulas", "Map of the formulas"];
    return [task, "Other mechanisms"];
  }

  // Show a stored answer of a task. Returns whether the task is done.
  function showStored(task, fields, stored) {
    if (!stored) return false;
    if (task === "formulas") {
      if (!board.cards.formulas && stored.figure) board.showFormulas(stored.figure);
      return true;
    }
    if (fields.finer && stored.left) return false;
    if (!board.cards[`along ${fields.along}`]) {
      board.showCurve(fields.along, stored.figure, stored.overlays);
    }
    return true;
  }

  // Compute one part of the page and show it in its card.
  async function showPart(task, fields, signal) {
    const name = fields.along;
    const key = task === "formulas" ? formulaKey() : name && keyWithout(name);
    const stored = key && curves.get(key);
    if (showStored(task, fields, stored)) return;
    const [cardKey, title] = cardOf(task, name);
    const card = board.addCard(cardKey, title);
    if (card.isEmpty) card.title();
    card.say(fields.finer ? "" : "computing …");
    const progress = (done, total, step) => {
      card.say(`computing${fields.finer ? " more values" : ""}, ${done} of ${total} …`);
      if (!step?.along) return;
      const otherSteps = (steps.get(key) ?? []).filter((stored) => stored.at !== step.at);
      steps.set(key, [...otherSteps, step]);
    };
    try {
      const answer = await ask(task, fields, signal, progress);
      if (signal.aborted || !isHere) return;
      showAnswer(task, name, key, answer, stored);
      board.cards[cardKey]?.fresh();
    } catch (error) {
      if (isAbort(error)) {
        card.say("");
        throw error;
      }
      if (!(error instanceof Failure)) console.error(error);
      if (task === "formulas") curves.set(key, { figure: null });
      const isExpected = !/^(Bug|Stopped)/.test(error.message);
      const isEmpty = card.node.querySelector("svg, table") === null;
      if (isExpected && (task === "rivals" || isEmpty)) {
        board.dropCard(cardKey);
      } else {
        card.stale();
        card.say(removeErrorName(error.message));
      }
    }
  }

  // Store and show the answer of a background task.
  //
  // name: the number of the budget of a curve; key: where curves are stored; stored: the stored curve.
  function showAnswer(task, name, key, answer, stored) {
    if (task === "along") {
      const overlays = stored?.overlays ?? [];
      curves.set(key, { figure: answer.figure, overlays, left: answer.left });
      board.showCurve(name, answer.figure, overlays);
    } else if (task === "profile") {
      board.showPrivacy(answer);
    } else if (task === "formulas") {
      curves.set(key, { figure: answer });
      board.showFormulas(answer);
    } else {
      board.showRivals(answer);
      for (const [axis, overlays] of Object.entries(answer.overlays)) {
        const curve = curves.get(keyWithout(axis));
        if (!curve || !sliderNames().includes(axis)) continue;
        curve.overlays = overlays;
        board.showCurve(axis, curve.figure, overlays);
      }
    }
  }

  // Run the task of a button. text: what is being done; accept(answer): receives the result.
  async function runOnce(task, text, accept, fields = {}) {
    slowController?.abort();
    clearTimeout(backgroundTimer);
    const controller = new AbortController();
    fastController = controller;
    stop.disabled = false;
    exportButton.disabled = true;
    say(`${text} …`);
    const progress = (done, total) => say(`${text}, ${done} of ${total} …`);
    try {
      const answer = await ask(task, fields, controller.signal, progress);
      say("");
      accept(answer);
    } catch (error) {
      if (isAbort(error)) say("Stopped.");
      else showFailure(error);
    }
    exportButton.disabled = false;
    stop.disabled = true;
  }

  // List the numbers of the budget that the family can minimise.
  function minimisableNumbers(view) {
    const canMinimise = currentFamily().options.some((option) => option.name === "minimise");
    if (!canMinimise) return [];
    return ["epsilon", "delta"].filter((name) => typeof view?.hot[name] === "number");
  }

  // Find the minimal value of a number of the budget for a loss.
  function minimise(name, maxLoss) {
    if (!Number.isFinite(maxLoss)) {
      say("The loss must be a number.", true);
      return;
    }
    const given = { ...state.given, minimise: name, max_loss: String(maxLoss) };
    delete given[name];
    const accept = (view) => {
      if (view.objective === null) {
        say(view.reason, true);
        return;
      }
      const value = roundUp(view.objective);
      setOption(name, value, true);
      say(`Minimal ${name}: ${value}, for a loss of at most ${formatNumber(maxLoss)}.`);
    };
    runOnce("complete", `computing the minimal ${name}`, accept, { given });
  }

  // Set an option and compute the design.
  function setOption(name, text, isDone) {
    const value = readPlainText(name, text);
    const family = currentFamily();
    const option = family.options.find((entry) => entry.name === name);
    const given = { ...state.given };
    for (const replacedName of room.instead[name] ?? []) delete given[replacedName];
    if (value === "" || value === option.default) delete given[name];
    else given[name] = value;
    state.given = given;
    controls[name]?.set(value);
    slowController?.abort();
    slowController = null;
    clearTimeout(backgroundTimer);
    if (family.words?.[name] || option.kind === "flag" || room.instead[name]) {
      adaptRequest(name, isDone);
      return;
    }
    writeState(isDone);
    if (option.range) showNearbyDesign(name, value);
    else if (name in POINT_OPTIONS) showNearbyCurveDesign(name, value);
    computeDesign();
  }

  // Remove the options that no longer fit after a choice, and add those that are then missing.
  async function adaptRequest(name, isDone) {
    expectDesign();
    const objective = board.view?.objective;
    const limit = objective ? formatNumber(1.1 * objective, 3) : null;
    try {
      const adapted = await ask("adapt", { changed: name, limit });
      state.given = adapted.given;
      room = adapted.room;
    } catch (error) {
      if (!isAbort(error)) showFailure(error);
    }
    writeState(isDone);
    buildControls();
    board.reset(false);
    curves.clear();
    steps.clear();
    await computeDesign();
  }

  // Write the state to the address. A drag makes one entry of the history in all.
  function writeState(isDone) {
    expectDesign();
    const query = new URLSearchParams({ family: state.family });
    for (const [name, value] of Object.entries(state.given)) {
      for (const text of [value].flat()) {
        if (text !== "") query.append(name, text);
      }
    }
    host.keep(String(query), !isDragging);
    isDragging = !isDone;
  }

  // Show the request of an address.
  function read(query) {
    const name = query.get("family") ?? state.family;
    const family = families.get(name);
    query.delete("family");
    isHere = true;
    if (place.firstChild !== layout) {
      bar.replaceChildren(familySelect, exampleSelect, exportButton);
      place.replaceChildren(layout);
    }
    if (!family) {
      const message = `family must be one of ${[...families.keys()].join(", ")}. Got '${name}'.`;
      chooseFamily(state.family, null).then(() => say(message, true));
      return;
    }
    const given = {};
    for (const key of new Set(query.keys())) {
      const kind = family.options.find((option) => option.name === key)?.kind;
      const texts = query.getAll(key);
      if (kind === "flag") given[key] = texts[0] === "true";
      else given[key] = kind === "list" ? texts : texts[0];
    }
    chooseFamily(name, Object.keys(given).length ? given : null);
  }

  // Show a family. given: its options; null for its first example.
  function chooseFamily(name, given) {
    const family = families.get(name);
    state = { family: name, given: given ?? { ...family.first } };
    familySelect.value = name;
    listExamples(family);
    // Until the server knows better, parameters of other notions are assumed not to fit.
    const isOtherBudget = (option) => {
      if (option.name in state.given || ["epsilon", "delta"].includes(option.name)) return false;
      return option.name in SYMBOLS || option.name in POINT_OPTIONS;
    };
    const unfit = family.options.filter(isOtherBudget).map((option) => option.name);
    room = { unfit, instead: {}, moved: Object.keys(state.given) };
    buildControls();
    board.reset();
    curves.clear();
    steps.clear();
    designMilliseconds = 0;
    slowController?.abort();
    slowController = null;
    clearTimeout(backgroundTimer);
    say("");
    expectDesign();
    return computeDesign();
  }

  // Fill the list of the examples of a family.
  function listExamples(family) {
    const examples = (family.examples ?? []).map(({ title }, index) => (
      el("option", { value: index }, title)
    ));
    exampleSelect.replaceChildren(el("option", { value: "" }, "Examples …"), ...examples);
  }

  // Load the examples and the texts that options accept. The server loads models and solvers first.
  async function loadSuggestions(signal) {
    const name = state.family;
    const family = currentFamily();
    const { words, labels, examples } = await ask("suggestions", {}, signal);
    Object.assign(family, { words, labels, examples, known: true });
    if (name !== state.family) return;
    listExamples(family);
    buildControls();
  }

  // Load which options fit the request.
  async function loadRoom(signal) {
    const answer = await ask("fields", {}, signal);
    if (JSON.stringify(answer) === JSON.stringify(room)) return;
    room = answer;
    buildControls();
  }

  // Whether an option of the budget belongs to the sliders.
  function isSliderOption(option) {
    if (option.name === "runs" && !("runs" in state.given)) return false;
    const isGiven = option.name in state.given;
    return option.hot || isGiven || option.range || option.name in POINT_OPTIONS;
  }

  // Build the controls of all options that fit the request.
  function buildControls() {
    const family = currentFamily();
    const choices = family.words ?? {};
    const focusedId = root.getRootNode().activeElement?.id;
    controls = {};
    const makeNode = (option) => {
      const { name } = option;
      const points = POINT_OPTIONS[name];
      const described = { ...option, points, labels: family.labels?.[name] ?? {} };
      controls[name] = makeControl(described, state.given[name], setOption, choices[name]);
      return controls[name].node;
    };
    const makeGroup = (title, listed) => {
      if (!listed.length) return "";
      return el("fieldset", {}, el("legend", {}, title), ...listed.map(makeNode));
    };
    const makeFoldedGroup = (title, listed) => {
      const body = listed.length ? el("div", {}, ...listed.map(makeNode)) : "";
      return el("details", {}, el("summary", {}, title), body);
    };
    const fitting = family.options.filter((option) => (
      !room.unfit.includes(option.name) && !room.instead[option.name]
    ));
    const budget = BUDGET_OPTIONS
      .map((name) => fitting.find((option) => option.name === name))
      .filter((option) => option && isSliderOption(option));
    const others = fitting.filter((option) => !budget.includes(option));
    const alternatives = family.options.filter((option) => room.instead[option.name] && !option.minor);
    sliders.replaceChildren(el("h2", {}, "Budget"), ...budget.map(makeNode));
    const parts = [
      el("p", { class: "soft" }, family.summary),
      makeGroup("Question", others.filter((option) => option.question)),
      makeGroup("Request", others.filter((option) => !option.question && !option.minor)),
      alternatives.length ? makeFoldedGroup("Alternative options", alternatives) : "",
      makeFoldedGroup("Solver", others.filter((option) => option.minor)),
    ];
    form.replaceChildren(...parts.filter(Boolean));
    if (focusedId) root.getRootNode().getElementById?.(focusedId)?.focus();
  }

  familySelect.addEventListener("change", () => {
    chooseFamily(familySelect.value, null);
    writeState(true);
  });
  exampleSelect.addEventListener("change", () => {
    const example = currentFamily().examples[Number(exampleSelect.value)];
    if (exampleSelect.value === "" || !example) return;
    chooseFamily(state.family, { ...example.given });
    writeState(true);
  });
  return {
    read,
    stop() {
      slowController?.abort();
      fastController?.abort();
    },
    leave() {
      isHere = false;
      slowController?.abort();
      fastController?.abort();
      clearTimeout(backgroundTimer);
      slowController = null;
    },
  };
}
