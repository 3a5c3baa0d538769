// What the page asks heap_profile view, when that has served it.

class ServerError extends Error {
  constructor({ error, hint }) {
    super(error);
    this.hint = hint;
  }
}

function reach(path, options) {
  return fetch(path, options).catch((error) => {
    throw error.name === "AbortError" ? error
      : new ServerError({ error: "The server does not answer.", hint: "If it has ended: run heap_profile view again." });
  });
}

// What it shows, as src/report/report_data.h writes it.
const askForData = async () => new Uint8Array(await (await reach("data")).arrayBuffer());

async function ask(path, parameters, options) {
  const answer = await reach(`api/${path}?${new URLSearchParams(parameters)}`, options);
  const body = await answer.json();
  if (!answer.ok) throw new ServerError(body);
  return body;
}

// For people.
function errorText(error) {
  return error.name === "AbortError" ? [quiet("Stopped.")]
    : [make("p", { class: "bad", role: "alert" }, printable(error.message)), quiet(printable(error.hint || ""))];
}

// Files that heap_profile export writes, of the end of the heap.
function exportLinks(app) {
  if (isManaged(app.heap.end.dump)) return quiet("heap_profile export writes files of other heaps, not of managed ones.");
  const parameters = { heap: app.heap.name, view: app.state.view, upid: app.heap.upid };
  return make("p", {}, "As heap_profile export writes them, all of the heap's end: ", ...app.report.exportFormats.flatMap((format) =>
    [make("a", { href: "api/export?" + new URLSearchParams({ format, ...parameters }), download: "" }, format), " "]));
}
