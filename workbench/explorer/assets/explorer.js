// What is shown: live (asks its host), or a document (shows what it holds). A host is
//   ask(task, asked, signal, progress)  the result of a task, or Failure; aborting the signal stops the computation
//   state(), keep(query, step)          family and options as the text of a query; step: one for the history
//   follow(read)                        tells when the state was changed from elsewhere
// page.js is the host of a page, widget.js that of a notebook.

class Failure extends Error {}
const SOLVING = "solving …";

// What is known about one design, in cards: the same in a live page and in an export.
function board(actions = {}) {
  const cards = { result: card("Result", "tall"), law: card("The mechanism") }, laid = [cards.result, cards.law];
  const root = el("main", { class: "cards" }, ...laid.map((one) => one.node));
  const add = (key, title, whole) => {
    if (!cards[key]) { cards[key] = card(title, whole); laid.push(cards[key]); root.append(cards[key].node); }
    return cards[key];
  };
  let shown = null, marked = {};
  const mark = (name) => ({ x: Number(shown?.hot[name] ?? NaN), y: shown?.objective, proven: shown?.certified });
  return {
    root, add, cards,
    get view() { return shown; },
    show(view) {
      shown = view;
      cards.result.show(...result(view, actions));
      cards.law.node.hidden = !view.figures.length;
      cards.law.show(...view.figures.map((one) => figureNode(one, { proven: view.certified })));
      for (const [name, node] of Object.entries(marked)) node.mark(mark(name));
      root.dataset.drawn = String(Number(root.dataset.drawn ?? 0) + 1);
      root.dispatchEvent(new CustomEvent("workbench-drawn", { bubbles: true, detail: view }));
    },
    along(name, figure, overlays = []) {
      const key = `along ${name}`;
      if (!figure) { cards[key]?.node.remove(); delete cards[key]; delete marked[name]; return; }
      const options = { mark: mark(name), drag: actions.move && ((x, done) => actions.move(name, x, done)), limit: actions.limit && ((y, done) => done && actions.limit(name, y)) };
      const under = (one) => one.look === "halo" || one.look === "band";  // what others are drawn upon
      const series = [...figure.series.filter(under), ...overlays, ...figure.series.filter((one) => !under(one))];
      marked[name] = figureNode({ ...figure, series }, options);
      add(`along ${name}`, `${figure.y.label} against ${name}`).show(marked[name]);
    },
    privacy(figures) { figures.forEach((one, k) => add(k ? `privacy ${k}` : "privacy", one.title).show(figureNode(one))); },
    rivals(made) { add("rivals", "Other mechanisms", "whole").show(figureNode(made.table)); },
    reset() {
      for (const key of Object.keys(cards)) if (key !== "result" && key !== "law") { cards[key].node.remove(); delete cards[key]; }
      marked = {};
    },
  };
}

function result(view, actions) {
  const [kind, words] = view.certified ? ["badge proven", "certified: proven private in exact arithmetic"]
    : view.private === false ? ["badge missed", "the solver's word, which misses the request by its rounding"]
    : view.private === true ? ["badge", "not certified yet; its audit is exact"]
    : ["badge", view.certifies ? "not certified" : "no certificate in this family: see its guarantee"];
  const saved = view.certificate ? [el("button", { type: "button", class: "main", onclick: () => download("certificate.json", view.certificate, "application/json") }, "Save the certificate")] : [];
  return [
    el("h2", {}, view.heading),
    el("p", {}, el("span", { class: "soft" }, `${view.label} `), el("br"), el("span", { class: "value" }, cell(view.objective))),
    el("p", {}, el("span", { class: kind }, words), " ", ...saved),
    view.preliminary ? el("p", {}, el("span", { class: "badge open" }, "preliminary: better ones are not ruled out yet")) : "",
    facts(view.facts),
    ...(actions.limit ? [inverse(view, actions.limit)] : []),
    more("The row, as tables of the command line have it", ["column", "value"], Object.entries(view.row)),
    el("details", {}, el("summary", {}, "Copy as"), copyable("Command", view.command), copyable("Python", view.python)),
  ];
}

// The least value of a hot option for an error that is typed in; dragging the black knob of a chart does the same.
function inverse(view, limit) {
  const input = el("input", { type: "text", inputmode: "decimal", "aria-label": `Largest ${view.label} allowed`, value: short(view.objective, 4) });
  const buttons = Object.entries(view.hot).filter(([, value]) => typeof value === "number")
    .map(([name]) => el("button", { type: "button", onclick: () => limit(name, Number(input.value)) }, `least ${name}`));
  return el("div", { class: "inverse" }, el("span", {}, `For a ${view.label} of at most`), input, ...buttons);
}

// What asks its host.

function live(root, data, host) {
  const families = new Map(data.families.map((one) => [one.name, one]));
  let state = { family: data.families[0].name, given: {} }, controls = {}, curves = new Map();
  let busy = false, again = false, moving = false, slow = null, fast = null, timer = 0;

  const status = el("p", { class: "status", role: "status", "aria-live": "polite" });
  const family = el("select", { id: "family", "aria-label": "Family" }, ...data.families.map((one) => el("option", { value: one.name }, `${one.name}: ${one.title}`)));
  const example = el("select", { "aria-label": "Example" });
  const button = (words, action, kind = "") => el("button", { type: "button", class: kind, onclick: action }, words);
  const certify = button("Certify", () => once("certify", "certifying", (view) => drawn.show(view)), "main");
  const save = button("Export page", () => once("export", "computing the page", (made) => download(`explore-${state.family}.html`, made.html, "text/html")));
  const stop = button("Stop", () => { slow?.abort(); fast?.abort(); });
  stop.disabled = true;
  const form = el("form", { class: "controls", "aria-label": "Request", onsubmit: (event) => event.preventDefault() });
  const drawn = board({ move: (name, value, done) => set(name, threeDigits(value), done), limit: findLeast });
  root.replaceChildren(el("header", {}, el("h1", {}, "dp-workbench"), family, example, certify, save, stop, status),
    el("div", { class: "layout" }, form, drawn.root));

  const say = (words, bad = false) => { status.textContent = words; status.className = bad ? "status error" : "status"; };

  const ask = (task, more, signal, progress = () => {}) => host.ask(task, { ...state, ...more }, signal, progress);

  // Live designs: one at a time, the newest request next; one that is slow makes room for it.
  async function design() {
    if (busy) { again = true; if (performance.now() - busy > 1500) fast?.abort(); return; }
    do {
      again = false; busy = performance.now(); fast = new AbortController(); stop.disabled = false;
      const late = setTimeout(() => say(SOLVING), 400);
      try {
        const view = await ask("design", {}, fast.signal);
        if (!again && (status.className !== "status" || status.textContent === SOLVING)) say("");
        drawn.show(view);
      } catch (error) {
        if (error.name !== "AbortError") fail(error); else if (!again) say("Stopped.");
      } finally { clearTimeout(late); }
      busy = false; stop.disabled = !slow;
    } while (again);
    clearTimeout(timer);
    timer = setTimeout(background, 250);
  }

  function fail(error) {
    if (!(error instanceof Failure)) console.error(error);
    say(error.message, true);
    for (const one of Object.values(drawn.cards)) one.stale();
    root.dispatchEvent(new CustomEvent("workbench-failed", { detail: error.message }));
  }

  // What takes longer, in order of usefulness; a change of the request stops it.
  async function background() {
    const entry = families.get(state.family), mine = new AbortController();
    slow = mine; stop.disabled = false;
    const names = entry.options.filter((one) => one.hot && one.range && typeof drawn.view?.hot[one.name] === "number").map((one) => one.name);
    const jobs = [...names.reverse().map((name) => ["along", `against ${name}`, { along: name }]), ["profile", "privacy"], ["rivals", "other mechanisms"]];
    if (drawn.view?.preliminary) jobs.unshift(["complete", "the proof"]);
    const keyOf = (name) => JSON.stringify([state.family, { ...state.given, [name]: null }]);
    for (const [task, words, more = {}] of jobs) {
      const key = more.along && keyOf(more.along), known = key && curves.get(key);
      if (task === "complete") { await complete(mine.signal); if (mine.signal.aborted) break; continue; }
      const place = task === "along" ? drawn.add(`along ${more.along}`, `Error against ${more.along}`) : task === "profile" ? drawn.add("privacy", "Privacy") : drawn.add("rivals", "Other mechanisms", "whole");
      if (known) { drawn.along(more.along, known.figure, known.overlays); continue; }
      if (place.empty) place.title();
      place.say("computing …");
      try {
        const made = await ask(task, more, mine.signal, (done, total) => place.say(`computing, ${done} of ${total} …`));
        if (mine.signal.aborted) return;
        if (task === "along") { curves.set(key, { figure: made.figure, overlays: [] }); drawn.along(more.along, made.figure); }
        else if (task === "profile") drawn.privacy(made.figures);
        else {
          drawn.rivals(made);
          for (const [name, overlays] of Object.entries(made.overlays)) {
            const curve = curves.get(keyOf(name));
            if (curve && names.includes(name)) { curve.overlays = overlays; drawn.along(name, curve.figure, overlays); }
          }
        }
      } catch (error) {
        if (error.name === "AbortError") { place.say(""); if (slow === mine) say("Stopped."); break; }
        if (!(error instanceof Failure)) console.error(error);
        place.stale(); place.say(error.message.replace(/^\w+: /, ""));
      }
    }
    if (slow === mine) { slow = null; stop.disabled = !busy; root.dispatchEvent(new CustomEvent("workbench-settled")); }
  }

  // The proof of what is shown as preliminary.
  async function complete(signal) {
    say("The design is preliminary; the solver goes on …");
    try {
      const view = await ask("complete", {}, signal);
      if (signal.aborted) return;
      say("");
      drawn.show(view);
    } catch (error) { if (error.name === "AbortError") { if (slow?.signal === signal) say("Stopped. The design is preliminary."); } else fail(error); }
  }

  // A task of a button.
  async function once(task, words, done, more = {}) {
    slow?.abort(); clearTimeout(timer);
    const mine = new AbortController();
    fast = mine; stop.disabled = false; say(`${words} …`);
    certify.disabled = save.disabled = true;
    try {
      const made = await ask(task, more, mine.signal, (at, total) => say(`${words}, ${at} of ${total} …`));
      say("");
      done(made);
    } catch (error) {
      if (error.name === "AbortError") say("Stopped."); else fail(error);
    }
    certify.disabled = !families.get(state.family).certifies;
    save.disabled = false; stop.disabled = true;
  }

  function findLeast(name, limit) {
    if (!Number.isFinite(limit)) { say("The error must be a number.", true); return; }
    once("inverse", `looking for the least ${name}`, (found) => {
      set(name, found.value, true);
      say(found.below ? `Least ${name}: ${found.value} (at ${found.below} the limit ${short(limit)} is missed).` : `Even ${name} = ${found.value}, the least shown, meets ${short(limit)}.`);
    }, { along: name, limit });
  }

  // State.

  function set(name, value, done) {
    state.given = { ...state.given, [name]: value };
    controls[name]?.set(value);
    slow?.abort(); slow = null; clearTimeout(timer);
    write(done);
    design();
  }

  // One entry of the history for every change; of a drag, for all of it.
  function write(done) {
    const query = new URLSearchParams({ family: state.family });
    for (const [name, value] of Object.entries(state.given)) for (const one of [value].flat()) if (one !== "") query.append(name, one);
    host.keep(String(query), !moving);
    moving = !done;
  }

  function read() {
    const query = new URLSearchParams(host.state()), name = query.get("family") ?? state.family;
    const entry = families.get(name);
    query.delete("family");
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
    state = { family: name, given: given ?? entry.first };
    family.value = name;
    certify.disabled = !entry.certifies;
    example.replaceChildren(el("option", { value: "" }, "Examples …"));
    build(entry);
    drawn.reset(); curves.clear(); slow?.abort(); slow = null; clearTimeout(timer);
    return design().then(() => { suggest(name); });
  }

  // Examples and the words that options take are known once models and solvers are loaded.
  async function suggest(name) {
    try {
      const { words, examples } = await ask("suggestions", {});
      if (name !== state.family) return;
      for (const [option, list] of Object.entries(words)) controls[option]?.suggest?.(list);
      families.get(name).examples = examples;
      example.append(...examples.map((one, k) => el("option", { value: k }, one.title)));
    } catch (error) { if (!(error instanceof Failure)) console.error(error); }
  }

  function build(entry) {
    controls = {};
    const group = (words, options, parent = el("fieldset", {}, el("legend", {}, words))) => {
      for (const option of options) {
        controls[option.name] = control(option, state.given[option.name], set);
        parent.append(controls[option.name].node);
      }
      return options.length ? parent : "";
    };
    const of = (test) => entry.options.filter((one) => test(one));
    form.replaceChildren(el("p", { class: "soft" }, entry.summary),
      group("Budget", of((one) => one.hot).reverse()),
      group("Question", of((one) => one.question && !one.hot)),
      group("What is wanted", of((one) => !one.question && !one.hot && !one.minor)),
      el("details", {}, el("summary", {}, "Solver"), group("", of((one) => one.minor), el("div"))));
  }

  family.addEventListener("change", () => { choose(family.value, null); write(true); });
  example.addEventListener("change", () => {
    const found = families.get(state.family).examples[Number(example.value)];
    if (example.value !== "" && found) { choose(state.family, { ...found.given }); write(true); }
  });
  host.follow(read);
  read();
}

// A document: an exploration that was exported, or sections of figures, tables and pictures.

function exported(root, made) {
  const drawn = board(), entry = made.listing[0];
  const steps = [...made.steps], moving = Object.keys(made.along).at(0);
  const hot = Object.keys(made.view.hot).filter((name) => made.along[name]).at(-1);
  const same = (one) => one.hot[hot] === made.view.hot[hot];
  const views = steps.some(same) ? steps.map((one) => (same(one) ? made.view : one)) : [...steps, made.view];
  views.sort((a, b) => a.hot[hot] - b.hot[hot]);
  const said = el("output", { for: "step" });
  const slider = el("input", { id: "step", type: "range", min: "0", max: String(views.length - 1), step: "1", "aria-label": `${hot}, slider` });
  const show = () => {
    const view = views[Number(slider.value)];
    drawn.show(view);
    said.textContent = ` ${hot} = ${short(view.hot[hot])}${view === made.view ? " (the design of this page)" : ""}`;
    slider.setAttribute("aria-valuetext", said.textContent);
  };
  slider.value = String(views.indexOf(made.view));
  slider.addEventListener("input", show);
  root.replaceChildren(
    el("header", {}, el("h1", {}, `dp-workbench: ${entry.name}`), views.length > 1 ? el("label", {}, slider, said) : "",
      el("p", { class: "status" }, entry.summary)),
    el("div", { class: "layout wide" }, drawn.root));
  show();
  for (const [name, figure] of Object.entries(made.along).reverse()) drawn.along(name, figure, made.rivals?.overlays[name] ?? []);
  if (made.profile) drawn.privacy(made.profile);
  if (made.rivals) drawn.rivals(made.rivals);
  const missing = Object.entries(made.errors);
  if (missing.length) drawn.add("missing", "Not shown", "whole").show(el("h2", {}, "Not shown"), facts(missing.map(([name, words]) => [name, words])));
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
    : one.kind === "cells" ? table(one.heads, one.rows)
    : one.kind === "numbers" ? more(one.title, one.heads, one.rows)
    : figureNode(one, { proven: one.proven ?? true });
  const body = data.sections.map((one) => {
    const heading = !one.title ? "" : el(one.level === 1 ? "h1" : "h2", {}, one.title);
    const inside = one.parts.map(part);
    return el("section", { class: one.narrow ? "card" : "card whole", id: one.id ?? null }, heading, ...inside);
  });
  const links = data.sections.filter((one) => one.level === 1 && one.id).map((one) => el("a", { href: `#${one.id}` }, one.title));
  root.replaceChildren(el("header", {}, el("h1", {}, data.title), ...links), el("div", { class: "layout wide" }, el("main", { class: "cards" }, ...body)), zoom);
}

function mount(root, data, host) {
  if (data.mode === "live") live(root, data, host);
  else if (data.export) exported(root, data.export);
  else sections(root, data);
}
