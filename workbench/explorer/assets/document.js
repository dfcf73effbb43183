// Pages without a server: an exported design, and documents of sections.

// Show an exported design, with a slider over the designs that were exported with it.
function showExport(root, data) {
  const family = data.listing[0];
  const number = Object.keys(data.view.hot).find((name) => data.along[name]);
  const isMainDesign = (view) => view.hot[number] === data.view.hot[number];
  const views = data.steps.map((view) => (isMainDesign(view) ? data.view : view));
  if (!data.steps.some(isMainDesign)) views.push(data.view);
  views.sort((a, b) => a.hot[number] - b.hot[number]);
  const output = el("output", { for: "step" });
  const slider = el("input", {
    id: "step", type: "range", min: "0", max: String(views.length - 1), step: "1",
    "aria-label": `${number}, slider`,
  });
  const label = el("label", { for: "step" }, output);
  const heading = el("h2", {}, "Budget");
  const sliders = views.length > 1 ? el("div", { class: "sliders" }, heading, label, slider) : null;
  const board = makeBoard({ sliders });
  const showStep = () => {
    const view = views[Number(slider.value)];
    const isFinal = view.certified || !view.certifies;
    const note = isFinal ? "" : "Only the design for which this page was made is certified.";
    board.show({ ...view, proving: false, note });
    const suffix = view === data.view ? " (the design of this page)" : "";
    output.textContent = `${SYMBOLS[number] ?? number} = ${formatNumber(view.hot[number])}${suffix}`;
    slider.setAttribute("aria-valuetext", output.textContent);
  };
  slider.value = String(views.indexOf(data.view));
  slider.addEventListener("input", showStep);
  const title = el("h1", {}, `dp-workbench: ${family.title}`);
  const summary = el("p", { class: "status" }, family.summary);
  root.replaceChildren(
    el("header", {}, title, makeThemeButton(root), summary),
    el("div", { class: "layout wide" }, board.root),
  );
  showStep();
  if (data.rivals) board.showRivals(data.rivals);
  for (const [name, figure] of Object.entries(data.along)) {
    board.showCurve(name, figure, data.rivals?.overlays[name] ?? []);
  }
  if (data.profile) board.showPrivacy(data.profile);
  if (data.formulas) board.showFormulas(data.formulas);
  const missing = Object.entries(data.errors);
  if (missing.length) {
    board.addCard("missing", "Not shown").show(el("h2", {}, "Not shown"), makeFacts(missing));
  }
  // The columns are filled after the charts have their heights.
  requestAnimationFrame(() => requestAnimationFrame(board.fillColumns));
}

// Build a picture that grows on a click. zoom: the dialog that shows it.
function makeZoomPicture(part, zoom) {
  const src = imageAddress(part.svg);
  const open = () => {
    zoom.replaceChildren(el("img", { alt: part.title, src }));
    zoom.showModal();
  };
  const image = el("img", {
    class: "picture zoom", alt: part.title, src, tabindex: "0", role: "button", loading: "lazy",
  });
  image.addEventListener("click", open);
  image.addEventListener("keydown", (event) => {
    if (event.key === "Enter") open();
  });
  return el("figure", {}, image);
}

// Build one part of a section.
function makePart(part, zoom) {
  switch (part.kind) {
    case "facts":
      return makeFacts(part.rows);
    case "text":
      return el("p", { class: part.look ?? "" }, part.text);
    case "image":
      return makeZoomPicture(part, zoom);
    case "cells": {
      const table = makeTable(part.heads, part.rows, part.title);
      return el("div", { class: part.look ?? null }, table);
    }
    case "comparison":
      return el("div", {}, ...makeComparison(part, part.lead));
    case "numbers":
      return makeFoldedTable(part.title, part.heads, part.rows);
    default:
      return makeFigure(part, { proven: part.proven ?? true });
  }
}

// Build the thumbnails of the figures of a chapter. Each opens the section of its figure.
//
// chapterSections: the sections after the chapter's own; nodes: section -> its element.
function makeThumbnails(chapterSections, nodes) {
  const items = [];
  for (const section of chapterSections) {
    const picture = section.parts.find((part) => part.kind === "image");
    if (!picture) continue;
    const open = (event) => {
      event.preventDefault();
      nodes.get(section).open = true;
      nodes.get(section).scrollIntoView();
    };
    const image = el("img", { alt: "", src: imageAddress(picture.svg), loading: "lazy" });
    items.push(el("li", {}, el("a", { href: "#", onclick: open }, image, section.title)));
  }
  return items.length ? el("ul", { class: "thumbnails" }, ...items) : "";
}

// Build the contents: the chapters with their thumbnails, and a button for all sections.
function makeContents(root, sections, nodes) {
  const isChapter = (section) => section.level === 1 && section.id;
  const chapters = sections.filter(isChapter).map((chapter) => {
    const start = sections.indexOf(chapter) + 1;
    const rest = sections.slice(start);
    const end = rest.findIndex(isChapter);
    const chapterSections = end < 0 ? rest : rest.slice(0, end);
    const link = el("h2", {}, el("a", { href: `#${chapter.id}` }, chapter.title));
    return el("div", {}, link, makeThumbnails(chapterSections, nodes));
  });
  const toggleAll = () => {
    const folds = [...root.querySelectorAll("details.fold")];
    const willOpen = !folds.every((fold) => fold.open);
    for (const fold of folds) fold.open = willOpen;
  };
  const button = el("button", { type: "button", onclick: toggleAll }, "Open or fold all");
  const attributes = { class: "card whole", "aria-label": "Contents" };
  return el("nav", attributes, ...chapters, button);
}

// Show a document of sections. If it has chapters (level 1), all other sections are folded.
function showSections(root, data) {
  const zoom = el("dialog", { onclick: () => zoom.close() });
  const chapters = data.sections.filter((section) => section.level === 1 && section.id);
  const makeSection = (section) => {
    const parts = section.parts.map((part) => makePart(part, zoom));
    const isChapter = section.level === 1;
    if (chapters.length && !isChapter) {
      const summary = el("summary", {}, el("h2", {}, section.title));
      return el("details", { class: "card fold" }, summary, ...parts);
    }
    const heading = section.title ? el(isChapter ? "h1" : "h2", {}, section.title) : "";
    const attributes = { class: section.narrow ? "card" : "card whole", id: section.id ?? null };
    return el("section", attributes, heading, ...parts);
  };
  const body = data.sections.map(makeSection);
  const nodes = new Map(data.sections.map((section, index) => [section, body[index]]));
  if (chapters.length) body.unshift(makeContents(root, data.sections, nodes));
  root.replaceChildren(
    el("header", {}, el("h1", {}, data.title), makeThemeButton(root)),
    el("div", { class: "layout wide" }, el("main", { class: "cards" }, ...body)),
    zoom,
  );
}
