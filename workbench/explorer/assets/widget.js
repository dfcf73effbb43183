// The host of a notebook: the kernel, by the messages and traits of an anywidget model.

function kernel(model) {
  const waiting = new Map();
  let last = 0, kept = null;
  const heard = (message) => waiting.get(message.id)?.(message);
  model.on("msg:custom", heard);
  return {
    home: false,
    leave: () => model.off("msg:custom", heard),
    state: () => model.get("state"),
    keep(query) { kept = query; model.set("state", query); model.save_changes(); },
    follow: (read) => model.on("change:state", () => { if (model.get("state") !== kept) read(); }),
    ask(task, asked, signal, progress) {
      const id = ++last;
      return new Promise((answer, fail) => {
        const leave = () => { waiting.delete(id); signal?.removeEventListener("abort", abort); };
        const abort = () => { leave(); model.send({ stop: id }); fail(new DOMException("Stopped.", "AbortError")); };
        waiting.set(id, (message) => {
          if (message.total) { progress?.(message.done, message.total, message.part); return; }
          leave();
          if (message.error) fail(new Failure(`${message.error}: ${message.message}`)); else answer(message.result);
        });
        if (signal?.aborted) { abort(); return; }
        signal?.addEventListener("abort", abort);
        model.send({ id, task, asked });
      });
    },
  };
}

function render({ model, el: place }) {
  const shadow = place.attachShadow({ mode: "open" }), root = el("div", { class: "cell" }), host = kernel(model), light = document.body.dataset.jpThemeLight;
  if (light) root.dataset.theme = light === "true" ? "light" : "dark";  // as JupyterLab has it
  shadow.append(el("style", {}, model.get("style")), root);
  mount(root, { mode: "live", families: JSON.parse(model.get("families")) }, host);
  return host.leave;
}

export default { render };
