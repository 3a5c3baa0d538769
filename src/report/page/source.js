// Lines of source code with what they hold. The server reads files that the trace names,
// where they are at hand, or the page has them.

const MOST_LINES = 3000;  // of larger files those near the lines that hold most
const NEAR = 30;

class SourcePage {
  constructor(app) {
    this.app = app;
    this.key = "";  // of what is shown
    this.files = make("select", { size: 10, class: "files", "aria-label": "Source files", onchange: () => this.showFile() });
    this.note = quiet();
    this.threads = quiet();
    this.lines = make("div", { id: "source" });
    this.element = make("div", {}, card("Source files", this.threads, this.note, this.files), this.lines);
  }

  // Of the moment and the value that are chosen.
  parameters() {
    const { moment, state } = this.app;
    return { dump: moment.dump.id, peak: Number(moment.tree.about.is_peak), view: state.view };
  }

  async ask(path, parameters) {
    const { source } = this.app.report;
    if (!source) return ask(path, parameters);
    const answer = source.answers[path + "?" + new URLSearchParams(parameters)];
    if (!answer) throw new ServerError({ error: "The page has source lines of heaps' ends and peaks only.", hint: "heap_profile view FILE has all." });
    return { ...answer, text: source.texts[answer.text] };
  }

  async show() {
    this.threads.textContent = this.app.moment.tid ? "Lines have the figures of all threads, not of the chosen one alone." : "";
    const key = JSON.stringify(this.parameters());
    if (key === this.key) return;
    this.key = key;
    const chosen = this.files.selectedOptions[0]?.textContent.split("  ").pop();
    this.note.textContent = "…";
    this.files.replaceChildren();
    this.lines.replaceChildren();
    try {
      const { files, count } = await this.ask("sources", this.parameters());
      if (key !== this.key) return;
      const { unit } = this.app.view;
      this.note.textContent = count === 0 ? "No function of this moment has a file and a line, as programs built with -g have where their symbols are at hand."
        : `${countedExactly(count, "file", "files")}, those whose lines allocate most first` + (count > files.length ? `; ${files.length} are listed.` : ".");
      this.files.append(...files.map((file) => make("option", { value: String(file.id), selected: printable(file.name) === chosen },
        `${formatValue(file.own, unit)}, through it ${formatValue(file.total, unit)}  ${printable(file.name)}`)));
      this.files.hidden = count === 0;
      if (count > 0 && this.files.selectedIndex < 0) this.files.selectedIndex = 0;
      if (count > 0) await this.showFile();
    } catch (error) {
      this.key = "";
      this.lines.replaceChildren(...errorText(error));
    }
  }

  async showFile() {
    const { key } = this;
    const id = this.files.value;
    try {
      const file = await this.ask("source", { id, ...this.parameters() });
      if (key !== this.key || id !== this.files.value) return;
      this.lines.replaceChildren(...this.annotated(file));
      this.lines.querySelector(".most")?.scrollIntoView({ block: "center" });
    } catch (error) {
      this.lines.replaceChildren(...errorText(error));
    }
  }

  annotated({ name, lines, count, text, is_cut, reason }) {
    const { unit } = this.app.view;
    const byLine = new Map(lines.map(([line, own, total]) => [line, { own, total }]));
    const last = text ? text.length : 0;
    const most = largest(lines.map(([, own]) => own));
    const shown = new Set(last <= MOST_LINES ? (text || []).map((_, at) => at + 1) : []);
    const limit = shown.size + MOST_LINES;
    for (const [line] of [...lines].sort((a, b) => b[1] - a[1] || b[2] - a[2])) {
      if (shown.size >= limit) break;
      shown.add(line);
      for (let near = Math.max(1, line - NEAR); near <= Math.min(last, line + NEAR); ++near) shown.add(near);
    }
    const left = count - lines.filter(([line]) => shown.has(line)).length;
    const numbers = [...shown].sort((a, b) => a - b);
    const rows = numbers.map((line) => ({ own: 0, total: 0, ...byLine.get(line) }));
    const cell = (value) => (value ? figure(value, unit) : "");
    return [
      make("h2", {}, printable(name)),
      reason ? make("p", { class: "bad" }, `${printable(reason)}. What the lines hold is known all the same.`) : null,
      text && !is_cut && largest(lines.map(([line]) => line)) > last ? make("p", { class: "bad" }, "The profile has lines that the file here does not have.") : null,
      left ? quiet(`Lines that hold least are left out: ${grouped(left)}.`) : null,
      table(["Itself", "Through it", "Line", ""], numbers.map((line, at) => [cell(rows[at].own), cell(rows[at].total),
        make("td", { class: "number quiet" }, String(line)), make("td", { class: "code" }, text ? (text[line - 1] ?? "").split("\t").map(printable).join("\t") : "")]), {
        numbers: [0, 1, 2], className: "source",
        rowAt: (at) => ({ class: rows[at].own && rows[at].own === most ? "held most" : rows[at].total ? "held" : "", "data-line": String(numbers[at]) }) }),
    ].filter(Boolean);
  }
}

function renderSource(app, main) {
  if (isManaged(app.moment.dump)) {
    main.append(card("Source files", make("p", {}, "Of managed heaps no lines are known: a dump has objects, not who allocated them.")));
    return;
  }
  app.sourcePage = app.sourcePage || new SourcePage(app);
  main.append(app.sourcePage.element);
  app.sourcePage.show();
}
