// Pieces of a page: elements, cards, tables, controls. Text goes in as text, never as HTML.

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// Nine significant digits, as the command line prints them.
function cell(value) {
  if (value === null || value === undefined) return "-";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "number" ? short(value, 9) : String(value);
}

function table(heads, rows) {
  const right = heads.map((_, k) => rows.some((row) => typeof row[k] === "number"));
  const head = heads.some(Boolean) ? el("thead", {}, el("tr", {}, ...heads.map((name) => el("th", { scope: "col" }, name)))) : null;
  const body = rows.map((row) => el("tr", {}, ...row.map((value, k) => el("td", { class: right[k] ? "right" : null }, cell(value)))));
  return el("div", { class: "scroll", tabindex: "0" }, el("table", {}, head, el("tbody", {}, ...body)));
}

function facts(rows) {
  return el("div", { class: "scroll" }, el("table", {}, el("tbody", {}, ...rows.map(([label, words]) =>
    el("tr", {}, el("th", { scope: "row" }, label), el("td", {}, cell(words)))))));
}

function csv(heads, rows) {
  const quote = (value) => /[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? "");
  return [heads, ...rows].map((row) => row.map(quote).join(",")).join("\n") + "\n";
}

function download(name, text, type = "text/plain") {
  const link = el("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The numbers behind something, one click away; built when they are asked for.
function more(title, heads, rows) {
  const node = el("details", {}, el("summary", {}, title));
  node.addEventListener("toggle", () => {
    if (!node.open || node.children.length > 1) return;
    const shown = rows.slice(0, 500);
    node.append(el("button", { type: "button", onclick: () => download("numbers.csv", csv(heads, rows), "text/csv") }, "Save as CSV"),
      table(heads, shown), rows.length > 500 ? el("p", { class: "soft" }, `${rows.length - 500} more rows are in the file.`) : "");
  });
  return node;
}

// An SVG as the address of an image: as such it runs no script and loads nothing.
function pictureOf(text) {
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

// A figure in a box that redraws it when its width changes. options: what charts.js takes, and whether it is proven.
function figureNode(figure, options = {}) {
  const box = el("figure", {}, el("h2", {}, figure.title));
  if (figure.kind === "table") {
    box.append(figure.rows.length ? table(figure.heads, figure.rows) : el("p", { class: "soft" }, "None."));
    if (figure.note) box.append(el("p", { class: "soft" }, figure.note));
    return box;
  }
  if (figure.kind === "picture") {
    box.append(el("img", { class: "picture", alt: figure.title, src: pictureOf(figure.svg) }));
    return box;
  }
  const place = el("div");
  let drawn = null, width = 0;
  const draw = () => {
    width = Math.max(280, Math.round(place.clientWidth || 520));
    drawn = figure.kind === "lines" && !figure.series.some((one) => one.x.length > 1) ? null : figure.kind === "bars" ? drawBars(figure, width, options) : figure.kind === "heat" ? drawHeat(figure, width) : drawLines(figure, width, options);
    place.replaceChildren(drawn ?? el("p", { class: "soft" }, "There are too few values to draw."));
  };
  new ResizeObserver(() => { if (Math.abs(place.clientWidth - width) > 1 && place.clientWidth) draw(); }).observe(place);
  box.append(place);
  if (figure.kind === "lines" && figure.series.some((one) => one.x.length > 1))
    box.append(el("ul", { class: "legend" }, ...figure.series.map((one) => el("li", {}, swatch(one), one.name))));
  if (figure.note) box.append(el("p", { class: "soft" }, figure.note));
  box.append(more("Numbers", ...numbers(figure)));
  box.mark = (at) => { options.mark = at; if (width) draw(); };
  return box;
}

// A card keeps its place while its content is renewed.
function card(title, kind = "") {
  const body = el("div"), node = el("section", { class: `card ${kind}`, "aria-label": title }, body);
  const said = el("p", { class: "soft", hidden: true });
  node.append(said);
  return {
    node,
    show: (...children) => { body.replaceChildren(...children); body.classList.remove("stale"); said.hidden = true; },
    say: (words, bad = false) => { said.textContent = words; said.hidden = !words; said.className = bad ? "error" : "soft"; },
    title: () => body.replaceChildren(el("h2", {}, title)),
    stale: () => body.classList.add("stale"),
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

// A slider's place 0..1000 and its number.
const SLIDES = {
  log: { to: (s, r) => r.low * (r.high / r.low) ** (s / 1000), from: (v, r) => (1000 * Math.log(v / r.low)) / Math.log(r.high / r.low) },
  share: { to: (s) => (s / 1000) ** 3, from: (v) => 1000 * Math.cbrt(v) },
};
const threeDigits = (value) => String(Number(value.toPrecision(3)));

// The control of one option: {node, set(value), suggest(words)}. tell(name, value, done): done is false while a slider moves.
function control(option, value, tell) {
  const id = `option-${option.name}`, helpId = `${id}-help`, name = option.name;
  const help = el("p", { class: "help", id: helpId }, option.help);
  const shared = { id, "aria-describedby": helpId };
  if (option.kind === "flag") {
    const box = el("input", { ...shared, type: "checkbox" });
    const set = (v) => { box.checked = v ?? option.default; };
    box.addEventListener("change", () => tell(name, box.checked, true));
    set(value);
    return { node: el("div", { class: "field check" }, el("label", {}, box, name), help), set };
  }
  const text = el("input", { ...shared, type: "text", spellcheck: "false", autocomplete: "off", placeholder: option.default || (option.required ? "required" : ""), list: `${id}-words` });
  const words = el("datalist", { id: `${id}-words` });
  const r = option.range;
  const slider = r ? el("input", { type: "range", min: "0", max: "1000", step: "1", "aria-label": `${name}, slider` }) : null;
  const set = (v) => {
    text.value = Array.isArray(v) ? v.join(",") : v ?? "";
    if (!slider) return;
    const number = Number(text.value);
    slider.disabled = !(text.value !== "" && Number.isFinite(number)) && !(text.value === "" && r.scale === "share");
    if (!slider.disabled) slider.value = SLIDES[r.scale].from(number, r);
    slider.setAttribute("aria-valuetext", `${name} ${text.value || 0}`);
  };
  text.addEventListener("change", () => { set(text.value); tell(name, text.value.trim(), true); });
  for (const [event, done] of [["input", false], ["change", true]])
    slider?.addEventListener(event, () => {
      text.value = threeDigits(SLIDES[r.scale].to(Number(slider.value), r));
      slider.setAttribute("aria-valuetext", `${name} ${text.value}`);
      tell(name, text.value, done);
    });
  set(value);
  return { node: el("div", { class: "field" }, el("label", { for: id }, name), text, words, slider, help), set, suggest: (list) => words.replaceChildren(...list.map((word) => el("option", { value: word }))) };
}
