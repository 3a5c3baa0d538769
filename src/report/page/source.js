// Lines of source code with what they hold. The server reads files that the trace names,
// where they are at hand.

const MOST_LINES = 3000;  // of larger files those near a line that holds something
const NEAR = 30;

class SourcePage {
  constructor(app) {
    this.app = app;
    this.key = "";  // of what is shown
    this.files = make("select", { size: 10, class: "files", "aria-label": "Source files", onchange: () => this.showFile() });
    this.note = make("p", { class: "quiet" });
    this.lines = make("div", { id: "source" });
    this.element = make("div", {}, make("section", { class: "card" }, make("h2", {}, "Source files"), this.note, this.files), this.lines);
  }

  // Of the moment and the value that are chosen.
  parameters() {
    const { moment, state } = this.app;
    return { dump: moment.dump.id, peak: Number(moment.tree.about.is_peak), view: state.view };
  }

  async show() {
    const key = JSON.stringify(this.parameters());
    if (key === this.key) return;
    this.key = key;
    const chosen = this.files.selectedOptions[0]?.textContent.split("  ").pop();
    this.note.textContent = "…";
    this.files.replaceChildren();
    this.lines.replaceChildren();
    try {
      const { files, count } = await ask("sources", this.parameters());
      if (key !== this.key) return;
      const { unit } = this.app.view;
      this.note.textContent = count === 0 ? "No function of this moment has a file and a line: the program was built without -g, its symbols are not at hand, or the file has none."
        : `${count.toLocaleString("en-US")} files, those whose lines allocate most first` + (count > files.length ? `; ${files.length} are listed.` : ".");
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
      const file = await ask("source", { id, ...this.parameters() });
      if (key !== this.key || id !== this.files.value) return;
      this.lines.replaceChildren(...this.annotated(file));
      this.lines.querySelector(".most")?.scrollIntoView({ block: "center" });
    } catch (error) {
      this.lines.replaceChildren(...errorText(error));
    }
  }

  annotated({ name, lines, text, reason }) {
    const { unit } = this.app.view;
    const byLine = new Map(lines.map(([line, own, total]) => [line, { own, total }]));
    const last = text ? text.length : 0;
    const most = Math.max(...lines.map(([, own]) => own));
    const isShown = (line) => last <= MOST_LINES || lines.some(([other]) => Math.abs(other - line) <= NEAR);
    const numbers = text ? text.map((_, at) => at + 1).filter(isShown) : [];
    const beyond = lines.map(([line]) => line).filter((line) => line > last);
    const cell = (value) => make("td", { class: "number", title: value ? formatExactly(value, unit) : "" }, value ? formatValue(value, unit) : "");
    const row = (line) => {
      const { own, total } = byLine.get(line) || {};
      return make("tr", { class: own && own === most ? "held most" : total ? "held" : "", "data-line": String(line) },
        cell(own), cell(total), make("td", { class: "number quiet" }, String(line)), make("td", { class: "code" }, text ? printable(text[line - 1] ?? "") : ""));
    };
    return [
      make("h2", {}, printable(name)),
      reason ? make("p", { class: "bad" }, `${printable(reason)}. The lines and what they hold are known all the same.`) : null,
      text && beyond.length ? make("p", { class: "bad" }, "The file here is shorter than the one that was compiled: it is another version.") : null,
      make("table", { class: "source" },
        make("thead", {}, make("tr", {}, ...["Itself", "Through it", "Line", ""].map((title, i) => make("th", { class: i < 3 ? "number" : "", scope: "col" }, title)))),
        make("tbody", {}, ...[...numbers, ...beyond].map(row))),
    ].filter(Boolean);
  }
}

function renderSource(app, main) {
  app.sourcePage = app.sourcePage || new SourcePage(app);
  main.append(app.sourcePage.element);
  app.sourcePage.show();
}
