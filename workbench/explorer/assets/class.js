// The page of one class of mechanisms that has no family page, such as a published mechanism.

// Build the page. Returns {read(query), stop(), leave()}.
function makeClassPage({ host, say, place, bar, stop, open }) {
  let running = null;  // the AbortController of the current task

  // Build the link to the comparison with the same query.
  const makeBackLink = (query) => {
    const back = new URLSearchParams(query);
    back.delete("class");
    const follow = (event) => {
      event.preventDefault();
      open(String(back));
    };
    return el("a", { href: `#${back}`, onclick: follow }, "← Compare it with other mechanisms");
  };

  async function read(query) {
    running?.abort();
    const controller = new AbortController();
    running = controller;
    const board = makeBoard({ live: false });
    const root = el("div", { class: "layout wide" }, el("p", { class: "back" }, makeBackLink(query)), board.root);
    bar.replaceChildren();
    place.replaceChildren(root);
    say("computing …");
    stop.disabled = false;
    const { class: name, ...fields } = Object.fromEntries(query);
    const request = { query: recommendOptions({ ...DEFAULT_QUERY, ...fields }), class: name };
    try {
      const { view, profile, along } = await host.ask("class", request, controller.signal);
      if (controller.signal.aborted) return;
      say("");
      board.show(view);
      if (along) board.showCurve("epsilon", along);
      if (profile) board.showPrivacy(profile);
      board.fillColumns();
      board.root.dataset.settled = "1";
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof Failure)) console.error(error);
      const text = error.message.replace(/^\w+: /, "");
      say(text, true);
      board.showError(text);
    } finally {
      if (running === controller) stop.disabled = true;
    }
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
