// Show a comparison of mechanisms: on the first page, and in documents of `workbench recommend`.

// Build the elements of a comparison (workbench/explorer/comparison.py).
//
// lead: the answer in words; options.makeName(row): the name of a row, a text or a link;
// options.open(dot): the action of a click on a dot.
function makeComparison(comparison, lead, { makeName = (row) => row.name, open = null } = {}) {
  const { rows, quantity, assumption, details } = comparison;
  const solved = rows.filter((row) => row.objective !== null);
  const figure = {
    kind: "dots",
    title: `${capitalise(quantity)} of each mechanism, and its proven lower bound`,
    x: quantity,
    rows: solved.map((row) => ({
      name: row.name,
      value: row.objective,
      low: row.bound > 0 ? row.bound : null,
      certified: row.certified,
      notes: row.remark,
    })),
  };
  const makeBadge = (row) => {
    const className = row.certified ? "badge proven" : "badge";
    return el("span", { class: className }, row.certified ? "✓ certified" : "not certified");
  };
  const makeMechanism = (row) => (
    el("div", {}, makeName(row), el("div", { class: "soft" }, row.remark))
  );
  const heads = ["mechanism", quantity, "lower bound", "privacy proof"];
  const cells = solved.map((row) => (
    [makeMechanism(row), row.objective, row.bound || el("span", { class: "none" }, "-"), makeBadge(row)]
  ));
  const unsolved = rows.filter((row) => row.objective === null);
  const reasons = unsolved.map((row) => [row.name, row.remark]);
  const makeReasons = () => [makeTable(["mechanism", "reason"], reasons, "Mechanisms that do not apply")];
  const table = makeTable(heads, cells, "Mechanisms");
  table.classList.add("mechanisms");
  return [
    el("p", { class: "lead" }, el("strong", {}, lead)),
    assumption ? el("p", { class: "soft" }, assumption) : "",
    solved.length ? makeFigure(figure, open ? { open } : {}) : "",
    table,
    ...details.map((text) => el("p", {}, text)),
    reasons.length ? makeFolded("Mechanisms that do not apply, and the reasons", makeReasons) : "",
  ].filter(Boolean);
}
