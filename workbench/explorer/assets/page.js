// The host of a page: its server, if it has one, and the fragment of its address.

// Connect the page to its server.
function connectServer() {
  const token = new URLSearchParams(location.search).get("token") ?? "";
  const stoppedError = () => new Failure("The server has stopped.");
  const post = async (task, request, signal) => {
    const headers = { "Content-Type": "application/json", "X-Workbench-Token": token };
    const body = JSON.stringify(request);
    try {
      return await fetch(`/api/${task}`, { method: "POST", signal, headers, body });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Failure("The server does not answer. If it was stopped, start workbench explore again.");
    }
  };
  return {
    state: () => location.hash.slice(1),
    keep(query, isStep) {
      const fragment = query ? `#${query}` : "";
      const address = `${location.pathname}${location.search}${fragment}`;
      if (isStep) history.pushState(null, "", address);
      else history.replaceState(null, "", address);
    },
    follow: (read) => addEventListener("popstate", () => read()),
    // The answer of the server is lines of JSON. The last one is the result.
    async ask(task, request, signal, progress) {
      const answer = await post(task, request, signal);
      if (!answer.ok) throw new Failure((await answer.json()).message);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { done, value } = await reader.read().catch((error) => {
          throw error.name === "AbortError" ? error : stoppedError();
        });
        if (done) throw stoppedError();
        text += value;
        const lines = text.split("\n");
        text = lines.pop();
        for (const line of lines.filter(Boolean)) {
          const message = JSON.parse(line);
          if (message.error) throw new Failure(`${message.error}: ${message.message}`);
          if (message.result) return message.result;
          if (message.total) progress?.(message.done, message.total, message.part);
        }
      }
    },
  };
}

// Read the data of the page, which are compressed if they are long.
async function readData(node) {
  if (!("packed" in node.dataset)) return JSON.parse(node.textContent);
  const bytes = Uint8Array.from(atob(node.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

readData(document.getElementById("data")).then((data) => {
  mountPage(document.getElementById("app"), data, connectServer());
});
