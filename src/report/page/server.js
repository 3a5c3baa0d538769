// What the page asks heap_profile view, when that has served it.

class ServerError extends Error {
  constructor({ error, hint }) {
    super(error);
    this.hint = hint;
  }
}

async function ask(path, parameters, options) {
  const answer = await fetch(`api/${path}?${new URLSearchParams(parameters)}`, options).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new ServerError({ error: "The server does not answer: it has ended.", hint: "Run heap_profile view again." });
  });
  const body = await answer.json();
  if (!answer.ok) throw new ServerError(body);
  return body;
}

// For people.
function errorText(error) {
  return error.name === "AbortError" ? [make("p", { class: "quiet" }, "Stopped.")]
    : [make("p", { class: "bad", role: "alert" }, printable(error.message)), make("p", { class: "quiet" }, printable(error.hint || ""))];
}

// Files that heap_profile export writes, of the end of the heap.
function exportLinks(app) {
  const process = app.report.processById.get(app.heap.upid);
  const parameters = { heap: app.heap.name, view: app.state.view, ...(process && process.pid > 0 && { pid: process.pid }) };
  return make("p", {}, "As heap_profile export writes them, all of the heap's end: ", ...["pprof", "folded", "speedscope", "csv"].flatMap((format) =>
    [make("a", { href: "api/export?" + new URLSearchParams({ format, ...parameters }), download: "" }, format), " "]));
}
