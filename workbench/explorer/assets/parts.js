// Build the parts of a page: elements, cards, tables, figures and controls of options.
//
// Texts are inserted as text and never parsed as HTML.

const MAX_TABLE_ROWS = 500;  // Longer tables end here; their CSV file has all rows.
const PAPER_WIDTH = 680;  // The pixels between the margins of an A4 page.
const UNPROVEN_NUMBERS =
  "The numbers of a mechanism are its whole law. They are available once the mechanism is certified.";
const SYMBOLS = {
  epsilon: "ε", delta: "δ", rho: "ρ", mu: "μ", alpha: "α", runs: "runs T", max_loss: "maximal loss",
};

// Option -> its label in the words of the field.
const OPTION_LABELS = {
  max_shift: "one person changes an answer by at most", sensitivity: "one person changes an answer by at most",
  notion: "privacy notion", n: "largest answer n", bits: "mean bits of a number",
};

// Create an HTML element.
//
// Attributes that start with "on" are event listeners; true sets an attribute without a value;
// false, null and undefined omit it. Children that are null, undefined or "" are omitted.
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  const isPresent = (child) => child !== null && child !== undefined && child !== "";
  node.append(...children.filter(isPresent));
  return node;
}

// Write the cell of a table. Numbers have nine significant digits, as on the command line.
function formatCell(value) {
  if (value === null || value === undefined) return "-";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "number" ? formatNumber(value, 9) : String(value);
}

// Build a table. Cells are values or elements; columns with numbers are aligned to the right.
function makeTable(heads, rows, name = "Numbers") {
  const isNumeric = heads.map((_, index) => rows.some((row) => typeof row[index] === "number"));
  const headCells = heads.map((head) => el("th", { scope: "col" }, head));
  const head = heads.some(Boolean) ? el("thead", {}, el("tr", {}, ...headCells)) : null;
  const makeCell = (value, index) => {
    const content = value instanceof Node ? value : formatCell(value);
    const attributes = { class: isNumeric[index] ? "right" : null, "data-head": heads[index] || null };
    return el("td", attributes, content);
  };
  const body = el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map(makeCell))));
  const region = { class: "scroll", tabindex: "0", role: "region", "aria-label": name };
  return el("div", region, el("table", {}, head, body));
}

// Build a table of [label, value] pairs.
function makeFacts(rows) {
  const lines = rows.map(([label, value]) => (
    el("tr", {}, el("th", { scope: "row" }, label), el("td", {}, formatCell(value)))
  ));
  return el("div", { class: "scroll" }, el("table", { class: "facts" }, el("tbody", {}, ...lines)));
}

// Write rows as a CSV file.
function writeCsv(heads, rows) {
  const quote = (value) => {
    const needsQuotes = /[",\n]/.test(String(value));
    return needsQuotes ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? "");
  };
  return [heads, ...rows].map((row) => row.map(quote).join(",")).join("\n") + "\n";
}

// Let the browser save a file.
function download(name, content, type = "text/plain") {
  const address = URL.createObjectURL(new Blob([content], { type }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// Build a section that opens on a click. `build` makes its content when it first opens.
function makeFolded(title, build, attributes = {}) {
  const node = el("details", attributes, el("summary", {}, title));
  node.addEventListener("toggle", () => {
    if (node.open && node.children.length === 1) node.append(...build());
  });
  return node;
}

// Build a table that opens on a click.
function makeFoldedTable(title, heads, rows) {
  return makeFolded(title, () => makeNumbersView(title, heads, rows));
}

// Build a table with a button that saves it. Returns elements.
//
// approximations: a number for each row, shown but not saved; null for none.
function makeNumbersView(title, heads, rows, approximations = null) {
  const save = () => download("numbers.csv", writeCsv(heads, rows), "text/csv");
  const shownRows = rows.slice(0, MAX_TABLE_ROWS);
  const elements = [el("button", { type: "button", onclick: save }, "Save as CSV")];
  if (approximations) {
    const cells = shownRows.map((row, index) => [row[0], approximations[index], row[1]]);
    elements.push(makeTable([heads[0], "approximately", "exactly"], cells, title));
  } else {
    elements.push(makeTable(heads, shownRows, title));
  }
  const hiddenCount = rows.length - MAX_TABLE_ROWS;
  if (hiddenCount > 0) {
    elements.push(el("p", { class: "soft" }, `The file has ${hiddenCount} more rows.`));
  }
  return elements;
}

// Return an SVG as the address of an image. As an image it runs no script and loads nothing.
function imageAddress(svgText) {
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText)}`;
}

// Derive a file name from the title of a chart.
function fileNameOf(title) {
  let plain = title;
  for (const [name, symbol] of Object.entries(SYMBOLS)) plain = plain.replaceAll(symbol, name);
  return plain.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "chart";
}

// Render an SVG as a PNG of twice its size.
async function renderPng(svgText) {
  const image = new Image();
  image.src = imageAddress(svgText);
  await image.decode();
  const canvas = el("canvas", { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

const LATEX_LETTERS = {
  "\\": "\\textbackslash{}", "ε": "$\\varepsilon$", "δ": "$\\delta$", "ρ": "$\\rho$", "μ": "$\\mu$",
  "α": "$\\alpha$", "β": "$\\beta$", "η": "$\\eta$", "±": "$\\pm$",
};

// Escape a text for LaTeX.
function escapeLatex(text) {
  const letters = text.replace(/[\\εδρμαβη±]/g, (letter) => LATEX_LETTERS[letter]);
  return letters.replace(/([%&#_])/g, "\\$1");
}

// Build the menu that saves a chart.
//
// getFigure()        Return the data of the figure that is drawn now.
// getChart()         Return its SVG element.
// getLegend()        Return the entries of its legend.
// options.command()  Return the command that made the design. It may be missing.
// message            The element for errors.
function makeSaveMenu(getFigure, getChart, getLegend, options, message) {
  const name = fileNameOf(getFigure().title);
  const makeButton = (label, action) => {
    const run = () => Promise.resolve(action()).catch((error) => {
      message.textContent = error.message;
    });
    return el("button", { type: "button", onclick: run }, label);
  };
  const withLegend = (write) => {
    const chart = getChart();
    const removeLegend = addLegend(chart, getLegend(), getFigure().note ?? "");
    try {
      return write(chart, chart.closest(".page") ?? document.documentElement);
    } finally {
      removeLegend();
    }
  };
  const saveCsv = () => {
    const numbers = figureNumbers(getFigure());
    message.textContent = numbers ? "" : UNPROVEN_NUMBERS;
    if (numbers) download(`${name}.csv`, writeCsv(...numbers), "text/csv");
  };
  const writeCaption = () => {
    const { title, note } = getFigure();
    const noteText = note ? ` ${escapeLatex(note)}.` : "";
    const command = options.command ? ` \\texttt{${escapeLatex(options.command())}}` : "";
    return `\\caption{${escapeLatex(title)}.${noteText}${command}}\n`;
  };
  const saveSvg = () => download(`${name}.svg`, withLegend(standaloneSvg), "image/svg+xml");
  const savePng = async () => {
    download(`${name}.png`, await renderPng(withLegend(standaloneSvg)), "image/png");
  };
  const savePdf = () => download(`${name}.pdf`, withLegend(writePdf), "application/pdf");
  const saveCaption = () => download(`${name}.tex`, writeCaption(), "application/x-tex");
  const buttons = () => [
    makeButton("SVG", saveSvg),
    makeButton("PNG", savePng),
    makeButton("PDF", savePdf),
    makeButton("CSV", saveCsv),
    makeButton("LaTeX caption", saveCaption),
  ];
  return makeFolded("Save", () => [el("div", { class: "row" }, ...buttons())], { class: "save" });
}

// Build the section with the numbers of a figure. `renew()` updates it when the figure has changed.
function makeNumbersFold(getFigure) {
  const place = el("div");
  const node = el("details", {}, el("summary", {}, "Numbers"), place);
  const build = () => {
    const numbers = figureNumbers(getFigure());
    if (!numbers) return [el("p", { class: "soft" }, UNPROVEN_NUMBERS)];
    return makeNumbersView("Numbers", ...numbers, getFigure().table?.about);
  };
  node.renew = () => {
    if (node.open) place.replaceChildren(...build());
  };
  node.addEventListener("toggle", node.renew);
  return node;
}

// Identify the form of a figure: figures with the same signature can be drawn in the same place.
function figureSignature(figure, options) {
  const entries = figure.series ?? figure.others ?? [];
  const names = entries.map((entry) => [entry.name, entry.look]);
  return JSON.stringify([figure.kind, figure.title, names, (options.pins ?? []).length]);
}

// List the series of the legend of a figure.
function legendEntries(figure, options) {
  if (figure.kind === "bars") {
    const others = figure.others ?? [];
    const outlines = others.map(({ name, colour }) => ({ name, look: "line", colour }));
    return [{ name: "this design", look: "area", colour: 0 }, ...outlines];
  }
  if (figure.kind !== "lines") return [];
  const pins = (options.pins ?? []).filter((pin) => Number.isFinite(pin.x));
  const pinEntries = pins.map((pin, index) => ({ name: pin.name, look: "filled", colour: 3 + index }));
  return [...figure.series, ...pinEntries];
}

// Name the classes that a dot chart omits because their loss is too large.
function describeOmittedDots(figure) {
  const smallest = Math.min(...figure.rows.map((row) => row.value));
  const omitted = figure.rows.filter((row) => row.value > MAX_LOSS_RATIO * smallest);
  if (!omitted.length) return "";
  const names = omitted.map((row) => `${row.name} (${formatNumber(row.value, 4)})`);
  const reason = `their loss is more than ${MAX_LOSS_RATIO} times the smallest`;
  return `Not drawn, because ${reason}: ${names.join(", ")}.`;
}

const HIDDEN_SERIES = new Map();  // The title of a figure -> the names that the reader has hidden.

// Build a figure that is drawn again when its width changes.
//
// options: the options of the drawing function in charts.js. The element has the methods
// `mark(point)`, which moves the mark of the design, and `renew(figure, options)`, which draws
// another figure of the same form in the same place and returns whether it did so.
function makeFigure(figure, options = {}) {
  const box = el("figure", {}, el("h2", {}, figure.title));
  if (figure.kind === "table") {
    const none = el("p", { class: "soft" }, "None.");
    box.append(figure.rows.length ? makeTable(figure.heads, figure.rows, figure.title) : none);
    if (figure.note) box.append(el("p", { class: "soft" }, figure.note));
    return box;
  }
  if (figure.kind === "picture") {
    const src = imageAddress(figure.svg);
    box.append(el("img", { class: "picture", alt: figure.title, src }));
    if (figure.law) box.append(makeNumbersFold(() => figure));
    return box;
  }
  const place = el("div");
  const hidden = HIDDEN_SERIES.get(figure.title) ?? new Set();
  HIDDEN_SERIES.set(figure.title, hidden);
  const withoutHidden = (entries) => entries?.filter((entry) => !hidden.has(entry.name));
  const isDrawable = figure.kind !== "lines" || figure.series.some((series) => series.x.length > 1);
  let chart = null;
  let width = 0;
  const draw = (fixedWidth = 0) => {
    width = fixedWidth || Math.max(280, Math.round(place.clientWidth || 520));
    const visibleFigure = {
      ...figure, series: withoutHidden(figure.series), others: withoutHidden(figure.others),
    };
    const visibleOptions = { ...options, pins: withoutHidden(options.pins) };
    chart = isDrawable ? DRAWERS[figure.kind](visibleFigure, width, visibleOptions) : null;
    const reason = hidden.size ? "All series are hidden." : "There are too few values to draw.";
    place.replaceChildren(chart ?? el("p", { class: "soft" }, reason));
  };
  new ResizeObserver(() => {
    if (Math.abs(place.clientWidth - width) > 1 && place.clientWidth) draw();
  }).observe(place);
  // On paper charts have a fixed width, so that their letters keep their size.
  box.onPaper = (isPrinting) => {
    const paperWidth = box.closest(".columns") ? PAPER_WIDTH / 2 : PAPER_WIDTH;
    draw(isPrinting ? paperWidth : 0);
  };
  box.append(place);

  const entries = legendEntries(figure, options);
  const makeLegendItem = (entry) => {
    const isSubject = entry === entries[0] && figure.kind === "bars";
    if (entries.length < 2 || isSubject) return el("li", {}, legendSwatch(entry), entry.name);
    const isShown = () => String(!hidden.has(entry.name));
    const attributes = { type: "button", "aria-pressed": isShown(), title: "Show or hide" };
    const button = el("button", attributes, legendSwatch(entry), entry.name);
    button.addEventListener("click", () => {
      if (!hidden.delete(entry.name)) hidden.add(entry.name);
      button.setAttribute("aria-pressed", isShown());
      draw();
    });
    return el("li", {}, button);
  };
  if (isDrawable && (entries.length > 1 || figure.kind === "lines")) {
    box.append(el("ul", { class: "legend" }, ...entries.map(makeLegendItem)));
  }
  if (figure.kind === "dots") {
    const omitted = describeOmittedDots(figure);
    if (omitted) box.append(el("p", { class: "soft" }, omitted));
  }
  const note = el("p", { class: "soft" });
  const message = el("p", { class: "soft" });
  const numbers = makeNumbersFold(() => figure);
  const updateNote = () => {
    note.textContent = figure.note ?? "";
    note.hidden = !figure.note;
  };
  updateNote();
  box.append(note);
  if (isDrawable) {
    const getLegend = () => (entries.length > 1 ? withoutHidden(entries) : []);
    const menu = makeSaveMenu(() => figure, () => chart, getLegend, options, message);
    box.append(el("div", { class: "tools" }, menu, numbers), message);
  }
  box.mark = (point) => {
    options.mark = point;
    if (chart?.place) chart.place(point);
  };
  const signature = figureSignature(figure, options);
  box.renew = (otherFigure, otherOptions) => {
    if (figureSignature(otherFigure, otherOptions) !== signature || !width) return false;
    figure = otherFigure;
    options = otherOptions;
    draw();
    updateNote();
    numbers.renew();
    message.textContent = "";
    return true;
  };
  return box;
}

const INTERACTIVE = "button, input, a, summary, details, [tabindex]";

// Replace the children of a place. Open sections, the focus and typed texts stay as they are.
function replaceContent(place, children) {
  const findInteractive = () => [...place.querySelectorAll(INTERACTIVE)];
  const before = findInteractive();
  const active = place.getRootNode().activeElement;
  const activeIndex = before.indexOf(active);
  const wereOpen = before.map((node) => node.open);
  place.replaceChildren(...children);
  const after = findInteractive();
  wereOpen.forEach((wasOpen, index) => {
    if (wasOpen && after[index]?.tagName === "DETAILS") after[index].open = true;
  });
  const next = activeIndex < 0 ? null : findInteractive()[activeIndex];
  if (!next) return;
  if (active.type === "text" && next.type === "text") {
    next.value = active.value;
    next.setSelectionRange(active.selectionStart, active.selectionEnd);
  }
  next.focus();
}

// Build a card, which keeps its place while its content changes.
//
// show(...children)   Replace the content.
// say(text, isError)  Show a message below the content.
// title()             Show the title alone.
// stale(), fresh()    Grey the content, or show it normally again.
// isEmpty             Whether the card has no content.
function makeCard(title, kind = "") {
  const body = el("div");
  const message = el("p", { class: "soft", hidden: true });
  const node = el("section", { class: `card ${kind}`, "aria-label": title }, body, message);
  return {
    node,
    show(...children) {
      replaceContent(body, children.filter((child) => child !== ""));
      this.fresh();
    },
    say(text, isError = false) {
      message.textContent = text;
      message.hidden = !text;
      message.className = isError ? "error" : "soft";
    },
    title: () => body.replaceChildren(el("h2", {}, title)),
    stale: () => body.classList.add("stale"),
    fresh() {
      body.classList.remove("stale");
      message.hidden = true;
    },
    get isEmpty() { return !body.childElementCount; },
  };
}

// Build a text with a button that copies it.
function makeCopyableText(label, text) {
  const button = el("button", { type: "button", "aria-label": `Copy ${label}` }, "Copy");
  button.addEventListener("click", async () => {
    const showSuccess = () => { button.textContent = "Copied"; };
    const showFailure = () => { button.textContent = "Select and copy"; };
    await navigator.clipboard?.writeText(text).then(showSuccess, showFailure);
  });
  const copy = el("div", { class: "copy" }, el("pre", {}, text), button);
  return el("div", {}, el("h3", {}, label), copy);
}

// Conversions between the position 0..1000 of a slider and a number in a range {low, high}.
//
// A share has a separate position for 0, because its scale is logarithmic.
const SLIDER_END = 1000;  // The largest position of a slider.
const LOW_POSITION = 30;  // On the scale "share" the smallest number > 0 has this position.
const SHARE_LENGTH = SLIDER_END - LOW_POSITION;
const SLIDER_SCALES = {
  log: {
    toNumber: (position, { low, high }) => low * (high / low) ** (position / SLIDER_END),
    toPosition: (number, { low, high }) => (
      (SLIDER_END * Math.log(number / low)) / Math.log(high / low)
    ),
  },
  share: {
    toNumber: (position, { low, high }) => {
      if (position < LOW_POSITION / 2) return 0;
      return low * (high / low) ** ((position - LOW_POSITION) / SHARE_LENGTH);
    },
    toPosition: (number, { low, high }) => {
      if (number <= 0) return 0;
      const ratio = Math.max(number, low) / low;
      return LOW_POSITION + (SHARE_LENGTH * Math.log(ratio)) / Math.log(high / low);
    },
  },
};
SLIDER_SCALES.count = {
  toNumber: (position, range) => Math.round(SLIDER_SCALES.log.toNumber(position, range)),
  toPosition: SLIDER_SCALES.log.toPosition,
};
const CURVE_POINT_RANGE = { scale: "share", low: 1e-10, high: 1 };

const writeThreeDigits = (value) => String(Number(value.toPrecision(3)));

// Create a slider.
function makeSlider(attributes = {}) {
  return el("input", { type: "range", min: "0", max: SLIDER_END, step: "1", ...attributes });
}

// Make a function that shows or clears the error message of an input.
function makeErrorFunction(input, errorNode, helpId) {
  return (sentence) => {
    errorNode.textContent = sentence ?? "";
    errorNode.hidden = !sentence;
    if (sentence) {
      input.setAttribute("aria-invalid", "true");
      input.setAttribute("aria-describedby", errorNode.id);
    } else {
      input.removeAttribute("aria-invalid");
      input.setAttribute("aria-describedby", helpId);
    }
  };
}

// Build the sliders of the points a:b of a curve: one slider for every b.
//
// text: the input that holds all points; report(name, value, isDone): called after a change.
// Returns the element and `update()`, which reads the points from the input.
function makePointSliders(option, text, report) {
  const container = el("div", { class: "points" });
  const readPoints = () => text.value.split(",").filter(Boolean).map((part) => part.split(":"));
  const makePoint = (point, index) => {
    const slider = makeSlider();
    const output = el("output");
    const node = el("label", {}, output, slider);
    node.setPoint = ([position, height]) => {
      slider.value = SLIDER_SCALES.share.toPosition(Number(height), CURVE_POINT_RANGE);
      // The ends of a trade-off curve are fixed.
      slider.disabled = ["0", "1"].includes(position) && option.name === "tradeoff";
      slider.setAttribute("aria-label", `${option.name} at ${position}, slider`);
      const [abscissa, ordinate] = option.points;
      output.textContent = `${ordinate} = ${height} at ${abscissa} = ${position}`;
    };
    for (const [event, isDone] of [["input", false], ["change", true]]) {
      slider.addEventListener(event, () => {
        const points = text.value.split(",").map((part) => part.split(":"));
        const number = SLIDER_SCALES.share.toNumber(Number(slider.value), CURVE_POINT_RANGE);
        points[index][1] = writeThreeDigits(number);
        text.value = points.map((part) => part.join(":")).join(",");
        node.setPoint(points[index]);
        report(option.name, text.value, isDone);
      });
    }
    node.setPoint(point);
    return node;
  };
  const update = () => {
    const points = readPoints();
    if (container.childElementCount === points.length) {
      points.forEach((point, index) => container.children[index].setPoint(point));
    } else {
      container.replaceChildren(...points.map(makePoint));
    }
  };
  return { node: container, update };
}

// Build the control of one option: {node, set(value), fail(sentence)}.
//
// report(name, value, isDone): called after a change; isDone is false while a slider moves.
// choices: the texts that the option accepts, if they are known.
function makeControl(option, value, report, choices = null) {
  const { name } = option;
  const id = `option-${name}`;
  const helpId = `${id}-help`;
  const label = OPTION_LABELS[name]
    ?? (SYMBOLS[name] ? `${SYMBOLS[name]} (${name})` : name.replaceAll("_", " "));
  const help = el("p", { class: "help", id: helpId }, option.help);
  const errorNode = el("p", { class: "error", id: `${id}-error`, hidden: true });
  const shared = { id, "aria-describedby": helpId };
  const frame = { shared, label, help, errorNode, helpId };
  if (option.kind === "flag") return makeFlagControl(option, value, report, frame);
  if (choices?.length && option.kind === "text") {
    return makeChoiceControl(option, value, report, choices, frame);
  }
  return makeTextControl(option, value, report, choices, frame);
}

// Build the control of a flag: a checkbox.
function makeFlagControl(option, value, report, { shared, label, help, errorNode, helpId }) {
  const box = el("input", { ...shared, type: "checkbox" });
  const set = (isChecked) => { box.checked = isChecked ?? option.default; };
  box.addEventListener("change", () => report(option.name, box.checked, true));
  set(value);
  const node = el("div", { class: "field check" }, el("label", {}, box, label), errorNode, help);
  return { node, set, fail: makeErrorFunction(box, errorNode, helpId) };
}

// Build the control of a text: an input, with a slider for a number in a range.
function makeTextControl(option, value, report, choices, { shared, label, help, errorNode, helpId }) {
  const { name, range } = option;
  const hasChoices = Boolean(choices?.length);
  const listId = `${shared.id}-words`;
  let placeholder = option.default;
  if (!placeholder && option.required) placeholder = "required";
  else if (!placeholder) placeholder = range?.scale === "share" ? "0" : "";
  const attributes = { type: "text", spellcheck: "false", autocomplete: "off", placeholder };
  const text = el("input", { ...shared, ...attributes, list: hasChoices ? listId : null });
  const choiceNodes = (choices ?? []).map((choice) => el("option", { value: choice }));
  const list = hasChoices ? el("datalist", { id: listId }, ...choiceNodes) : "";
  const slider = range ? makeSlider({ "aria-label": `${name}, slider` }) : null;
  const points = option.points ? makePointSliders(option, text, report) : null;
  const set = (newValue) => {
    text.value = Array.isArray(newValue) ? newValue.join(",") : newValue ?? "";
    points?.update();
    if (!slider) return;
    const number = Number(text.value);
    const isNumber = text.value !== "" && Number.isFinite(number);
    slider.disabled = !isNumber && !(text.value === "" && range.scale === "share");
    if (!slider.disabled) slider.value = SLIDER_SCALES[range.scale].toPosition(number, range);
    slider.setAttribute("aria-valuetext", `${name} ${text.value || 0}`);
  };
  text.addEventListener("change", () => {
    set(text.value);
    report(name, text.value.trim(), true);
  });
  for (const [event, isDone] of [["input", false], ["change", true]]) {
    slider?.addEventListener(event, () => {
      const number = SLIDER_SCALES[range.scale].toNumber(Number(slider.value), range);
      text.value = writeThreeDigits(number);
      slider.setAttribute("aria-valuetext", `${name} ${text.value}`);
      report(name, text.value, isDone);
    });
  }
  set(value);
  const labelNode = el("label", { for: shared.id }, label);
  const parts = [labelNode, text, list, slider, points?.node ?? "", errorNode, help];
  return { node: el("div", { class: "field" }, ...parts), set, fail: makeErrorFunction(text, errorNode, helpId) };
}

const OTHER_CHOICE = "…";  // The entry of a list that opens an input for another text.

// Build the control of a text with known choices: a list, with an input for other texts.
function makeChoiceControl(option, value, report, choices, { shared, label, help, errorNode, helpId }) {
  // A choice with a letter beyond ASCII, such as pinball:τ, is a template that must be typed.
  const isTemplate = (choice) => /[^\x20-\x7e]/.test(choice);
  const plainChoices = choices.filter((choice) => !isTemplate(choice));
  const acceptsOthers = choices.some(isTemplate) || /CSV/.test(option.help);
  const input = el("input", {
    type: "text", "aria-label": `${option.name}, another`, spellcheck: "false", hidden: true,
  });
  const list = el("select", shared);
  const set = (newValue) => {
    const text = Array.isArray(newValue) ? newValue.join(",") : newValue;
    const current = text || option.default || "";
    const isOther = current && !plainChoices.includes(current);
    const entries = plainChoices.map((choice) => el("option", { value: choice }, option.labels?.[choice] ?? choice));
    if (!option.default && !option.required) entries.unshift(el("option", { value: "" }, "-"));
    if (acceptsOthers || isOther) {
      entries.push(el("option", { value: OTHER_CHOICE }, "another …"));
    }
    list.replaceChildren(...entries);
    list.value = isOther ? OTHER_CHOICE : current;
    input.hidden = !isOther;
    input.value = isOther ? current : "";
  };
  list.addEventListener("change", () => {
    input.hidden = list.value !== OTHER_CHOICE;
    if (input.hidden) report(option.name, list.value, true);
    else input.focus();
  });
  input.addEventListener("change", () => report(option.name, input.value.trim(), true));
  set(value);
  const labelNode = el("label", { for: shared.id }, label);
  const node = el("div", { class: "field" }, labelNode, list, input, errorNode, help);
  return { node, set, fail: makeErrorFunction(list, errorNode, helpId) };
}
