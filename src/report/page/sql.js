// Questions in SQL, answered by heap_profile view.

const MOST_ANSWERS = 10000;  // rows
const ROWS_SHOWN = 300;

// Functions that are nothing but names, for a graph of an answer.
class NamedFunctions {
  constructor() {
    this.names = ["all", ""];
    this.moduleIds = [0, 1];  // a colour for each name
    this.rows = new Map();
  }

  rowOf(name) {
    if (!this.rows.has(name)) {
      this.rows.set(name, this.names.length);
      this.moduleIds.push(this.names.length);
      this.names.push(name);
    }
    return this.rows.get(name);
  }

  get count() {
    return this.names.length;
  }

  name(row) {
    return this.names[row];
  }

  moduleName(row) {
    return this.names[row];
  }

  module() {
    return "";
  }

  place() {
    return "";
  }

  isNamed() {
    return true;
  }

  isAllocator() {
    return false;
  }
}

// Of an answer with the columns stack ("main;f;g") and value.
function graphOf({ columns, rows }, palette) {
  const [stack, value] = [columns.indexOf("stack"), columns.indexOf("value")];
  const functions = new NamedFunctions();
  const maker = new TreeMaker(rows.length);
  for (const row of rows) {
    const node = String(row[stack] ?? "").split(";").reduce((at, name) => maker.callee(at, functions.rowOf(printable(name))), 0);
    maker.add(node, Number(row[value]) || 0);
  }
  const tree = maker.finish();
  const graph = new FlameGraph(functions, {
    onZoom: (node) => graph.show(tree, "bytes", palette, node),
    onSelect: () => {},
    onMenu: () => {},
  }, { title: "Answer" });
  graph.show(tree, "bytes", palette, 0);
  fitTo(graph, 500);
  return graph.element;
}

class SqlPage {
  constructor(app) {
    this.app = app;
    const { examples } = app.report;
    this.text = make("textarea", { id: "sql", rows: 7, spellcheck: false, value: examples[0][1], "aria-label": "SQL", onkeydown: (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run();
    } });
    this.runButton = button("Run", { id: "run", title: "Ctrl+Enter" }, () => this.run());
    this.stopButton = button("Stop", { disabled: true }, () => this.running.abort());
    const saved = make("select", { "aria-label": "Examples", onchange: () => (this.text.value = examples[saved.selectedIndex][1]) },
      ...examples.map(([title]) => make("option", {}, title)));
    this.tables = make("div", { class: "tables" });
    this.result = make("div", { id: "result" });
    this.element = make("div", {},
      make("section", { class: "card" }, make("div", { class: "toolbar" }, this.runButton, this.stopButton, saved), this.text,
        make("details", { ontoggle: () => this.showTables() }, make("summary", {}, "Tables and functions"), this.tables)),
      this.result);
  }

  async showTables() {
    if (this.tables.firstChild) return;
    try {
      const { tables } = await ask("tables");
      this.tables.replaceChildren(...tables.sort((a, b) => (a.name < b.name ? -1 : 1)).map(({ name, columns, parameters }) => make("div", {},
        make("b", {}, name + (parameters.length ? `(${parameters.join(", ")})` : "")), make("span", { class: "quiet" }, " " + columns.join(", ")))));
    } catch (error) {
      this.tables.replaceChildren(...errorText(error));
    }
  }

  async run() {
    if (this.running) return;
    this.running = new AbortController();
    this.runButton.disabled = true;
    this.stopButton.disabled = false;
    try {
      const answer = await ask("sql", { limit: MOST_ANSWERS }, { method: "POST", body: this.text.value, signal: this.running.signal });
      this.app.addWarnings(answer.warnings || []);
      this.show(answer);
    } catch (error) {
      this.result.replaceChildren(...errorText(error));
    }
    this.running = null;
    this.runButton.disabled = false;
    this.stopButton.disabled = true;
  }

  show(answer) {
    const { columns, rows, seconds } = answer;
    const isNumber = columns.map((_, i) => rows.length > 0 && rows.every((row) => row[i] === null || typeof row[i] === "number"));
    const text = (cell) => (cell === null ? "NULL" : cut(printable(String(cell)), 2000));
    const shown = rows.slice(0, ROWS_SHOWN);
    const graph = make("div");
    this.result.replaceChildren(...[
      make("div", { class: "toolbar" },
        make("span", { id: "rows" }, `${countedExactly(rows.length, "row", "rows")}${answer.is_cut ? ", and there are more: use LIMIT or narrow it down" : ""}, ${formatSeconds(seconds)}`),
        columns.length ? button("Save as CSV", {}, () => saveFile("answer.csv", new Blob(csvOf(columns, rows), { type: "text/csv" }))) : null,
        columns.includes("stack") && columns.includes("value") && rows.length
          ? button("Show as flame graph", { id: "as-graph" }, () => graph.replaceChildren(graphOf(answer, this.app.palette))) : null),
      graph,
      columns.length ? table(columns.map(printable), shown.map((row) => row.map(text)), { numbers: isNumber.flatMap((is, i) => (is ? [i] : [])) }) : null,
      moreRows(rows.length, ROWS_SHOWN, "more rows, which are in the CSV file"),
    ].filter(Boolean));
  }
}

function csvOf(columns, rows) {
  const cell = (value) => (typeof value === "string" ? csvText(value) : String(value ?? ""));
  return [columns, ...rows].map((row) => row.map(cell).join() + "\n");
}

function renderSql(app, main) {
  app.sqlPage = app.sqlPage || new SqlPage(app);
  main.append(app.sqlPage.element);
}
