// The first page: a query as one sentence, and the classes of mechanisms that can answer it.

const DEFAULT_QUERY = {
  form: "numbers", answers: "0..100", range: "0..100", max_shift: "1", epsilon: "1", delta: "1e-5",
  loss: "squared",
};
const FORMS = {
  numbers: "whole numbers or a list", range: "real numbers in a range", labels: "labels or categories",
};
const LOSSES = {
  squared: "mean squared error", absolute: "mean absolute error", "error-rate": "error rate",
};
const PROMISE = "Find the most accurate mechanism for your privacy budget, with a proof";
const SUMMARY =
  "A mechanism adds randomness to an answer, so that the published answer says little about any "
  + "single person. Describe your answers; the page compares the optimal mechanism of each class "
  + "with published ones such as Laplace and Gaussian noise.";
const PUBLISH_HINT =
  "To publish counts, sums, means or histograms of a CSV file, use the command ";
const TIME_LIMITS = ["2", "20"];  // The comparison runs with these limits in turn, in seconds.

// Write a query in one order and without its time limit, so that equal queries are equal texts.
function normaliseQuery(text) {
  const query = new URLSearchParams(text);
  query.delete("time_limit");
  query.sort();
  return String(query);
}

// Build the inputs of the query. change(name, value): called after a change.
function makeQueryFields(change) {
  const makeInput = (name, label, size) => {
    const attributes = { id: `query-${name}`, type: "text", size, "aria-label": label };
    const node = el("input", { ...attributes, spellcheck: "false", autocomplete: "off" });
    node.addEventListener("change", () => change(name, node.value.trim()));
    return node;
  };
  const makeSelect = (name, label, texts) => {
    const entries = Object.entries(texts).map(([value, text]) => el("option", { value }, text));
    const node = el("select", { id: `query-${name}`, "aria-label": label }, ...entries);
    node.addEventListener("change", () => change(name, node.value));
    return node;
  };
  return {
    form: makeSelect("form", "Kind of answers", FORMS),
    answers: makeInput("answers", "Answers", 12),
    range: makeInput("range", "Range", 12),
    max_shift: makeInput("max_shift", "Largest change of an answer by one person", 4),
    epsilon: makeInput("epsilon", "Privacy budget ε", 5),
    delta: makeInput("delta", "Privacy budget δ", 6),
    loss: makeSelect("loss", "Error to minimise", LOSSES),
  };
}

// Build the first page. Returns {read(query), stop(), leave()}.
//
// open(queryText, row): opens the page of a class.
function makeQueryPage({ families, host, say, place, bar, stop, open }) {
  let state = { ...DEFAULT_QUERY };
  let running = null;  // The AbortController of the current comparison.

  const write = () => {
    host.keep(String(new URLSearchParams(state)), true);
    read(new URLSearchParams(host.state()));
  };
  const change = (name, text) => {
    const value = readPlainText(name, text);
    state[name] = value;
    if (name === "form") {
      state.answers = value === "labels" ? "a,b,c,d" : "0..100";
      if (value === "labels") state.loss = "error-rate";
      if (value === "range" && state.loss === "error-rate") state.loss = "squared";
    }
    write();
  };
  const fields = makeQueryFields(change);
  const errorNode = el("p", { class: "error", role: "alert", hidden: true });
  const proposalNode = el("button", { type: "button", hidden: true });
  const shiftPart = el(
    "span", {}, "; adding or removing one person changes an answer by at most ", fields.max_shift,
  );
  const sentence = el(
    "div", {}, "My answers are ", fields.form, " ", fields.answers, fields.range, shiftPart,
    ". My privacy budget is ε = ", fields.epsilon, ", δ = ", fields.delta, ". Minimise the ",
    fields.loss, ".",
  );
  const intro = el(
    "section", { class: "intro", "aria-label": "About this page" },
    el("h2", {}, PROMISE), el("p", {}, SUMMARY), el("p", { class: "soft" }, PUBLISH_HINT, el("code", {}, "workbench publish"), "."),
  );
  const preventSubmit = (event) => event.preventDefault();
  const formAttributes = { class: "card sentence", "aria-label": "Query", onsubmit: preventSubmit };
  const form = el("form", formAttributes, sentence, errorNode, proposalNode);
  const card = makeCard("Comparison of mechanisms", "whole");

  const makeLink = (queryText, content, action, attributes = {}) => {
    const follow = (event) => {
      event.preventDefault();
      action();
    };
    return el("a", { href: `#${queryText}`, onclick: follow, ...attributes }, ...content);
  };
  const makeFamilyItem = (family) => {
    const query = String(new URLSearchParams({ family: family.name, ...family.first }));
    const content = [el("strong", {}, family.title), el("span", {}, family.summary)];
    return el("li", {}, makeLink(query, content, () => open(query)));
  };
  const familyItems = [...families.values()].map(makeFamilyItem);
  const familyList = el(
    "section", { "aria-label": "Families" },
    el("h2", {}, "Or choose a family of mechanisms, with all its options"),
    el("ul", { class: "families" }, ...familyItems),
  );
  const root = el("main", { class: "home" }, intro, form, card.node, familyList);

  // Show the rows of a comparison. isPartial: larger classes are still being solved.
  const showComparison = (comparison, isPartial) => {
    const openRow = (row) => open(row.state ?? stateOfClass(row), row);
    const makeName = (row) => makeLink(row.state ?? stateOfClass(row), [row.name], () => openRow(row));
    const rowOf = new Map(comparison.rows.map((row) => [row.name, row]));
    const openDot = (dot) => () => openRow(rowOf.get(dot.name));
    const lead = isPartial
      ? `${comparison.lead.replace(/^Best:/, "Best so far:")} More mechanisms are being solved …`
      : comparison.lead;
    card.show(...makeComparison(comparison, lead, { makeName, open: openDot }));
    root.dataset.drawn = String(Number(root.dataset.drawn ?? 0) + 1);
    const detail = { ...comparison, partial: isPartial };
    root.dispatchEvent(new CustomEvent("workbench-recommended", { bubbles: true, detail }));
  };
  const stateOfClass = (row) => String(new URLSearchParams({ ...state, class: row.class }));

  // Grey the comparison of an earlier query.
  const showProgress = () => {
    if (card.isEmpty) card.title();
    const verdict = card.node.querySelector(".lead");
    if (verdict) verdict.textContent = "Comparing mechanisms …";
    for (const paragraph of card.node.querySelectorAll(".lead ~ p")) paragraph.remove();
    card.stale();
    card.say("Comparing mechanisms …");
  };

  // Offer a text that the workbench understands instead of the text of a field.
  const showProposal = (name, proposal) => {
    proposalNode.hidden = !proposal;
    if (!proposal) return;
    proposalNode.textContent = `Use ${proposal.text}${proposal.note}`;
    proposalNode.onclick = () => change(name, proposal.text);
  };

  const showError = (error) => {
    if (!(error instanceof Failure)) console.error(error);
    const text = error.message.replace(/^\w+: /, "");
    const name = text.match(/^(\w+) must/)?.[1];
    const fieldName = { sensitivity: "max_shift", inputs: "answers" }[name] ?? name;
    fields[fieldName]?.setAttribute("aria-invalid", "true");
    errorNode.textContent = text;
    errorNode.hidden = false;
    showProposal(fieldName, proposePlainText(fieldName, state[fieldName]));
    card.stale();
    card.say("");
    say(text, true);
    root.dispatchEvent(new CustomEvent("workbench-failed", { bubbles: true, detail: text }));
  };

  async function run() {
    running?.abort();
    const controller = new AbortController();
    running = controller;
    stop.disabled = false;
    errorNode.hidden = true;
    proposalNode.hidden = true;
    for (const node of Object.values(fields)) node.removeAttribute("aria-invalid");
    showProgress();
    const query = recommendOptions(state);
    const progress = (done, total) => card.say(`Comparing mechanisms, ${done} of ${total} …`);
    try {
      for (const time_limit of TIME_LIMITS) {
        const request = { query: { ...query, time_limit } };
        const comparison = await host.ask("recommend", request, controller.signal, progress);
        if (controller.signal.aborted) return;
        showComparison(comparison, time_limit === TIME_LIMITS[0] && comparison.stopped);
        if (!comparison.stopped) break;
      }
    } catch (error) {
      if (error.name !== "AbortError") showError(error);
      else if (running === controller) card.say("Stopped.");
    } finally {
      if (running === controller) {
        running = null;
        stop.disabled = true;
      }
    }
  }

  function read(query) {
    state = { ...DEFAULT_QUERY, ...Object.fromEntries(query) };
    for (const [name, node] of Object.entries(fields)) node.value = state[name];
    fields.answers.hidden = state.form === "range";
    fields.range.hidden = state.form !== "range";
    shiftPart.hidden = state.form === "labels";
    if (place.firstChild !== root) {
      bar.replaceChildren();
      place.replaceChildren(root);
    }
    say("");
    run();
  }

  return {
    read,
    stop: () => running?.abort(),
    leave() {
      running?.abort();
      running = null;
    },
  };
}
