// Mount a page: live, with a host that computes, or a document that shows what it holds.
//
// A host has the methods
//   ask(task, request, signal, progress)  Return the result of a task or throw Failure. Aborting the
//                                         signal stops the computation.
//   state()                               Return the state of the page as the text of a query.
//   keep(query, isStep)                   Store the state. isStep: as a new entry of the history.
//   follow(read)                          Call `read` when the state was changed from elsewhere.
// page.js has the host of the explorer.

// An error with a message for the reader.
class Failure extends Error {}

// Build the button that switches between the light and the dark theme.
function makeThemeButton(root) {
  const preference = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : preference.matches);
  const button = el("button", { type: "button" }, "");
  const update = () => {
    const other = isDark() ? "Light" : "Dark";
    button.textContent = other;
    button.setAttribute("aria-label", `${other} theme`);
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    update();
  });
  preference.addEventListener("change", update);
  update();
  return button;
}

// Mount the live explorer: the page of the query and the pages of the families.
function mountLive(root, data, host) {
  const families = new Map(data.families.map((family) => [family.name, family]));
  const status = el("p", { class: "status", role: "status", "aria-live": "polite" });
  const say = (text, isError = false) => {
    status.textContent = text;
    status.className = isError ? "status error" : "status";
  };
  const place = el("div");
  const bar = el("div", { class: "row" });
  const stop = el("button", { type: "button" }, "Stop");
  stop.disabled = true;
  const openHome = (event) => {
    event.preventDefault();
    host.keep("", true);
    read();
  };
  const brand = el("a", { href: "#", onclick: openHome }, "dp-workbench");
  const header = el("header", {}, el("h1", {}, brand), bar, stop, makeThemeButton(root), status);
  root.replaceChildren(header, place);
  const compared = new Map();  // The query text of a request -> its row of the comparison.
  const shared = { families, host, say, place, bar, stop };
  const open = (state, row) => {
    if (row?.certified) compared.set(normaliseQuery(state), row);
    host.keep(state, true);
    read();
  };
  const familyPage = makeFamilyPage(root, { ...shared, status, compared, open });
  const queryPage = makeQueryPage({ ...shared, open });
  const classPage = makeClassPage({ ...shared, open });
  let shownPage = null;
  function read() {
    const query = new URLSearchParams(host.state());
    const isRequest = query.has("family") || ([...query].length && !query.has("form"));
    let nextPage = isRequest ? familyPage : queryPage;
    if (query.has("class")) nextPage = classPage;
    if (shownPage && shownPage !== nextPage) shownPage.leave();
    shownPage = nextPage;
    nextPage.read(query);
  }
  stop.addEventListener("click", () => shownPage.stop());
  host.follow(read);
  read();
}

// Mount a page in an element. data.mode: "live" or "document".
function mountPage(root, data, host) {
  root.classList.add("page");
  for (const event of ["beforeprint", "afterprint"]) {
    addEventListener(event, () => {
      const isPrinting = event === "beforeprint";
      root.querySelectorAll("figure").forEach((figure) => figure.onPaper?.(isPrinting));
    });
  }
  if (data.mode === "live") mountLive(root, data, host);
  else if (data.export) showExport(root, data.export);
  else showSections(root, data);
}
