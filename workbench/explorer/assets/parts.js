// Pieces of a page: elements, cards, tables, controls. Text goes in as text, never as HTML.

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

// Nine significant digits, as the command line prints them.
function cell(value) {
  if (value === null || value === undefined) return "-";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "number" ? short(value, 9) : String(value);
}

function table(heads, rows, name = "Numbers") {
  const right = heads.map((_, k) => rows.some((row) => typeof row[k] === "number"));
  const head = heads.some(Boolean) ? el("thead", {}, el("tr", {}, ...heads.map((name) => el("th", { scope: "col" }, name)))) : null;
  const body = rows.map((row) => el("tr", {}, ...row.map((value, k) => el("td", { class: right[k] ? "right" : null }, value instanceof Node ? value : cell(value)))));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, el("table", {}, head, el("tbody", {}, ...body)));
}

function facts(rows) {
  return el("div", { class: "scroll" }, el("table", { class: "facts" }, el("tbody", {}, ...rows.map(([label, words]) =>
    el("tr", {}, el("th", { scope: "row" }, label), el("td", {}, cell(words)))))));
}

function csv(heads, rows) {
  const quote = (value) => /[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? "");
  return [heads, ...rows].map((row) => row.map(quote).join(",")).join("\n") + "\n";
}

function download(name, content, type = "text/plain") {
  const link = el("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Something one click away; built when it is asked for.
function folded(title, build, attributes = {}) {
  const node = el("details", attributes, el("summary", {}, title));
  node.addEventListener("toggle", () => { if (node.open && node.children.length === 1) node.append(...build()); });
  return node;
}

// The numbers behind something.
function more(title, heads, rows) {
  return folded(title, () => listed(title, heads, rows));
}

// about: what stands beside the rows on a screen, not in the file.
function listed(title, heads, rows, about = null) {
  return [
    el("button", { type: "button", onclick: () => download("numbers.csv", csv(heads, rows), "text/csv") }, "Save as CSV"),
    table(about ? [heads[0], "about", "exactly"] : heads, rows.slice(0, 500).map((row, k) => (about ? [row[0], about[k], row[1]] : row)), title), rows.length > 500 ? el("p", { class: "soft" }, `${rows.length - 500} more rows are in the file.`) : "",
  ];
}

// An SVG as the address of an image: as such it runs no script and loads nothing.
function pictureOf(text) {
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

const slug = (text) => Object.entries(SYMBOLS).reduce((plain, [name, symbol]) => plain.replaceAll(symbol, name), text).toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "chart";

// A drawn SVG as a PNG of twice its size.
async function painted(text) {
  const image = new Image();
  image.src = pictureOf(text);
  await image.decode();
  const canvas = el("canvas", { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

const LATEX = { "\\": "\\textbackslash{}", "ε": "$\\varepsilon$", "δ": "$\\delta$", "ρ": "$\\rho$", "μ": "$\\mu$", "α": "$\\alpha$", "β": "$\\beta$", "η": "$\\eta$", "±": "$\\pm$" };
const latex = (text) => text.replace(/[\\εδρμαβη±]/g, (one) => LATEX[one]).replace(/([%&#_])/g, "\\$1");

// What a chart is saved as. named(): what its legend names; options.command(): what made it.
function saved(shown, drawn, named, options, said) {
  const name = slug(shown().title), one = (words, action) => el("button", { type: "button", onclick: () => Promise.resolve(action()).catch((error) => { said.textContent = error.message; }) }, words);
  const whole = (make) => { const node = drawn(), bare = legended(node, named(), shown().note ?? ""); try { return make(node, node.closest(".page") ?? document.documentElement); } finally { bare(); } };
  const caption = () => `\\caption{${latex(shown().title)}.${shown().note ? ` ${latex(shown().note)}.` : ""}${options.command ? ` \\texttt{${latex(options.command())}}` : ""}}\n`;
  return folded("Save", () => [el("div", { class: "row" },
    one("SVG", () => download(`${name}.svg`, whole(standalone), "image/svg+xml")),
    one("PNG", async () => download(`${name}.png`, await painted(whole(standalone)), "image/png")),
    one("PDF", () => download(`${name}.pdf`, whole(printed), "application/pdf")),
    one("CSV", () => { const found = numbers(shown()); said.textContent = found ? "" : UNPROVEN; if (found) download(`${name}.csv`, csv(...found), "text/csv"); }),
    one("LaTeX caption", () => download(`${name}.tex`, caption(), "application/x-tex")))], { class: "save" });
}

const UNPROVEN = "The numbers of a mechanism are its whole law; they are here once it is certified.";

// The numbers behind a figure, one click away; made anew when the figure is another.
function numbered(figure) {
  const made = () => { const found = numbers(figure()); return found ? listed("Numbers", ...found, figure().table?.about) : [el("p", { class: "soft" }, UNPROVEN)]; };
  const node = el("details", {}, el("summary", {}, "Numbers")), place = el("div");
  node.append(place);
  node.renew = () => { if (node.open) place.replaceChildren(...made().filter(Boolean)); };
  node.addEventListener("toggle", node.renew);
  return node;
}

const key = (figure, options) => JSON.stringify([figure.kind, figure.title, (figure.series ?? figure.others ?? []).map((one) => [one.name, one.look]), (options.pins ?? []).length]);

const PAPER = 680;  // pixels between the margins of A4
const HIDDEN = new Map();  // title of a figure -> what a reader has left out of it

// A figure in a box that redraws it when its width changes. options: what charts.js takes, and whether it is proven.
function figureNode(figure, options = {}) {
  const box = el("figure", {}, el("h2", {}, figure.title));
  if (figure.kind === "table") {
    box.append(figure.rows.length ? table(figure.heads, figure.rows, figure.title) : el("p", { class: "soft" }, "None."));
    if (figure.note) box.append(el("p", { class: "soft" }, figure.note));
    return box;
  }
  if (figure.kind === "picture") {
    box.append(el("img", { class: "picture", alt: figure.title, src: pictureOf(figure.svg) }));
    if (figure.law) box.append(numbered(() => figure));
    return box;
  }
  const place = el("div");
  const hidden = HIDDEN.get(figure.title) ?? new Set(), seen = (list) => list?.filter((one) => !hidden.has(one.name));
  HIDDEN.set(figure.title, hidden);
  let drawn = null, width = 0;
  const drawable = figure.kind !== "lines" || figure.series.some((one) => one.x.length > 1);
  const draw = (paper = 0) => {
    width = paper || Math.max(280, Math.round(place.clientWidth || 520));
    const left = { ...figure, series: seen(figure.series), others: seen(figure.others) };
    drawn = drawable ? DRAWERS[figure.kind](left, width, { ...options, pins: seen(options.pins) }) : null;
    place.replaceChildren(drawn ?? el("p", { class: "soft" }, hidden.size ? "Nothing is chosen." : "There are too few values to draw."));
  };
  new ResizeObserver(() => { if (Math.abs(place.clientWidth - width) > 1 && place.clientWidth) draw(); }).observe(place);
  box.onPaper = (on) => draw(on ? (box.closest(".columns") ? PAPER / 2 : PAPER) : 0);  // letters keep their size there
  box.append(place);
  const series = figure.kind === "bars" ? [{ name: "this design", look: "area", colour: 0 }, ...(figure.others ?? []).map((one) => ({ name: one.name, look: "line", colour: one.colour }))]
    : figure.kind === "lines" ? [...figure.series, ...(options.pins ?? []).filter((one) => Number.isFinite(one.x)).map((one, k) => ({ name: one.name, look: "filled", colour: 3 + k }))] : [];
  // What the legend names is shown or left out by a click; what a chart is about stays.
  const entry = (one) => {
    if (series.length < 2 || one === series[0] && figure.kind === "bars") return el("li", {}, swatch(one), one.name);
    const button = el("button", { type: "button", "aria-pressed": String(!hidden.has(one.name)), title: "Show or leave out" }, swatch(one), one.name);
    button.addEventListener("click", () => { if (!hidden.delete(one.name)) hidden.add(one.name); button.setAttribute("aria-pressed", String(!hidden.has(one.name))); draw(); });
    return el("li", {}, button);
  };
  if (drawable && (series.length > 1 || figure.kind === "lines")) box.append(el("ul", { class: "legend" }, ...series.map(entry)));
  if (figure.kind === "dots") {
    const best = Math.min(...figure.rows.map((one) => one.value)), far = figure.rows.filter((one) => one.value > FARTHEST * best);
    if (far.length) box.append(el("p", { class: "soft" }, `Not drawn, as they cost more than ${FARTHEST} times the best: ${far.map((one) => `${one.name} (${short(one.value, 4)})`).join(", ")}.`));
  }
  const note = el("p", { class: "soft" }), said = el("p", { class: "soft" }), list = numbered(() => figure);
  const noted = () => { note.textContent = figure.note ?? ""; note.hidden = !figure.note; };
  noted();
  box.append(note);
  if (drawable) box.append(el("div", { class: "tools" }, saved(() => figure, () => drawn, () => (series.length > 1 ? seen(series) : []), options, said), list), said);
  box.mark = (at) => { options.mark = at; if (drawn?.place) drawn.place(at); };
  // Other data of the same kind, drawn in the same place; whether they are.
  box.legend = key(figure, options);
  box.renew = (other, taken) => {
    if (key(other, taken) !== box.legend || !width) return false;
    figure = other; options = taken;
    draw();
    noted(); list.renew(); said.textContent = "";
    return true;
  };
  return box;
}

// Other children in a place; what a reader has opened, is at, or is typing stays so.
const USED = "button, input, a, summary, details, [tabindex]";
function renewed(place, children) {
  const found = () => [...place.querySelectorAll(USED)], before = found(), active = place.getRootNode().activeElement, at = before.indexOf(active);
  const open = before.map((node) => node.open);
  place.replaceChildren(...children);
  open.forEach((was, k) => { const node = found()[k]; if (was && node?.tagName === "DETAILS") node.open = true; });
  const there = at < 0 ? null : found()[at];
  if (!there) return;
  if (active.type === "text" && there.type === "text") { there.value = active.value; there.setSelectionRange(active.selectionStart, active.selectionEnd); }
  there.focus();
}

// A card keeps its place while its content is renewed.
function card(title, kind = "") {
  const body = el("div"), node = el("section", { class: `card ${kind}`, "aria-label": title }, body);
  const said = el("p", { class: "soft", hidden: true });
  node.append(said);
  return {
    node,
    show: (...children) => { renewed(body, children.filter((child) => child !== "")); body.classList.remove("stale"); said.hidden = true; },
    say: (words, bad = false) => { said.textContent = words; said.hidden = !words; said.className = bad ? "error" : "soft"; },
    title: () => body.replaceChildren(el("h2", {}, title)),
    stale: () => body.classList.add("stale"),
    fresh: () => { body.classList.remove("stale"); said.hidden = true; },
    get empty() { return !body.childElementCount; },
  };
}

function copyable(label, text) {
  const said = el("button", { type: "button", "aria-label": `Copy ${label}` }, "Copy");
  said.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(text).then(() => { said.textContent = "Copied"; }, () => { said.textContent = "Select and copy"; });
  });
  return el("div", {}, el("h3", {}, label), el("div", { class: "copy" }, el("pre", {}, text), said));
}

// A slider's place 0..1000 and its number: of a share, 0 stands apart from a logarithmic scale.
const SLIDES = {
  log: { to: (s, r) => r.low * (r.high / r.low) ** (s / 1000), from: (v, r) => (1000 * Math.log(v / r.low)) / Math.log(r.high / r.low) },
  share: { to: (s, r) => (s < 15 ? 0 : r.low * (r.high / r.low) ** ((s - 30) / 970)), from: (v, r) => (v <= 0 ? 0 : 30 + (970 * Math.log(Math.max(v, r.low) / r.low)) / Math.log(r.high / r.low)) },
};
SLIDES.count = { to: (s, r) => Math.round(SLIDES.log.to(s, r)), from: SLIDES.log.from };
const threeDigits = (value) => String(Number(value.toPrecision(3)));
const SYMBOLS = { epsilon: "ε", delta: "δ", rho: "ρ", mu: "μ", alpha: "α", runs: "runs T", max_loss: "largest loss" };
const SHARE = { scale: "share", low: 1e-10, high: 1 };

// The control of one option: {node, set(value), fail(words)}. tell(name, value, done): done is false while a slider moves.
// words: what it may be, where that is known; a template among them, such as pinball:τ, is typed.
function control(option, value, tell, words = null) {
  const id = `option-${option.name}`, helpId = `${id}-help`, name = option.name, shown = SYMBOLS[name] ? `${SYMBOLS[name]} (${name})` : name.replaceAll("_", " ");
  const help = el("p", { class: "help", id: helpId }, option.help), wrong = el("p", { class: "error", id: `${id}-error`, hidden: true });
  const fail = (node) => (sentence) => {
    wrong.textContent = sentence ?? ""; wrong.hidden = !sentence;
    if (sentence) { node.setAttribute("aria-invalid", "true"); node.setAttribute("aria-describedby", wrong.id); } else { node.removeAttribute("aria-invalid"); node.setAttribute("aria-describedby", helpId); }
  };
  const shared = { id, "aria-describedby": helpId };
  if (option.kind === "flag") {
    const box = el("input", { ...shared, type: "checkbox" });
    const set = (v) => { box.checked = v ?? option.default; };
    box.addEventListener("change", () => tell(name, box.checked, true));
    set(value);
    return { node: el("div", { class: "field check" }, el("label", {}, box, shown), wrong, help), set, fail: fail(box) };
  }
  if (words?.length && option.kind === "text") return chosen(option, value, tell, words, { shared, shown, help, wrong, fail });
  const r = option.range, empty = option.required ? "required" : r?.scale === "share" ? "0" : "";
  const text = el("input", { ...shared, type: "text", spellcheck: "false", autocomplete: "off", placeholder: option.default || empty, list: words?.length ? `${id}-words` : null });
  const list = words?.length ? el("datalist", { id: `${id}-words` }, ...words.map((word) => el("option", { value: word }))) : "";
  const slider = r ? el("input", { type: "range", min: "0", max: "1000", step: "1", "aria-label": `${name}, slider` }) : null;
  const points = el("div", { class: "points" });
  const set = (v) => {
    text.value = Array.isArray(v) ? v.join(",") : v ?? "";
    if (option.points) pointed();
    if (!slider) return;
    const number = Number(text.value);
    slider.disabled = !(text.value !== "" && Number.isFinite(number)) && !(text.value === "" && r.scale === "share");
    if (!slider.disabled) slider.value = SLIDES[r.scale].from(number, r);
    slider.setAttribute("aria-valuetext", `${name} ${text.value || 0}`);
  };
  // Points a:b of a curve: a slider for every b but those at its ends.
  const pointed = () => {
    const parts = text.value.split(",").filter(Boolean).map((part) => part.split(":"));
    if (points.childElementCount === parts.length) { parts.forEach((part, k) => points.children[k].set(part)); return; }
    points.replaceChildren(...parts.map((part, k) => {
      const one = el("input", { type: "range", min: "0", max: "1000", step: "1" }), said = el("output"), node = el("label", {}, said, one);
      node.set = ([at, high]) => { one.value = SLIDES.share.from(Number(high), SHARE); one.disabled = ["0", "1"].includes(at) && option.name === "tradeoff"; one.setAttribute("aria-label", `${name} at ${at}, slider`); said.textContent = `${option.points[1]} = ${high} at ${option.points[0]} = ${at}`; };
      for (const [event, done] of [["input", false], ["change", true]])
        one.addEventListener(event, () => {
          const now = text.value.split(",").map((each) => each.split(":"));
          now[k][1] = threeDigits(SLIDES.share.to(Number(one.value), SHARE));
          text.value = now.map((each) => each.join(":")).join(",");
          node.set(now[k]);
          tell(name, text.value, done);
        });
      node.set(part);
      return node;
    }));
  };
  text.addEventListener("change", () => { set(text.value); tell(name, text.value.trim(), true); });
  for (const [event, done] of [["input", false], ["change", true]])
    slider?.addEventListener(event, () => {
      text.value = threeDigits(SLIDES[r.scale].to(Number(slider.value), r));
      slider.setAttribute("aria-valuetext", `${name} ${text.value}`);
      tell(name, text.value, done);
    });
  set(value);
  return { node: el("div", { class: "field" }, el("label", { for: id }, shown), text, list, slider, option.points ? points : "", wrong, help), set, fail: fail(text) };
}

// A list of words, with a place for others where a word is a template.
function chosen(option, value, tell, words, { shared, shown, help, wrong, fail }) {
  const open = words.some((word) => /[^\x20-\x7e]/.test(word)) || /CSV/.test(option.help), plain = words.filter((word) => !/[^\x20-\x7e]/.test(word));
  const typed = el("input", { type: "text", "aria-label": `${option.name}, another`, spellcheck: "false", hidden: true });
  const list = el("select", shared);
  const set = (v) => {
    const now = (Array.isArray(v) ? v.join(",") : v) || option.default || "", own = now && !plain.includes(now);
    list.replaceChildren(...(option.default || option.required ? [] : [el("option", { value: "" }, "-")]), ...plain.map((word) => el("option", { value: word }, word)), ...(open || own ? [el("option", { value: "…" }, "another …")] : []));
    list.value = own ? "…" : now;
    typed.hidden = !own; typed.value = own ? now : "";
  };
  list.addEventListener("change", () => { if (list.value === "…") { typed.hidden = false; typed.focus(); } else { typed.hidden = true; tell(option.name, list.value, true); } });
  typed.addEventListener("change", () => tell(option.name, typed.value.trim(), true));
  set(value);
  return { node: el("div", { class: "field" }, el("label", { for: shared.id }, shown), list, typed, wrong, help), set, fail: fail(list) };
}
