// The host of a page: its server, where it has one, and the fragment of its address.

function server() {
  const token = new URLSearchParams(location.search).get("token") ?? "";
  const stopped = () => new Failure("The server has stopped.");
  return {
    state: () => location.hash.slice(1),
    keep: (query, step) => history[step ? "pushState" : "replaceState"](null, "", `${location.pathname}${location.search}${query ? `#${query}` : ""}`),
    follow: (read) => addEventListener("popstate", () => read()),
    // Lines of JSON, the last one the result.
    async ask(task, asked, signal, progress) {
      let answer;
      try {
        answer = await fetch(`/api/${task}`, { method: "POST", signal, headers: { "Content-Type": "application/json", "X-Workbench-Token": token }, body: JSON.stringify(asked) });
      } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Failure("The server does not answer. It may have been stopped: start workbench explore again.");
      }
      if (!answer.ok) throw new Failure((await answer.json()).message);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { done, value } = await reader.read().catch((error) => { throw error.name === "AbortError" ? error : stopped(); });
        if (done) throw stopped();
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

// The page's data; a long text is compressed.
async function content(node) {
  if (!("packed" in node.dataset)) return JSON.parse(node.textContent);
  const bytes = Uint8Array.from(atob(node.textContent), (letter) => letter.charCodeAt(0));
  return JSON.parse(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text());
}

content(document.getElementById("data")).then((data) => mount(document.getElementById("app"), data, server()));
