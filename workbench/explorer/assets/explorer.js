// What is shown: live (asks its host), or a document (shows what it holds). A host is
//   ask(task, asked, signal, progress)  the result of a task, or Failure; aborting the signal stops the computation
//   state(), keep(query, step)          what is shown as the text of a query; step: one for the history
//   follow(read)                        tells when the state was changed from elsewhere
// page.js is the host.

class Failure extends Error {}
const LATE = 400;  // milliseconds until an answer counts as one that is waited for
const SOLVING = "solving …", PINNED = 4, AT_ONCE = 120, FOLDED = 900;  // of a page up to so wide options are folded
const MORE = ["epsilon", "delta", "rho", "mu"], LESS = ["runs"];  // private at more of it too, at less of it too

// The cards of a family's page in the order of interest; each begins in a column, and once all are there the columns are
// filled evenly.
const SIDES = { law: 0, privacy: 0, "privacy 1": 0, rivals: 1, pins: 1, formulas: 1, proof: 0, code: 1, missing: 0 };
const ORDER = ["law", "along", "privacy", "privacy 1", "pins", "rivals", "formulas", "proof", "code", "missing"];

// What is known about one design, in cards: the same in a live page and in an export.
function board(actions = {}) {
  const hero = el("section", { class: "card hero", "aria-label": "Result" }), columns = [0, 1].map(() => el("div", { class: "column" })), cards = {};
  const root = el("main", {}, hero, el("div", { class: "columns" }, ...columns));
  const add = (key, title) => {
    if (!cards[key]) {
      const made = card(title), kind = key.split(" ")[0], side = key in SIDES ? SIDES[key] : 1;
      made.place = ORDER.indexOf(key in SIDES ? key : kind);
      made.node.style.order = made.place;
      cards[key] = made;
      const after = [...columns[side].children].find((node) => Number(node.style.order) > made.place);
      columns[side].insertBefore(made.node, after ?? null);
    }
    return cards[key];
  };
  const fresh = (key, title) => { const made = add(key, title); made.node.classList.remove("stale"); return made; };
  const drop = (key) => { cards[key]?.node.remove(); delete cards[key]; };
  const place = () => ({ x: Number(shown?.hot.epsilon ?? NaN), y: Number(shown?.hot.delta ?? (shown?.objective || 0)) });
  let filled = "";
  const fill = () => {
    const now = Object.keys(cards).sort().join();
    if (filled === now || columns.some((one) => one.contains(root.getRootNode().activeElement))) return;  // a reader is there
    filled = now;
    const high = [0, 0], listed = Object.values(cards).sort((a, b) => a.place - b.place).map((made) => [made.node, made.node.offsetHeight + 16]);
    const sides = listed.map(([, height]) => { const side = Number(high[1] < high[0]); high[side] += height; return side; });
    listed.forEach(([node], k) => { if (node.parentNode !== columns[sides[k]] || columns[sides[k]].lastChild !== node) columns[sides[k]].append(node); });
  };
  // On paper cards follow each other in their order.
  addEventListener("beforeprint", () => { filled = ""; columns[0].append(...Object.values(cards).sort((a, b) => a.place - b.place).map((made) => made.node)); });
  addEventListener("afterprint", () => fill());
  let shown = null, marked = {}, map = null, pins = [], laws = [], curves = {}, laid = [];
  const mark = (name) => ({ x: Number(shown?.hot[name] ?? NaN), y: shown?.objective, proven: shown?.certified });
  const words = el("div"), alert = el("p", { class: "alert", role: "alert", hidden: true });
  const waiting = el("p", { class: "waiting", role: "status", hidden: true });
  hero.append(alert, waiting, el("div", { class: "split" }, words, actions.sliders ?? ""));
  const options = () => ({ command: () => shown?.command ?? "" });
  const drawCurve = (name) => {
    const { figure, overlays } = curves[name];
    const points = pins.map((one) => ({ name: one.name, x: one.view.hot[name], y: one.view.objective }));
    const taken = { ...options(), mark: mark(name), pins: points, drag: actions.move && ((x, done) => actions.move(name, x, done)), limit: actions.least?.(shown).includes(name) ? (y, done) => done && actions.limit(name, y) : null };
    const under = (one) => one.look === "halo" || one.look === "band";  // what others are drawn upon
    const series = [...figure.series.filter(under), ...overlays, ...figure.series.filter((one) => !under(one))];
    marked[name] = figureNode({ ...figure, series }, taken);
    add(`along ${name}`, figure.title).show(marked[name]);
  };
  const drawLaw = () => {
    if (!shown?.figures.length) { drop("law"); laid = []; return; }
    const pinned = (k) => pins.map((one) => ({ name: one.name, figure: one.view.figures[k] })).filter((one) => one.figure);
    const place = add("law", "The mechanism");
    const wanted = shown.figures.map((one, k) => {
      if (one.kind === "bars" && one.labels.every((name) => Number.isFinite(Number(name)))) {
        const others = [...laws, ...pinned(k).filter((pin) => pin.figure.kind === "bars").map((pin) => ({ name: pin.name, x: pin.figure.labels.map(Number), y: pin.figure.values }))];
        return [{ ...one, others: others.map((law, j) => ({ colour: j + 1, ...law })) }, { ...options(), proven: shown.certified }];
      }
      if (one.kind === "lines" && one.series[0]?.look === "area") {
        const range = [one.series[0].x[0], one.series[0].x.at(-1)], inside = (law) => law.x.map((v, i) => (v >= range[0] && v <= range[1] ? i : -1)).filter((i) => i >= 0);
        const lines = laws.map((law) => { const kept = inside(law); return { name: law.name, x: kept.map((i) => law.x[i]), y: kept.map((i) => law.y[Math.min(i, law.y.length - 1)]) }; });
        const others = [...lines, ...pinned(k).map((pin) => ({ name: pin.name, x: pin.figure.series[0].x, y: pin.figure.series[0].y, steps: true }))];
        return [{ ...one, series: [...one.series, ...others.map((law, j) => ({ look: "line", colour: j + 1, ...law }))] }, options()];
      }
      return [one, { ...options(), proven: shown.certified }];
    });
    if (laid.length === wanted.length && wanted.every((one, k) => laid[k].renew?.(...one))) return;
    laid = wanted.map((one) => figureNode(...one));
    place.show(...laid);
  };
  const drawPins = () => {
    if (!pins.length) { drop("pins"); return; }
    const named = [...new Set(pins.flatMap((one) => Object.keys(one.view.hot)))], rows = [
      ["", ...pins.map((one) => el("strong", {}, one.name))],
      [pins[0].view.label, ...pins.map((one) => one.view.objective)],
      ["no less than", ...pins.map((one) => one.view.bound)],
      ...named.map((name) => [SYMBOLS[name] ?? name, ...pins.map((one) => one.view.hot[name])]),
      ["proof", ...pins.map((one) => (one.view.certified ? "certified" : "not certified"))],
      ["published", ...pins.map((one) => one.view.told || "-")],
      ["", ...pins.map((one) => el("button", { type: "button", "aria-label": `Remove ${one.name}`, onclick: () => { pins = pins.filter((other) => other !== one); renew(); } }, "Remove"))],
    ];
    add("pins", "Pinned designs").show(el("h2", {}, "Pinned designs"), table(rows[0].map(() => ""), rows, "Pinned designs"));
  };
  const renew = () => { drawLaw(); Object.keys(curves).forEach(drawCurve); drawPins(); };
  const pin = () => {
    if (pins.length >= PINNED) pins.shift();
    const letter = ["A", "B", "C", "D"].find((one) => !pins.some((other) => other.name.startsWith(one)));
    pins.push({ name: `${letter}: ${Object.entries(shown.hot).map(([name, value]) => `${SYMBOLS[name] ?? name} ${short(value, 3)}`).join(", ") || short(shown.objective)}`, view: shown });
    renew();
    fill();
  };
  return {
    root, add, drop, cards, fill,
    get view() { return shown; },
    show(view) {
      const moved = JSON.stringify(view.given) !== JSON.stringify(shown?.given);
      if (moved) laws = laws.map((law) => ({ ...law, x: [], y: [] }));  // of another budget
      shown = { ...view, told: told(view), unit: unit(view) };
      alert.hidden = true; waiting.hidden = true; words.classList.remove("stale");
      renewed(words, result(shown, { ...actions, pin }).filter(Boolean));
      actions.taken?.(shown.hot);
      drawLaw();
      for (const [name, node] of Object.entries(marked)) node.mark(mark(name));
      map?.mark(place());
      if (!view.borrowed) add("proof", "Proof").show(...proof(view));
      if (!view.borrowed) add("code", "Code").show(el("h2", {}, "Code"), copyable("Command", view.command), copyable("Python", view.python));
      for (const [key, made] of Object.entries(cards)) {
        if (!/^(privacy|rivals)/.test(key)) made.node.classList.remove("stale"); else if (moved) made.node.classList.add("stale");
      }
      root.dataset.drawn = String(Number(root.dataset.drawn ?? 0) + 1);
      root.dispatchEvent(new CustomEvent("workbench-drawn", { bubbles: true, detail: view }));
    },
    // A new question without an answer: what is shown is of an earlier one, and greyed.
    waiting(sentence) {
      waiting.textContent = shown ? `${sentence} (shown: the answer to an earlier question)` : sentence;
      waiting.hidden = false;
      words.classList.toggle("stale", Boolean(shown));
    },
    // A request that has no answer: the last valid one stays, greyed.
    wrong(sentence) {
      alert.textContent = sentence; alert.hidden = false; waiting.hidden = true;
      words.classList.toggle("stale", Boolean(shown));
      for (const made of Object.values(cards)) made.node.classList.add("stale");
    },
    along(name, figure, overlays = []) {
      if (!figure) { drop(`along ${name}`); delete marked[name]; delete curves[name]; return; }
      curves[name] = { figure, overlays };
      drawCurve(name);
    },
    privacy(made) {
      made.figures.forEach((one, k) => fresh(k ? `privacy ${k}` : "privacy", one.title).show(
        ...(k ? [] : [el("h2", {}, "Privacy"), ...leaks(made.risk).map((sentence) => el("p", {}, sentence))]), figureNode(one, options())));
    },
    formulas(figure) {
      map = mapNode(figure, { ...options(), mark: place(), pick: actions.pick && ((x, y) => actions.pick(x, figure.moved ? y : null)) });
      add("formulas", figure.title).show(map);
    },
    rivals(made) {
      laws = made.laws ?? [];
      drawLaw();
      const { title, heads, rows } = made.table ?? { rows: [] };
      if (!rows.length) { drop("rivals"); return; }
      const mine = { name: "this design", value: shown?.objective, low: shown?.bound, certified: shown?.certified };
      const others = rows.filter((row) => row[1] !== null).map(([name, value, low, standing]) => ({ name, value, low, certified: standing === "certified", notes: standing }));
      fresh("rivals", "Other mechanisms").show(others.length && mine.value > 0 ? figureNode({ kind: "dots", title, x: shown.label, rows: [mine, ...others] }, options()) : el("h2", {}, title), table(heads, rows, title));
    },
    reset(whole = true) {
      for (const key of Object.keys(cards)) if (!["law", "proof", "code", "pins"].includes(key)) drop(key);
      marked = {}; laws = []; curves = {}; map = null;
      if (whole) { pins = []; drop("pins"); shown = null; }
    },
    forget(name) { drop(name); },
  };
}

const badge = (view) => view.objective === null ? ["badge bad", "infeasible"]
  : view.certified ? ["badge proven", "✓ certified: private in exact arithmetic"]
  : view.unfinished && view.proving || view.preliminary ? ["badge open", "computing …"]
  : view.proving ? ["badge open", "proving …"]
  : view.certifies ? ["badge missed", "not certified"] : ["badge", "no certificate in this family: see its guarantee"];

function result(view, actions) {
  const [kind, words] = badge(view), none = view.objective === null;
  const open = !view.certified && (view.unfinished || view.preliminary), least = Math.min(view.objective, view.found ?? Infinity);  // not the last word
  const known = view.bound !== null && view.bound !== undefined, same = known && cell(view.bound) === cell(view.objective);
  const bound = !known ? "" : same ? " None of this class costs less." : ` None of this class costs less than ${cell(view.bound)}.`;
  return [
    el("h2", {}, view.heading),
    el("p", { class: "soft" }, none ? view.title : `${view.label}: ${view.title}`),
    none ? el("p", { class: "value none" }, "No mechanism meets this request") : el("p", { class: open ? "value open" : "value" }, `${open ? "at most " : ""}${cell(open ? least : view.objective)}`),
    open && least < view.objective ? el("p", { class: "lead" }, `The first page found a mechanism that costs ${cell(least)}; the one below costs ${cell(view.objective)} so far.`) : "",
    none ? el("p", { class: "lead" }, view.reason) : "",
    el("p", {}, el("span", { class: kind }, words), " ", view.note ? el("span", { class: "soft" }, view.note) : ""),
    none ? "" : el("p", { class: "lead" }, view.unit ? `${view.unit[0].toUpperCase()}${view.unit.slice(1)}.` : "", bound),
    view.told ? el("p", { class: "lead" }, `${view.told[0].toUpperCase()}${view.told.slice(1)}.`) : "",
    none || !actions.pin ? "" : el("div", { class: "row" }, actions.live ? el("button", { type: "button", onclick: actions.pin }, "Pin to compare") : ""),
    ...(actions.limit && !none ? [inverse(view, actions)] : []),
  ];
}

function proof(view) {
  const saved = view.certificate ? [el("div", { class: "row" }, el("button", { type: "button", class: "main", onclick: () => download("certificate.json", view.certificate, "application/json") }, "Save the certificate")),
    el("p", { class: "soft" }, "One file of the standard library checks it again, on any Python:"), el("pre", {}, "python check_certificate.py certificate.json")] : [];
  return [el("h2", {}, "Proof"), facts(view.facts), ...saved, more("The row, as tables of the command line have it", ["column", "value"], Object.entries(view.row))];
}

// The least value of a number of the budget for an error that is typed in; dragging the knob of a chart does the same.
function inverse(view, actions) {
  const input = el("input", { type: "text", inputmode: "decimal", "aria-label": `Largest ${view.label} allowed`, value: short(view.objective, 4) });
  const buttons = actions.least(view).map((name) => el("button", { type: "button", onclick: () => actions.limit(name, Number(input.value)) }, `least ${name}`));
  return buttons.length ? el("div", { class: "inverse" }, el("span", {}, `For ${view.label.replace(/^least /, "")} at most`), input, ...buttons) : "";
}

// A switch of the theme: as the system has it, or the other one.
function themed(root) {
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const button = el("button", { type: "button" }, "");
  const say = () => { button.textContent = dark() ? "Light" : "Dark"; button.setAttribute("aria-label", `${dark() ? "Light" : "Dark"} theme`); };
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; say(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", say);
  say();
  return button;
}

// What asks its host.

function live(root, data, host) {
  const families = new Map(data.families.map((one) => [one.name, one]));
  const status = el("p", { class: "status", role: "status", "aria-live": "polite" });
  const say = (words, bad = false) => { status.textContent = words; status.className = bad ? "status error" : "status"; };
  const place = el("div"), bar = el("div", { class: "row" }), stop = el("button", { type: "button" }, "Stop");
  stop.disabled = true;
  const brand = el("a", { href: "#", onclick: (event) => { event.preventDefault(); host.keep("", true); read(); } }, "dp-workbench");
  root.replaceChildren(el("header", {}, el("h1", {}, brand), bar, stop, themed(root), status), place);
  let shown = null;
  const found = new Map();  // the text of a query -> what its class costs, as the first page found
  const explore = explorer(root, { families, host, say, status, place, bar, stop, found });
  const query = querying({ families, host, say, place, bar, stop, open: (state, row) => { if (row?.certified) found.set(sameQuery(state), row.objective); host.keep(state, true); read(); } });
  function read() {
    const asked = new URLSearchParams(host.state());
    const next = asked.has("family") || [...asked].length && !asked.has("form") ? explore : query;
    if (shown && shown !== next) shown.leave();
    shown = next;
    next.read(asked);
  }
  stop.addEventListener("click", () => shown.stop());
  host.follow(read);
  read();
}

// The text of a query without what says how long a solver may take, in one order.
function sameQuery(text) {
  const asked = new URLSearchParams(text);
  asked.delete("time_limit");
  asked.sort();
  return String(asked);
}

// The first page: a query in one sentence, and what serves it.

const QUERY = { form: "numbers", answers: "0..100", range: "0..100", max_shift: "1", epsilon: "1", delta: "1e-5", loss: "squared" };
const FORMS = { numbers: "whole numbers or a list", range: "real numbers in a range", labels: "labels or categories" };
const LOSSES = { squared: "its square", absolute: "its size", "error-rate": "the same, whatever its size" };

function querying({ families, host, say, place, bar, stop, open }) {
  let state = { ...QUERY }, running = null;
  const input = (name, label, size) => {
    const node = el("input", { id: `query-${name}`, type: "text", size, "aria-label": label, spellcheck: "false", autocomplete: "off" });
    node.addEventListener("change", () => { state[name] = node.value.trim(); write(); });
    return node;
  };
  const select = (name, label, words) => {
    const node = el("select", { id: `query-${name}`, "aria-label": label }, ...Object.entries(words).map(([value, text]) => el("option", { value }, text)));
    node.addEventListener("change", () => { state[name] = node.value; if (name === "form") state.answers = node.value === "labels" ? "a,b,c,d" : "0..100"; if (name === "form" && node.value === "labels") state.loss = "error-rate"; if (name === "form" && node.value === "range" && state.loss === "error-rate") state.loss = "squared"; write(); });
    return node;
  };
  const fields = {
    form: select("form", "Kind of answers", FORMS), answers: input("answers", "Answers", 12), range: input("range", "Range", 12), max_shift: input("max_shift", "How far one person moves an answer", 4),
    epsilon: input("epsilon", "Privacy budget ε", 5), delta: input("delta", "δ", 6), loss: select("loss", "What an error costs", LOSSES),
  };
  const wrong = el("p", { class: "error", role: "alert", hidden: true });
  const moves = el("span", {}, "; one person moves them by at most ", fields.max_shift);
  const sentence = el("form", { class: "card sentence", "aria-label": "Query", onsubmit: (event) => { event.preventDefault(); } },
    el("div", {}, "My answers are ", fields.form, " ", fields.answers, fields.range, moves, ". I accept ε = ", fields.epsilon, ", δ = ", fields.delta, "; an error costs ", fields.loss, "."), wrong);
  const answer = card("Classes of mechanisms", "whole");
  const kinds = el("section", { "aria-label": "Families" }, el("h2", {}, "Or one family of mechanisms, with all its options"),
    el("ul", { class: "families" }, ...[...families.values()].map((one) => el("li", {}, el("a", { href: `#${new URLSearchParams({ family: one.name, ...one.first })}`, onclick: (event) => { event.preventDefault(); open(String(new URLSearchParams({ family: one.name, ...one.first }))); } },
      el("strong", {}, one.title), el("span", {}, one.summary))))));
  const root = el("main", { class: "home" }, sentence, answer.node, kinds);

  function write() { host.keep(String(new URLSearchParams(state)), true); read(new URLSearchParams(host.state())); }

  const showing = (made, partial) => {
    const rows = made.rows, by = new Map(rows.map((one) => [one.class, one])), drawn = rows.filter((one) => one.objective !== null);
    const figure = { kind: "dots", title: "What each class costs, and what is proven of it", x: `expected ${state.loss === "squared" ? "squared error" : state.loss === "absolute" ? "absolute error" : "error rate"}`, rows: drawn.map((one) => ({ name: one.class, value: one.objective, low: one.bound > 0 ? one.bound : null, certified: one.certified, notes: one.notes })) };
    const link = (one) => one.state ? el("a", { href: `#${one.state}`, onclick: (event) => { event.preventDefault(); open(one.state, one); } }, one.class) : one.class;
    const badged = (one) => el("span", { class: one.certified ? "badge proven" : "badge" }, one.certified ? "✓ certified" : "not certified");
    answer.show(
      el("p", { class: "lead" }, el("strong", {}, partial ? "The least so far, while the larger classes are being solved." : made.sentences[0] ?? "")),
      figureNode(figure, { open: (one) => { const row = by.get(one.name); return row?.state ? () => open(row.state, row) : null; } }),
      table(["class", "expected loss", "no less than", "proof", "what it needs"], drawn.map((one) => [link(one), one.objective, one.bound || null, badged(one), one.notes]), "Classes"),
      ...(partial ? [] : made.sentences.slice(1)).map((words) => el("p", {}, words)),
      folded("What does not apply, and why", () => [table(["class", "why"], rows.filter((one) => one.objective === null).map((one) => [one.class, one.notes]), "What does not apply")]));
    root.dataset.drawn = String(Number(root.dataset.drawn ?? 0) + 1);
    root.dispatchEvent(new CustomEvent("workbench-recommended", { bubbles: true, detail: { ...made, partial } }));
  };

  async function run() {
    running?.abort();
    const mine = new AbortController();
    running = mine; stop.disabled = false; wrong.hidden = true;
    for (const node of Object.values(fields)) node.removeAttribute("aria-invalid");
    if (answer.empty) answer.title();
    const verdict = answer.node.querySelector(".lead");  // of an earlier question
    if (verdict) verdict.textContent = "Comparing classes …";
    for (const words of answer.node.querySelectorAll(".lead ~ p")) words.remove();
    answer.stale(); answer.say("Comparing classes …");
    const asked = { query: queried(state) };
    try {
      for (const limit of ["2", "20"]) {
        const made = await host.ask("recommend", { ...asked, query: { ...asked.query, time_limit: limit } }, mine.signal, (done, total) => answer.say(`Comparing classes, ${done} of ${total} …`));
        if (mine.signal.aborted) return;
        for (const row of made.rows) row.state = stateOf(row.command, families);
        const open = made.rows.some((one) => /stopped/.test(one.notes ?? ""));
        showing(made, limit === "2" && open);
        if (!open) break;
      }
    } catch (error) {
      if (error.name === "AbortError") { if (running === mine) answer.say("Stopped."); return; }
      if (!(error instanceof Failure)) console.error(error);
      const words = error.message.replace(/^\w+: /, ""), name = words.match(/^(\w+) must/)?.[1], field = { sensitivity: "max_shift", inputs: "answers" }[name] ?? name;
      fields[field]?.setAttribute("aria-invalid", "true");
      wrong.textContent = words; wrong.hidden = false;
      answer.stale(); answer.say("");
      say(words, true);
      root.dispatchEvent(new CustomEvent("workbench-failed", { bubbles: true, detail: words }));
    } finally { if (running === mine) { running = null; stop.disabled = true; } }
  }

  function read(asked) {
    state = { ...QUERY, ...Object.fromEntries(asked) };
    for (const [name, node] of Object.entries(fields)) node.value = state[name];
    fields.answers.hidden = state.form === "range"; fields.range.hidden = state.form !== "range";
    moves.hidden = state.form === "labels";
    if (place.firstChild !== root) { bar.replaceChildren(); place.replaceChildren(root); }
    say("");
    run();
  }
  return { read, stop: () => running?.abort(), leave: () => { running?.abort(); running = null; } };
}

// The page of a family.

function explorer(root, { families, host, say, status, place, bar, stop, found }) {
  let state = { family: [...families.keys()][0], given: {} }, controls = {}, curves = new Map(), steps = new Map(), room = { unfit: [], instead: {}, moved: [] };
  let busy = false, again = false, moving = false, slow = null, fast = null, timer = 0, took = 0, here = false, late = 0;

  const family = el("select", { id: "family", "aria-label": "Family" }, ...[...families.values()].map((one) => el("option", { value: one.name }, `${one.name}: ${one.title}`)));
  const example = el("select", { id: "example", "aria-label": "Example" });
  const save = el("button", { type: "button", onclick: () => once("export", "computing the page", (made) => download(`explore-${state.family}.html`, made.html, "text/html")) }, "Export page");
  const form = el("form", { "aria-label": "Request", onsubmit: (event) => event.preventDefault() });
  const options = el("details", { class: "controls" }, el("summary", {}, "Question and options"), form);
  let wide = null;
  new ResizeObserver(([{ contentRect }]) => { if (contentRect.width && wide !== (wide = contentRect.width > FOLDED)) options.open = wide; }).observe(root);
  const sliders = el("form", { class: "sliders", "aria-label": "Budget", onsubmit: (event) => event.preventDefault() });
  const ask = (task, more = {}, signal, progress = () => {}) => host.ask(task, { ...state, ...more }, signal, progress);
  const drawn = board({ live: true, sliders, move: (name, value, done) => set(name, threeDigits(value), done), limit: findLeast, least, taken,
    pick: (x, y) => { if (y !== null) { state.given = { ...state.given, delta: threeDigits(y) }; controls.delta?.set(state.given.delta); } set("epsilon", threeDigits(x), true); } });
  const layout = el("div", { class: "layout" }, options, drawn.root);

  // What a field that is left empty counts as.
  function taken(hot) { for (const [name, value] of Object.entries(hot)) controls[name]?.node.querySelector("input[type=text]")?.setAttribute("placeholder", short(value)); }

  const everywhere = () => JSON.stringify([state.family, "formulas", { ...state.given, epsilon: null, delta: null }]);
  const fixed = (name) => JSON.stringify([state.family, { ...state.given, [name]: null }]);

  // Until the question that stands on the page has its answer, an earlier one is greyed, and "computing" beside it.
  function pending() { clearTimeout(late); late = setTimeout(() => drawn.waiting("computing …"), LATE); }
  function stopped() { clearTimeout(late); drawn.waiting("Stopped."); }
  function shows(view) {
    clearTimeout(late);
    const query = new URLSearchParams({ family: state.family });
    for (const [name, value] of Object.entries(view.given)) for (const one of [value].flat()) query.append(name, one);
    drawn.show({ ...view, found: found.get(sameQuery(query)) });
  }

  // Live designs: one at a time, the newest request next; one that is slow makes room for it.
  async function design() {
    let failed = false;
    if (busy) { again = true; if (performance.now() - busy > 1500) fast?.abort(); return; }
    do {
      again = failed = false; busy = performance.now(); fast = new AbortController(); stop.disabled = false;
      const solving = setTimeout(() => say(SOLVING), LATE), begin = performance.now(), mine = fast;
      try {
        const view = await ask("design", {}, mine.signal);
        took = performance.now() - begin;
        if (!here) break;
        if (!again && (status.className !== "status" || status.textContent === SOLVING)) say("");
        if (!again || !steps.size) { invalid(); shows(view); }
        if (again) pending();
        remember(view);
      } catch (error) {
        if (error.name === "AbortError") { if (!again) { say("Stopped."); stopped(); } } else if (/^(Stopped: Stopped after|NotProven)/.test(error.message)) { say(SOLVING); await proven("prove", mine.signal).catch((left) => { if (left.name !== "AbortError") throw left; if (!again) { say("Stopped."); stopped(); } }); if (status.textContent === SOLVING) say(""); } else { fail(error); failed = true; }
      } finally { clearTimeout(solving); }
      busy = false; stop.disabled = !slow;
    } while (again && here);
    busy = false;
    clearTimeout(timer);
    if (here && !failed) timer = setTimeout(background, 250);
  }

  // Where a design takes long: what is known of a neighbouring budget, at once; it is private at this one too.
  function atOnce(name, text) {
    const known = steps.get(fixed(name)), value = Number(text || 0);
    if (took < AT_ONCE || !known?.length || !Number.isFinite(value)) return;
    const sorted = [...known].sort((a, b) => a.at - b.at), fits = sorted.filter((one) => (LESS.includes(name) ? one.at >= value : one.at <= value));
    const near = LESS.includes(name) ? fits[0] : fits.at(-1), beyond = LESS.includes(name) ? sorted.filter((one) => one.at < value).at(-1) : sorted.find((one) => one.at > value);
    if (!near || !(MORE.includes(name) || LESS.includes(name))) return;
    const low = near.at === value ? near.view.bound : beyond?.view.bound, symbol = SYMBOLS[name] ?? name;
    const between = Number.isFinite(low) ? `between ${short(low, 5)} and ${short(near.view.objective, 5)}` : `at most ${short(near.view.objective, 5)}`;
    const note = near.at === value ? "" : `Shown: the design at ${symbol} = ${short(near.at)}, which is private at ${short(value)} too; the least loss here is ${between}.`;
    shows({ ...near.view, hot: { ...near.view.hot, [name]: value }, given: { ...state.given }, preliminary: true, borrowed: true, proving: true, certified: false, note });
  }

  // The same for points of a curve: a design is private at another curve that lies nowhere below its own, and at another
  // trade-off function that lies nowhere above.
  const pointsOf = (text) => String(text).split(",").map((part) => part.split(":").map(Number));
  function remember(view) {
    const name = ["curve", "tradeoff"].find((one) => one in view.given);
    if (!name || view.objective === null) return;
    const key = JSON.stringify([state.family, { ...view.given, [name]: null }]), kept = steps.get(key) ?? [];
    steps.set(key, [...kept.slice(-60), { points: pointsOf(view.given[name]), view }]);
  }

  function pointsAtOnce(name, text) {
    const points = pointsOf(text), sign = name === "curve" ? 1 : -1;
    const fits = (steps.get(fixed(name)) ?? []).filter((one) => one.points?.length === points.length && one.points.every(([at, high], k) => at === points[k][0] && sign * high <= sign * points[k][1]));
    if (took < AT_ONCE || !fits.length) return;
    const near = fits.reduce((a, b) => (b.view.objective < a.view.objective ? b : a));
    shows({ ...near.view, given: { ...state.given }, preliminary: true, borrowed: true, proving: true, certified: false, note: `Shown: the design of another ${name}, which is private at this one too; the least loss here is at most ${short(near.view.objective, 5)}.` });
  }

  // The options that are given, as a design repeats them.
  function filled() { return Object.fromEntries(Object.entries(state.given).filter(([, value]) => value !== "" && value !== null && value !== undefined && !(Array.isArray(value) && !value.length))); }

  function fail(error) {
    clearTimeout(late);
    if (!(error instanceof Failure)) console.error(error);
    const words = error.message.replace(/^InvalidRequest: /, "");
    say(words, true);
    const named = Object.keys(controls).find((name) => new RegExp(`^${name}\\b`).test(words));
    invalid(named, words);
    drawn.wrong(words);
    root.dispatchEvent(new CustomEvent("workbench-failed", { bubbles: true, detail: words }));
  }

  function invalid(named = null, words = null) {
    for (const [name, one] of Object.entries(controls)) one.fail(name === named ? words : null);
  }

  // The proof of what is shown: the numbers of the command line, with the certificate.
  async function proven(task, signal) {
    try {
      const view = await ask(task, {}, signal, () => {});
      if (signal.aborted || !here) return;
      shows(view);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      if (!(error instanceof Failure)) console.error(error);
      const words = error.message.replace(/^\w+: /, "");
      if (drawn.view && JSON.stringify(drawn.view.given) === JSON.stringify(filled())) shows({ ...drawn.view, proving: false, preliminary: false, note: words }); else fail(error);
    }
  }

  // What takes longer, in order of usefulness; a change of the request stops it.
  async function background() {
    const entry = families.get(state.family), mine = new AbortController();
    slow = mine; stop.disabled = false;
    const names = () => Object.keys(drawn.view?.hot ?? {}).filter((name) => !room.unfit.includes(name));
    const jobs = [];
    let settled = false;
    if (drawn.view && drawn.view.objective !== null && entry.certifies && !drawn.view.certificate) jobs.push([drawn.view.quick === false || took > 1000 ? "prove" : "certify"]);
    else if (drawn.view?.borrowed || drawn.view?.preliminary) jobs.push(["complete"]);
    if (!entry.known) jobs.push(["suggestions"]);
    jobs.push(["fields"]);
    if (drawn.view && drawn.view.objective !== null) jobs.push(...names().map((name) => ["along", { along: name }]), ["profile"], ["rivals"], ["formulas"], ...names().map((name) => ["along", { along: name, finer: true }]));
    for (const [task, more = {}] of jobs) {
      if (mine.signal.aborted) break;
      if (more.finer && !settled) settled = told();
      const before = curves.get(fixed(more.along))?.left;
      try {
        if (task === "certify" || task === "prove" || task === "complete") await proven(task, mine.signal);
        else if (task === "suggestions") await suggest(mine.signal);
        else if (task === "fields") await offer(mine.signal);
        else if (!room.unfit.includes(more.along)) await part(task, more, mine.signal, names());
        const left = curves.get(fixed(more.along))?.left;
        if (more.finer && left && left !== before) jobs.push([task, more]);
      } catch (error) {
        if (error.name !== "AbortError") throw error;
        if (slow === mine) say("Stopped.");
        break;
      }
    }
    if (slow === mine) { slow = null; stop.disabled = !busy; if (!settled) told(); }
  }

  // Everything is there; curves may still become finer.
  function told() {
    drawn.fill();
    drawn.root.dataset.settled = String(Number(drawn.root.dataset.settled ?? 0) + 1);
    return root.dispatchEvent(new CustomEvent("workbench-settled", { bubbles: true }));
  }

  async function part(task, more, signal, names) {
    const name = more.along, key = task === "formulas" ? everywhere() : name && fixed(name), known = key && curves.get(key);
    if (known && task === "formulas") { if (!drawn.cards.formulas && known.figure) drawn.formulas(known.figure); return; }
    if (known && !(more.finer && known.left)) { if (!drawn.cards[`along ${name}`]) drawn.along(name, known.figure, known.overlays); return; }
    const key2 = task === "along" ? `along ${name}` : task === "profile" ? "privacy" : task;
    const title = task === "along" ? `Price against ${SYMBOLS[name] ?? name}` : task === "profile" ? "Privacy" : task === "formulas" ? "Which formula holds where" : "Other mechanisms";
    const shown = drawn.add(key2, title);
    if (shown.empty) shown.title();
    shown.say(more.finer ? "" : "computing …");
    const progress = (done, total, got) => {
      shown.say(`computing${more.finer ? " more values" : ""}, ${done} of ${total} …`);
      if (got?.along) steps.set(key, [...(steps.get(key) ?? []).filter((one) => one.at !== got.at), got]);
    };
    try {
      const made = await ask(task, more, signal, progress);
      if (signal.aborted || !here) return;
      if (task === "along") { const overlays = known?.overlays ?? []; curves.set(key, { figure: made.figure, overlays, left: made.left }); drawn.along(name, made.figure, overlays); }
      else if (task === "profile") drawn.privacy(made);
      else if (task === "formulas") { curves.set(key, { figure: made }); drawn.formulas(made); }
      else {
        drawn.rivals(made);
        for (const [at, overlays] of Object.entries(made.overlays)) {
          const curve = curves.get(fixed(at));
          if (curve && names.includes(at)) { curve.overlays = overlays; drawn.along(at, curve.figure, overlays); }
        }
      }
      drawn.cards[key2]?.fresh();
    } catch (error) {
      if (error.name === "AbortError") { shown.say(""); throw error; }
      if (!(error instanceof Failure)) console.error(error);
      if (task === "formulas") curves.set(key, { figure: null });
      if (!/^(Bug|Stopped)/.test(error.message) && (task === "rivals" || shown.node.querySelector("svg, table") === null)) drawn.drop(key2);
      else { shown.stale(); shown.say(error.message.replace(/^\w+: /, "")); }
    }
  }

  // A task of a button.
  async function once(task, words, done, more = {}) {
    slow?.abort(); clearTimeout(timer);
    const mine = new AbortController();
    fast = mine; stop.disabled = false; say(`${words} …`);
    save.disabled = true;
    try {
      const made = await ask(task, more, mine.signal, (at, total) => say(`${words}, ${at} of ${total} …`));
      say("");
      done(made);
    } catch (error) {
      if (error.name === "AbortError") say("Stopped."); else fail(error);
    }
    save.disabled = false; stop.disabled = true;
  }

  // What the family itself minimises, of the numbers that are moved.
  function least(view) {
    const known = families.get(state.family).options.some((one) => one.name === "minimise");
    return known ? ["epsilon", "delta"].filter((name) => typeof view?.hot[name] === "number") : [];
  }

  function findLeast(name, limit) {
    if (!Number.isFinite(limit)) { say("The error must be a number.", true); return; }
    const { [name]: left, ...given } = state.given;
    once("complete", `looking for the least ${name}`, (found) => {
      if (found.objective === null) { say(found.reason, true); return; }
      const value = up(found.objective);
      set(name, value, true);
      say(`Least ${name}: ${value}, for at most ${short(limit)}.`);
    }, { given: { ...given, minimise: name, max_loss: String(limit) } });
  }

  // State.

  function set(name, value, done) {
    const option = families.get(state.family).options.find((one) => one.name === name), listed = families.get(state.family).words?.[name];
    const given = { ...state.given };
    for (const other of room.instead[name] ?? []) delete given[other];
    if (value === "" || value === option.default) delete given[name]; else given[name] = value;
    state.given = given;
    controls[name]?.set(value);
    slow?.abort(); slow = null; clearTimeout(timer);
    if (listed || option.kind === "flag" || room.instead[name]) { adapt(name, done); return; }
    write(done);
    if (option.range) atOnce(name, value); else if (name === "curve" || name === "tradeoff") pointsAtOnce(name, value);
    design();
  }

  // After a choice what no longer fits is left out, and what is then missing begins somewhere.
  async function adapt(name, done) {
    const limit = drawn.view?.objective ? short(1.1 * drawn.view.objective, 3) : null;
    try { const fit = await ask("adapt", { changed: name, limit }); state.given = fit.given; room = fit.room; } catch (error) { if (error.name !== "AbortError") fail(error); }
    write(done);
    build();
    drawn.reset(false); curves.clear(); steps.clear();
    await design();
  }

  // One entry of the history for every change; of a drag, for all of it.
  function write(done) {
    pending();
    const query = new URLSearchParams({ family: state.family });
    for (const [name, value] of Object.entries(state.given)) for (const one of [value].flat()) if (one !== "") query.append(name, one);
    host.keep(String(query), !moving);
    moving = !done;
  }

  function read(query) {
    const name = query.get("family") ?? state.family, entry = families.get(name);
    query.delete("family");
    here = true;
    if (place.firstChild !== layout) { bar.replaceChildren(family, example, save); place.replaceChildren(layout); }
    if (!entry) {
      choose(state.family, null).then(() => say(`family must be one of ${[...families.keys()].join(", ")}. Got '${name}'.`, true));
      return;
    }
    const given = {};
    for (const key of new Set(query.keys())) {
      const option = entry.options.find((one) => one.name === key), all = query.getAll(key);
      given[key] = option?.kind === "flag" ? all[0] === "true" : option?.kind === "list" ? all : all[0];
    }
    choose(name, Object.keys(given).length ? given : null);
  }

  function choose(name, given) {
    const entry = families.get(name);
    state = { family: name, given: given ?? { ...entry.first } };
    family.value = name;
    list(entry);
    room = { unfit: entry.options.filter((one) => !(one.name in state.given) && (SYMBOLS[one.name] || ["curve", "tradeoff"].includes(one.name)) && !["epsilon", "delta"].includes(one.name)).map((one) => one.name), instead: {}, moved: Object.keys(state.given) };
    build();
    drawn.reset(); curves.clear(); steps.clear(); took = 0; slow?.abort(); slow = null; clearTimeout(timer);
    say("");
    pending();
    return design();
  }

  function list(entry) {
    example.replaceChildren(el("option", { value: "" }, "Examples …"), ...(entry.examples ?? []).map((one, k) => el("option", { value: k }, one.title)));
  }

  // Examples and the words that options take are known once models and solvers are loaded.
  async function suggest(signal) {
    const name = state.family, entry = families.get(name), { words, examples } = await ask("suggestions", {}, signal);
    Object.assign(entry, { words, examples, known: true });
    if (name === state.family) { list(entry); build(); }
  }

  // Which options the request has room for.
  async function offer(signal) {
    const found = await ask("fields", {}, signal);
    if (JSON.stringify(found) === JSON.stringify(room)) return;
    room = found;
    build();
  }

  function build() {
    const entry = families.get(state.family), words = entry.words ?? {}, focused = root.getRootNode().activeElement?.id;
    controls = {};
    const made = (option) => {
      const points = option.name === "curve" ? ["ε", "δ"] : option.name === "tradeoff" ? ["α", "β"] : null;
      controls[option.name] = control(points ? { ...option, points } : option, state.given[option.name], set, words[option.name]);
      return controls[option.name].node;
    };
    const fits = entry.options.filter((one) => !room.unfit.includes(one.name) && !room.instead[one.name]);
    const budget = ["epsilon", "delta", "rho", "mu", "alpha", "curve", "tradeoff", "max_loss", "bits", "runs"].map((name) => fits.find((one) => one.name === name && (one.hot || one.name in state.given || one.range || name === "curve" || name === "tradeoff"))).filter((one) => one && (one.name !== "runs" || "runs" in state.given));
    const group = (title, listed, parent = el("fieldset", {}, el("legend", {}, title))) => { parent.append(...listed.map(made)); return listed.length ? parent : ""; };
    const rest = fits.filter((one) => !budget.includes(one)), other = entry.options.filter((one) => room.instead[one.name] && !one.minor);
    sliders.replaceChildren(el("h2", {}, "Budget"), ...budget.map(made));
    form.replaceChildren(...[el("p", { class: "soft" }, entry.summary),
      group("Question", rest.filter((one) => one.question)),
      group("What is wanted", rest.filter((one) => !one.question && !one.minor)),
      other.length ? el("details", {}, el("summary", {}, "Another way to put it"), group("", other, el("div"))) : "",
      el("details", {}, el("summary", {}, "Solver"), group("", rest.filter((one) => one.minor), el("div")))].filter(Boolean));
    if (focused) root.getRootNode().getElementById?.(focused)?.focus();
  }

  family.addEventListener("change", () => { choose(family.value, null); write(true); });
  example.addEventListener("change", () => {
    const found = families.get(state.family).examples[Number(example.value)];
    if (example.value !== "" && found) { choose(state.family, { ...found.given }); write(true); }
  });
  return { read, stop: () => { slow?.abort(); fast?.abort(); }, leave: () => { here = false; slow?.abort(); fast?.abort(); clearTimeout(timer); slow = null; } };
}

// A document: an exploration that was exported, or sections of figures, tables and pictures.

function exported(root, made) {
  const entry = made.listing[0], hot = Object.keys(made.view.hot).filter((name) => made.along[name]).at(0);
  const same = (one) => one.hot[hot] === made.view.hot[hot];
  const views = made.steps.some(same) ? made.steps.map((one) => (same(one) ? made.view : one)) : [...made.steps, made.view];
  views.sort((a, b) => a.hot[hot] - b.hot[hot]);
  const said = el("output", { for: "step" });
  const slider = el("input", { id: "step", type: "range", min: "0", max: String(views.length - 1), step: "1", "aria-label": `${hot}, slider` });
  const drawn = board({ sliders: views.length > 1 ? el("div", { class: "sliders" }, el("h2", {}, "Budget"), el("label", { for: "step" }, said), slider) : null });
  const show = () => {
    const view = views[Number(slider.value)];
    drawn.show({ ...view, proving: false, note: view.certified || !view.certifies ? "" : "The certified design is the one this page was made for." });
    said.textContent = `${SYMBOLS[hot] ?? hot} = ${short(view.hot[hot])}${view === made.view ? " (the design of this page)" : ""}`;
    slider.setAttribute("aria-valuetext", said.textContent);
  };
  slider.value = String(views.indexOf(made.view));
  slider.addEventListener("input", show);
  root.replaceChildren(
    el("header", {}, el("h1", {}, `dp-workbench: ${entry.title}`), themed(root), el("p", { class: "status" }, entry.summary)),
    el("div", { class: "layout wide" }, drawn.root));
  show();
  if (made.rivals) drawn.rivals(made.rivals);
  for (const [name, figure] of Object.entries(made.along)) drawn.along(name, figure, made.rivals?.overlays[name] ?? []);
  if (made.profile) drawn.privacy(made.profile);
  if (made.formulas) drawn.formulas(made.formulas);
  const missing = Object.entries(made.errors);
  if (missing.length) drawn.add("missing", "Not shown").show(el("h2", {}, "Not shown"), facts(missing.map(([name, words]) => [name, words])));
  requestAnimationFrame(() => requestAnimationFrame(drawn.fill));  // once charts have their heights
}

function sections(root, data) {
  const zoom = el("dialog", { onclick: () => zoom.close() });
  const picture = (one) => {
    const src = pictureOf(one.svg);
    const image = el("img", { class: "picture zoom", alt: one.title, src, tabindex: "0", role: "button", loading: "lazy" });
    const open = () => { zoom.replaceChildren(el("img", { alt: one.title, src })); zoom.showModal(); };
    image.addEventListener("click", open);
    image.addEventListener("keydown", (event) => { if (event.key === "Enter") open(); });
    return el("figure", {}, image);
  };
  const part = (one) => one.kind === "facts" ? facts(one.rows)
    : one.kind === "text" ? el("p", { class: one.look ?? "" }, one.text)
    : one.kind === "image" ? picture(one)
    : one.kind === "cells" ? el("div", { class: one.look ?? null }, table(one.heads, one.rows, one.title))
    : one.kind === "numbers" ? more(one.title, one.heads, one.rows)
    : figureNode(one, { proven: one.proven ?? true });
  const links = data.sections.filter((one) => one.level === 1 && one.id);  // of many sections, which are folded
  const body = data.sections.map((one) => {
    if (links.length && one.level !== 1) return el("details", { class: "card fold" }, el("summary", {}, el("h2", {}, one.title)), ...one.parts.map(part));
    const heading = !one.title ? "" : el(one.level === 1 ? "h1" : "h2", {}, one.title);
    const inside = one.parts.map(part);
    return el("section", { class: one.narrow ? "card" : "card whole", id: one.id ?? null }, heading, ...inside);
  });
  const contents = links.length ? el("nav", { class: "card whole", "aria-label": "Contents" }, el("ul", {}, ...links.map((one) => el("li", {}, el("a", { href: `#${one.id}` }, one.title)))),
    el("button", { type: "button", onclick: () => { const all = [...root.querySelectorAll("details.fold")], open = !all.every((one) => one.open); for (const one of all) one.open = open; } }, "Open or fold all")) : null;
  if (contents) body.unshift(contents);
  root.replaceChildren(el("header", {}, el("h1", {}, data.title), themed(root)), el("div", { class: "layout wide" }, el("main", { class: "cards" }, ...body)), zoom);
}

function mount(root, data, host) {
  root.classList.add("page");
  for (const event of ["beforeprint", "afterprint"]) addEventListener(event, () => root.querySelectorAll("figure").forEach((one) => one.onPaper?.(event === "beforeprint")));
  if (data.mode === "live") live(root, data, host);
  else if (data.export) exported(root, data.export);
  else sections(root, data);
}
