// Show one design in cards: its result, its law, curves of its loss, its privacy, rivals and proof.
//
// The page of a family (family.js), the page of a class (class.js) and exported pages (document.js)
// make a board. A "view" is the JSON object that `workbench/explorer/views.py` makes of a design.

const MAX_PINNED_DESIGNS = 4;
const CARD_GAP = 16;  // The space below a card, in pixels.

// The cards of a family's page. A card starts in the column of FIRST_COLUMNS; once all cards have
// content, the columns are filled evenly in the order of CARD_ORDER.
const FIRST_COLUMNS = {
  law: 0, privacy: 0, "privacy 1": 0, rivals: 1, pins: 1, formulas: 1, proof: 0, code: 1, missing: 0,
};
const CARD_ORDER = [
  "law", "along", "privacy", "privacy 1", "pins", "rivals", "formulas", "proof", "code", "missing",
];

// Return the class and the text of the badge of a design.
function chooseBadge(view) {
  if (view.objective === null) return ["badge bad", "infeasible"];
  if (view.certified) return ["badge proven", "✓ certified: private in exact arithmetic"];
  if ((view.unfinished && view.proving) || view.preliminary) return ["badge open", "computing …"];
  if (view.proving) return ["badge open", "proving …"];
  if (view.certifies) return ["badge missed", "not certified"];
  return ["badge", "this family has no certificates: see its guarantee"];
}

const capitalise = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

// Describe the lower bound of a class. Returns "" if it is unknown.
function describeBound(view) {
  if (view.bound === null || view.bound === undefined) return "";
  const bound = formatCell(view.bound);
  if (bound === formatCell(view.objective)) return " This loss is optimal in its class.";
  return ` The lower bound of the class is ${bound}.`;
}

// Build the elements of the result: the loss, its badge, its bound and its meaning.
function makeResult(view, actions) {
  const [badgeClass, badgeText] = chooseBadge(view);
  const badge = el("span", { class: badgeClass }, badgeText);
  const note = view.note ? el("span", { class: "soft" }, view.note) : "";
  const status = el("p", {}, badge, " ", note);
  const heading = el("h2", {}, view.heading);
  if (view.objective === null) {
    return [
      heading,
      el("p", { class: "soft" }, view.title),
      el("p", { class: "value none" }, "No mechanism satisfies this request"),
      el("p", { class: "lead" }, view.reason),
      status,
    ];
  }
  const isOpen = !view.certified && (view.unfinished || view.preliminary);
  // The first page may have found a smaller loss than an unfinished search.
  const smallest = Math.min(view.objective, view.comparedLoss ?? Infinity);
  const value = formatCell(isOpen ? smallest : view.objective);
  const elements = [
    heading,
    el("p", { class: "soft" }, `${view.label}: ${view.title}`),
    el("p", { class: isOpen ? "value open" : "value" }, isOpen ? `at most ${value}` : value),
  ];
  if (isOpen && smallest < view.objective) {
    const better = `The first page found a mechanism with loss ${formatCell(smallest)}.`;
    const current = `The mechanism below has loss ${formatCell(view.objective)} so far.`;
    elements.push(el("p", { class: "lead" }, `${better} ${current}`));
  }
  elements.push(status);
  const rootLoss = view.rootLossText ? `${capitalise(view.rootLossText)}.` : "";
  elements.push(el("p", { class: "lead" }, rootLoss, describeBound(view)));
  if (view.outputsText) elements.push(el("p", { class: "lead" }, `${capitalise(view.outputsText)}.`));
  if (actions.pin) {
    const pin = el("button", { type: "button", onclick: actions.pin }, "Pin to compare");
    elements.push(el("div", { class: "row" }, actions.live ? pin : ""));
  }
  if (actions.limit) elements.push(makeMinimiser(view, actions));
  return elements.filter(Boolean);
}

// Build the content of the card of the proof.
function makeProof(view) {
  const elements = [el("h2", {}, "Proof"), makeFacts(view.facts)];
  if (view.certificate) {
    const save = () => download("certificate.json", view.certificate, "application/json");
    const button = el("button", { type: "button", class: "main", onclick: save }, "Save the certificate");
    const hint = "A single file checks it with the standard library of any Python:";
    elements.push(el("div", { class: "row" }, button), el("p", { class: "soft" }, hint));
    elements.push(el("pre", {}, "python check_certificate.py certificate.json"));
  }
  const title = "The row, with the columns of the command line";
  elements.push(makeFoldedTable(title, ["column", "value"], Object.entries(view.row)));
  return elements;
}

// Build the input that minimises a number of the budget for a given loss. Returns "" if the family
// cannot minimise. Dragging the knob of a chart does the same.
function makeMinimiser(view, actions) {
  const input = el("input", {
    type: "text", inputmode: "decimal", "aria-label": `Maximal ${view.label}`,
    value: formatNumber(view.objective, 4),
  });
  const makeButton = (name) => {
    const minimise = () => actions.limit(name, Number(input.value));
    return el("button", { type: "button", onclick: minimise }, `minimal ${name}`);
  };
  const buttons = actions.listMinimisable(view).map(makeButton);
  if (!buttons.length) return "";
  const label = el("span", {}, `For ${view.label.replace(/^(least|minimal) /, "")} at most`);
  return el("div", { class: "inverse" }, label, input, ...buttons);
}

// Restrict an outline {name, x, y} to a range of x.
function restrictOutline(outline, low, high) {
  const xs = [];
  const ys = [];
  outline.x.forEach((x, index) => {
    if (!(x >= low && x <= high)) return;
    xs.push(x);
    ys.push(outline.y[Math.min(index, outline.y.length - 1)]);
  });
  return { name: outline.name, x: xs, y: ys };
}

// Build a board.
//
// actions, all of which may be missing:
//   sliders                    The element of the sliders.
//   live                       Whether designs can be pinned.
//   move(name, value, isDone)  Called while the reader moves a number of the budget.
//   limit(name, loss)          Minimise a number of the budget for a largest loss.
//   listMinimisable(view)      Return the names of the numbers that can be minimised.
//   showBudget(values)         Called with the values of the budget of a new design.
//   pick(epsilon, delta)       Called when the reader picks a point of the map.
//   open(address)              Open another page.
function makeBoard(actions = {}) {
  const hero = el("section", { class: "card hero", "aria-label": "Result" });
  const columns = [0, 1].map(() => el("div", { class: "column" }));
  const root = el("main", {}, hero, el("div", { class: "columns" }, ...columns));
  const cards = {};
  const result = el("div");
  const alert = el("p", { class: "alert", role: "alert", hidden: true });
  const waiting = el("p", { class: "waiting", role: "status", hidden: true });
  hero.append(alert, waiting, el("div", { class: "split" }, result, actions.sliders ?? ""));

  let view = null;  // The view of the design that is shown.
  let curves = {};  // Name of a number of the budget -> {figure, overlays}.
  let curveNodes = {};  // Name of a number of the budget -> the element of its chart.
  let map = null;  // The element of the map of formulas.
  let pins = [];  // The pinned designs: {name, view} of each.
  let outlines = [];  // Outlines of the laws of published noise: {name, x, y} of each.
  let lawNodes = [];  // The elements of the figures of the law.
  let filledCards = "";  // The names of the cards when the columns were last filled.

  const addCard = (key, title) => {
    if (!cards[key]) {
      const card = makeCard(title);
      const column = columns[FIRST_COLUMNS[key] ?? 1];
      card.order = CARD_ORDER.indexOf(key in FIRST_COLUMNS ? key : key.split(" ")[0]);
      card.node.style.order = card.order;
      cards[key] = card;
      const next = [...column.children].find((node) => Number(node.style.order) > card.order);
      column.insertBefore(card.node, next ?? null);
    }
    return cards[key];
  };
  const addFreshCard = (key, title) => {
    const card = addCard(key, title);
    card.node.classList.remove("stale");
    return card;
  };
  const dropCard = (key) => {
    cards[key]?.node.remove();
    delete cards[key];
  };
  const sortedCards = () => Object.values(cards).sort((a, b) => a.order - b.order);

  // Distribute the cards over the columns so that both have about the same height.
  const fillColumns = () => {
    const names = Object.keys(cards).sort().join();
    // A column with the focus is not changed, because the reader is using it.
    const active = root.getRootNode().activeElement;
    if (filledCards === names || columns.some((column) => column.contains(active))) return;
    filledCards = names;
    const heights = [0, 0];
    const placed = sortedCards().map((card) => {
      const side = Number(heights[1] < heights[0]);
      heights[side] += card.node.offsetHeight + CARD_GAP;
      return [card.node, columns[side]];
    });
    for (const [node, column] of placed) {
      if (node.parentNode !== column || column.lastChild !== node) column.append(node);
    }
  };
  // On paper the cards follow each other in their order.
  addEventListener("beforeprint", () => {
    filledCards = "";
    columns[0].append(...sortedCards().map((card) => card.node));
  });
  addEventListener("afterprint", () => fillColumns());

  const figureOptions = () => ({ command: () => view?.command ?? "" });
  const markOf = (name) => (
    { x: Number(view?.hot[name] ?? NaN), y: view?.objective, proven: view?.certified }
  );
  const mapPoint = () => (
    { x: Number(view?.hot.epsilon ?? NaN), y: Number(view?.hot.delta ?? (view?.objective || 0)) }
  );

  const drawCurve = (name) => {
    const { overlays } = curves[name];
    let { figure } = curves[name];
    // A note stands below the first chart only.
    const first = Object.keys(curves).find((number) => curves[number].figure.note === figure.note);
    if (first !== name) figure = { ...figure, note: "" };
    const points = pins.map((pin) => ({ name: pin.name, x: pin.view.hot[name], y: pin.view.objective }));
    const canMinimise = actions.listMinimisable?.(view).includes(name);
    const limit = (loss, isDone) => isDone && actions.limit(name, loss);
    const options = {
      ...figureOptions(),
      mark: markOf(name),
      pins: points,
      drag: actions.move && ((x, isDone) => actions.move(name, x, isDone)),
      limit: canMinimise ? limit : null,
    };
    // Halos and bands are drawn below the overlays, all other series above them.
    const isBackground = (series) => series.look === "halo" || series.look === "band";
    const background = figure.series.filter(isBackground);
    const foreground = figure.series.filter((series) => !isBackground(series));
    const series = [...background, ...overlays, ...foreground];
    curveNodes[name] = makeFigure({ ...figure, series }, options);
    addCard(`along ${name}`, figure.title).show(curveNodes[name]);
  };

  const pinnedFigures = (index) => pins
    .map((pin) => ({ name: pin.name, figure: pin.view.figures[index] }))
    .filter((pin) => pin.figure);

  // Add outlines of published noise and of pinned designs to a figure of the law.
  const prepareLawFigure = (figure, index) => {
    const isProven = view.certified;
    const hasNumericLabels = () => figure.labels.every((label) => Number.isFinite(Number(label)));
    if (figure.kind === "bars" && hasNumericLabels()) {
      const pinned = pinnedFigures(index).filter((pin) => pin.figure.kind === "bars");
      const drawnOutlines = [...outlines];
      for (const { name, figure: pinnedFigure } of pinned) {
        drawnOutlines.push({ name, x: pinnedFigure.labels.map(Number), y: pinnedFigure.values });
      }
      const coloured = drawnOutlines.map((outline, position) => ({ colour: position + 1, ...outline }));
      return [{ ...figure, others: coloured }, { ...figureOptions(), proven: isProven }];
    }
    if (figure.kind === "lines" && figure.series[0]?.look === "area") {
      const { x } = figure.series[0];
      const drawnOutlines = outlines.map((outline) => restrictOutline(outline, x[0], x.at(-1)));
      for (const { name, figure: pinnedFigure } of pinnedFigures(index)) {
        const [density] = pinnedFigure.series;
        drawnOutlines.push({ name, x: density.x, y: density.y, steps: true });
      }
      const lines = drawnOutlines.map((outline, position) => (
        { look: "line", colour: position + 1, ...outline }
      ));
      return [{ ...figure, series: [...figure.series, ...lines] }, figureOptions()];
    }
    return [figure, { ...figureOptions(), proven: isProven }];
  };

  const drawLaw = () => {
    if (!view?.figures.length) {
      dropCard("law");
      lawNodes = [];
      return;
    }
    const card = addCard("law", "The mechanism");
    const prepared = view.figures.map(prepareLawFigure);
    const canRenew = lawNodes.length === prepared.length;
    if (canRenew && prepared.every((pair, index) => lawNodes[index].renew?.(...pair))) return;
    lawNodes = prepared.map((pair) => makeFigure(...pair));
    card.show(...lawNodes);
  };

  const drawPins = () => {
    if (!pins.length) {
      dropCard("pins");
      return;
    }
    const numbers = [...new Set(pins.flatMap((pin) => Object.keys(pin.view.hot)))];
    const row = (label, cellOf) => [label, ...pins.map(cellOf)];
    const makeRemoveButton = (pin) => {
      const remove = () => {
        pins = pins.filter((keptPin) => keptPin !== pin);
        redraw();
      };
      const attributes = { type: "button", "aria-label": `Remove ${pin.name}`, onclick: remove };
      return el("button", attributes, "Remove");
    };
    const rows = [
      row("", (pin) => el("strong", {}, pin.name)),
      row(pins[0].view.label, (pin) => pin.view.objective),
      row("lower bound", (pin) => pin.view.bound),
      ...numbers.map((name) => row(SYMBOLS[name] ?? name, (pin) => pin.view.hot[name])),
      row("proof", (pin) => (pin.view.certified ? "certified" : "not certified")),
      row("outputs", (pin) => pin.view.outputsText || "-"),
      row("", makeRemoveButton),
    ];
    const heads = rows[0].map(() => "");
    const table = makeTable(heads, rows, "Pinned designs");
    addCard("pins", "Pinned designs").show(el("h2", {}, "Pinned designs"), table);
  };

  const redraw = () => {
    drawLaw();
    Object.keys(curves).forEach(drawCurve);
    drawPins();
  };

  const pin = () => {
    if (pins.length >= MAX_PINNED_DESIGNS) pins.shift();
    const isFree = (letter) => !pins.some((earlierPin) => earlierPin.name.startsWith(letter));
    const letter = ["A", "B", "C", "D"].find(isFree);
    const values = Object.entries(view.hot).map(([name, value]) => (
      `${SYMBOLS[name] ?? name} ${formatNumber(value, 3)}`
    ));
    const label = values.join(", ") || formatNumber(view.objective);
    pins.push({ name: `${letter}: ${label}`, view });
    redraw();
    fillColumns();
  };

  return {
    root,
    cards,
    addCard,
    dropCard,
    fillColumns,
    get view() { return view; },

    // Show a new design.
    show(newView) {
      const hasMoved = JSON.stringify(newView.given) !== JSON.stringify(view?.given);
      // The outlines belong to the previous budget until new ones arrive.
      if (hasMoved) outlines = outlines.map((outline) => ({ ...outline, x: [], y: [] }));
      view = {
        ...newView,
        outputsText: describeOutputs(newView),
        rootLossText: describeRootLoss(newView),
      };
      alert.hidden = true;
      waiting.hidden = true;
      result.classList.remove("stale");
      replaceContent(result, makeResult(view, { ...actions, pin }));
      actions.showBudget?.(view.hot);
      drawLaw();
      for (const [name, node] of Object.entries(curveNodes)) node.mark(markOf(name));
      map?.mark(mapPoint());
      if (!newView.borrowed) {
        addCard("proof", "Proof").show(...makeProof(newView));
        const command = makeCopyableText("Command", newView.command);
        const python = makeCopyableText("Python", newView.python);
        addCard("code", "Code").show(el("h2", {}, "Code"), command, python);
      }
      for (const [key, card] of Object.entries(cards)) {
        if (!/^(privacy|rivals)/.test(key)) card.node.classList.remove("stale");
        else if (hasMoved) card.node.classList.add("stale");
      }
      root.dataset.drawn = String(Number(root.dataset.drawn ?? 0) + 1);
      root.dispatchEvent(new CustomEvent("workbench-drawn", { bubbles: true, detail: newView }));
    },

    // Grey the design because a new question has no answer yet.
    showWaiting(sentence) {
      const suffix = view ? " (shown: the answer to an earlier question)" : "";
      waiting.textContent = `${sentence}${suffix}`;
      waiting.hidden = false;
      result.classList.toggle("stale", Boolean(view));
    },

    // Grey the design because the request is wrong. The last valid design stays.
    //
    // remedy: {text, action}, a button beside the sentence; null for none.
    showError(sentence, remedy = null) {
      const button = remedy && el("button", { type: "button", onclick: remedy.action }, remedy.text);
      alert.replaceChildren(...[sentence, " ", button].filter(Boolean));
      alert.hidden = false;
      waiting.hidden = true;
      result.classList.toggle("stale", Boolean(view));
      for (const card of Object.values(cards)) card.node.classList.add("stale");
    },

    // Show the loss against a number of the budget. figure: null removes the chart.
    showCurve(name, figure, overlays = []) {
      if (!figure) {
        dropCard(`along ${name}`);
        delete curveNodes[name];
        delete curves[name];
        return;
      }
      curves[name] = { figure, overlays };
      drawCurve(name);
    },

    // Show the figures of the privacy, and sentences about an attacker (`views.compute_attacker_gains`).
    showPrivacy({ figures, risk }) {
      figures.forEach((figure, index) => {
        const node = makeFigure(figure, figureOptions());
        if (index) {
          addFreshCard(`privacy ${index}`, figure.title).show(node);
          return;
        }
        const sentences = describeAttacker(risk).map((sentence) => el("p", {}, sentence));
        addFreshCard("privacy", figure.title).show(el("h2", {}, "Privacy"), ...sentences, node);
      });
    },

    // Show the map of formulas.
    showFormulas(figure) {
      const pick = actions.pick && ((x, y) => actions.pick(x, figure.moved ? y : null));
      map = makeMap(figure, { ...figureOptions(), mark: mapPoint(), pick });
      addCard("formulas", figure.title).show(map);
    },

    // Show published mechanisms: their outlines, and their losses as dots and as a table.
    showRivals({ laws, table, design: loss, links = {} }) {
      outlines = laws ?? [];
      drawLaw();
      const { title, heads, rows } = table ?? { rows: [] };
      if (!rows.length) {
        dropCard("rivals");
        return;
      }
      const design = { name: "this design", ...loss, certified: view?.certified };
      const rivals = [];
      for (const [name, value, low, proof] of rows) {
        if (value === null) continue;
        rivals.push({ name, value, low, certified: proof === "certified", notes: proof });
      }
      const figure = { kind: "dots", title, x: loss.label, rows: [design, ...rivals] };
      const canDraw = rivals.length && design.value > 0;
      const chart = canDraw ? makeFigure(figure, figureOptions()) : el("h2", {}, title);
      const makeName = (name, hasLoss) => {
        const address = hasLoss && actions.open && links[name];
        if (!address) return name;
        const follow = (event) => {
          event.preventDefault();
          actions.open(address);
        };
        return el("a", { href: `#${address}`, onclick: follow }, name);
      };
      const cells = rows.map(([name, value, ...others]) => (
        [makeName(name, value !== null), value, ...others]
      ));
      addFreshCard("rivals", "Other mechanisms").show(chart, makeTable(heads, cells, title));
    },

    // Remove everything that belongs to the previous question. isWhole: also the pinned designs.
    reset(isWhole = true) {
      const keptCards = ["law", "proof", "code", "pins"];
      for (const key of Object.keys(cards)) {
        if (!keptCards.includes(key)) dropCard(key);
      }
      curveNodes = {};
      outlines = [];
      curves = {};
      map = null;
      if (isWhole) {
        pins = [];
        dropCard("pins");
        view = null;
      }
    },
  };
}
