// The app: what is chosen, what follows from that, the bar above all pages, and keys.

const PEAK_FIRST = 1.2;  // a peak this many times the end is shown first
const MERGE_NODES = 150000;  // larger trees are shown as they are at first: that is faster
const INVERT_SHARE = 1 / 4000;
const MORE_MOMENTS_WIDTH = 64;  // px
const MOST_REMEMBERED = 6;  // the timeline, who holds it, and four trees: a large one has 40 MB

class App {
  constructor(report) {
    this.report = report;
    this.pages = PAGES.filter(({ needs }) => !needs || needs(report));
    this.totals = new Map();
    this.cache = new Map();
    this.heaps = this.findHeaps();
    this.flame = new FlameGraph(report.functions, {
      onZoom: (node) => this.set(this.state.page === "flame" ? { zoom: node } : { page: "flame", zoom: node }),
      onSelect: () => this.showSelection(),
      onMenu: (node, x, y) => this.showMenu(node, x, y),
      more: (node) => this.growthText(node),
    });
    this.graphsAround = this.makeGraphsAround();
    this.changeGraph = new FlameGraph(report.functions, {
      onZoom: (node) => this.set({ zoom: node }),
      onSelect: () => {},
      onMenu: () => {},
    }, { title: "Changes" });
    const timeline = () => new Timeline((point) => this.pick(point), (from, to) =>
      this.set({ page: "compare", base: this.momentAt(from).index, moment: this.momentAt(to).index, zoom: 0 }));
    this.timelineView = timeline();
    this.seriesView = timeline();
    this.search = this.makeSearch();
    this.root = document.getElementById("app");
    this.state = this.readState();
    addEventListener("resize", () => this.fitMoments());
    addEventListener("hashchange", () => this.follow());
    addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.render());
  }

  // Of the page of callers and callees: a function that is clicked is the next one shown.
  makeGraphsAround() {
    const graph = (options) => {
      const made = new FlameGraph(this.report.functions, {
        onZoom: (node) => this.set({ pivot: this.report.functions.groups[made.tree.functions[node]] }),
        onSelect: () => {},
        onMenu: () => {},
      }, { ...options, whole: "the function's" });
      return made;
    };
    return { callers: graph({ isUpward: true, title: "Callers" }), callees: graph({ title: "Callees" }) };
  }

  // The graph that keys are about.
  graph() {
    if (this.state.page === "compare") return this.changeGraph;
    if (this.state.page !== "callers") return this.flame;
    const { callers, callees } = this.graphsAround;
    return document.activeElement === callers.element ? callers : callees;
  }

  // ---- What there is.

  // Heaps with their moments in the order of time, the one with most memory first.
  findHeaps() {
    const heaps = new Map();
    this.allMoments = this.report.trees.map((tree, index) => {
      const dump = this.report.dumpById.get(tree.about.dump);
      return { index, tree, dump, tid: tree.about.thread, isPeak: tree.about.is_peak || dump.is_peak === 1 };
    });
    for (const moment of this.allMoments) {
      const key = moment.dump.upid + " " + moment.dump.heap_name;
      if (!heaps.has(key)) heaps.set(key, { upid: moment.dump.upid, name: moment.dump.heap_name, moments: [], threads: [] });
      heaps.get(key)[moment.tid ? "threads" : "moments"].push(moment);
      moment.heap = heaps.get(key);
    }
    for (const heap of heaps.values()) this.nameMoments(heap);
    return [...heaps.values()].sort((a, b) => this.weightOf(b) - this.weightOf(a));
  }

  nameMoments(heap) {
    const timeline = timelineOf(this.report, heap.upid, heap.name);
    const last = heap.moments.filter((moment) => !moment.tree.about.is_peak).sort((a, b) => byTime(a.dump, b.dump)).pop();
    heap.end = last || heap.moments[0];
    heap.peak = heap.moments.find((moment) => moment.isPeak);
    for (const moment of heap.moments) {
      const ts = moment.tree.about.is_peak ? moment.dump.peak_ts ?? moment.dump.ts : moment.dump.ts;
      moment.time = timeline.seconds(ts);
      moment.title = moment.isPeak ? "peak" : moment === heap.end ? "end" : moment.dump.label || formatSeconds(moment.time);
    }
    for (const moment of heap.threads) {
      const row = this.report.threads.find((one) => one.dump_id === moment.dump.id && one.tid === moment.tid);
      moment.title = `thread ${cut(row?.thread_name || "(unknown)", 120)} ${moment.tid}`;
    }
    heap.moments.sort((a, b) => a.time - b.time || Number(b.isPeak) - Number(a.isPeak) || a.dump.id - b.dump.id);
  }

  // The number of the file that it is of.
  fileOf(heap) {
    return this.report.fileEnds.findIndex((end) => heap.upid < end);
  }

  weightOf(heap) {
    return largest(heap.moments.map((moment) => this.totalOf(moment, "space") || this.totalOf(moment, "alloc_space") / 1e6));
  }

  totalOf(moment, key) {
    const name = moment.index + " " + key;
    if (!this.totals.has(name)) {
      const view = VIEWS.find((one) => one.key === key);
      const total = moment.tree.about.is_peak || moment.tid
        ? moment.tree.own(key).reduce((sum, value) => sum + value, 0)
        : moment.dump[view.column];  // null: the file does not tell
      this.totals.set(name, total);
    }
    return this.totals.get(name);
  }

  // The moment that says most, and why it is that one.
  usualMoment(heap) {
    const { end, peak } = heap;
    if (!peak || peak === end) return [end, ""];
    const [atPeak, atEnd] = [this.totalOf(peak, "space"), this.totalOf(end, "space")];
    return atPeak >= PEAK_FIRST * atEnd
      ? [peak, `The peak is shown first: ${atEnd > 0 ? `it is ${threeDigits(atPeak / atEnd)} times the end` : "nothing was live at the end"}.`]
      : [end, ""];
  }

  usualFilters(moment = this.moment) {
    return moment && moment.tree.count <= MERGE_NODES ? [{ kind: "merge", text: INTERNALS, exact: false }] : [];
  }

  // ---- What is chosen.

  readState() {
    const state = stateFromHash(location.hash, this.pages);
    state.moment = state.moment < this.allMoments.length ? state.moment : -1;
    state.base = state.base < this.allMoments.length && state.moment >= 0 ? state.base : -1;
    if (!location.hash.includes("filters=") && this.heaps.length > 0) {
      const moment = this.allMoments[state.moment] || this.usualMoment(this.heaps[0])[0];
      state.filters = this.usualFilters(moment);
    }
    return state;
  }

  // Changes what is shown. Going somewhere can be undone by the back button, changing
  // how it is shown not: a place has another number in the tree of another value.
  set(change) {
    const before = this.state;
    this.state = { ...before, ...change };
    // Another tree, with other numbers.
    if ((this.state.page === "compare") !== (before.page === "compare") && !("zoom" in change)) this.state.zoom = 0;
    const isNew = (key) => this.state[key] !== before[key];
    const isJourney = isNew("page") || isNew("moment") || isNew("pivot") || isNew("at") || (isNew("zoom") && !isNew("view"));
    const hash = stateToHash(this.state);
    if (isJourney) location.hash = hash;
    else location.replace(hash);
    this.render();
  }

  showMoment(moment, change) {
    this.set({ moment: moment.index, zoom: 0, ...change });
  }

  // A function, wherever it is in the flame graph.
  showNamed(name, change) {
    this.set({ page: "flame", query: searchText(name), isInverted: false, zoom: 0, ...change });
  }

  // The stack that is zoomed stays, or as many of its functions as have memory in the view.
  setView(view) {
    if (this.state.page === "compare") return this.set({ view, zoom: 0 });
    const { groups } = this.report.functions;
    const zoom = this.heap ? this.treesOf(this.moment, { ...this.state, view }).shown.nodeLike(this.tree, this.state.zoom, groups) : 0;
    this.set({ view, zoom });
  }

  follow() {
    if (stateToHash(this.state) === location.hash) return;
    this.state = this.readState();
    this.render();
  }

  // The moment of a point of the timeline, if the report has it.
  momentAt(point) {
    const moments = point.isOther ? this.allMoments : this.moments;
    return moments.find((moment) => moment.dump.id === point.dump && moment.isPeak === point.isPeak);
  }

  pick(point) {
    const found = this.momentAt(point);
    if (found) this.showMoment(found);
  }

  // The last of them that were asked for.
  remember(name, produce) {
    const value = this.cache.has(name) ? this.cache.get(name) : produce();
    this.cache.delete(name);
    this.cache.set(name, value);
    if (this.cache.size > MOST_REMEMBERED) this.cache.delete(this.cache.keys().next().value);
    return value;
  }

  // What follows from the state.
  derive() {
    const { state, report } = this;
    if (state.page === "compare" && state.base < 0 && this.heaps.length > 0)
      [state.base, state.moment] = usualPair(this).map((moment) => moment.index);
    const heap = state.moment >= 0 ? this.allMoments[state.moment].heap : this.heaps[0];
    this.heap = heap;
    this.view = VIEWS.find((view) => view.key === state.view);
    this.palette = PALETTES[this.theme()];
    if (!heap) return;
    const [usual, why] = this.usualMoment(heap);
    this.moments = heap.moments;
    this.moment = state.moment >= 0 ? this.allMoments[state.moment] : usual;
    if (!isTold(this.moment, this.view)) this.view = VIEWS.find((view) => isTold(this.moment, view)) || this.view;
    state.view = this.view.key;
    this.explanation = this.moment === usual ? why : "";
    this.timeline = this.remember("timeline " + heap.upid + heap.name, () => timelineOf(report, heap.upid, heap.name));
    const { whole, shown } = this.treesOf(this.moment, state);
    this.wholeTree = whole;
    this.tree = shown;
    const test = state.query ? nameTest(state.query) : null;
    this.found = test ? findFunctions(this.tree, report.functions, test) : null;
    this.isBadQuery = Boolean(state.query) && !test;
    this.showFlame();
  }

  // Of a moment in a view: all of it, and what filters and direction make of that.
  treesOf({ index, tree }, { view, isInverted, filters }) {
    const { functions } = this.report;
    const name = index + " " + view;
    const whole = this.remember(name, () => new Tree(tree.depths, tree.functions, tree.own(view)));
    const shown = this.remember([name, isInverted, JSON.stringify(filters)].join(" "), () => {
      const left = filtered(whole, filters, functions);
      return isInverted ? inverted(left, functions, INVERT_SHARE) : left;
    });
    return { whole, shown };
  }

  // What has no filters says so where some are in force; those that each moment begins with need no words.
  unfiltered() {
    const usual = JSON.stringify(this.usualFilters());
    const { filters } = this.state;
    return filters.length > 0 && JSON.stringify(filters) !== usual ? "Of all stacks: filters do not count here." : "";
  }

  // What filters leave of the moment, callers first, whichever way the flame graph has it.
  filteredTree() {
    return this.treesOf(this.moment, { ...this.state, isInverted: false }).shown;
  }

  showFlame() {
    const { tree } = this.state.page === "compare" ? comparisonOf(this) : this;
    if (this.state.zoom >= tree.count) this.state.zoom = 0;
    this.flame.show(this.tree, this.view.unit, this.palette, tree === this.tree ? this.state.zoom : 0);
    this.flame.find(this.found && this.found.matches);
    this.timelineView.show(this.timeline, this.palette,
      (point) => point.dump === this.moment.dump.id && point.isPeak === this.moment.isPeak, (point) => Boolean(this.momentAt(point)));
  }

  // The group of functions whose callers and callees are shown.
  pivot() {
    const { functions } = this.report;
    const { pivot } = this.state;
    if (pivot > LEFT_OUT_FUNCTION && pivot < functions.count) return functions.groups[pivot];
    const node = this.flame.selected > 0 ? this.flame.selected : this.state.zoom;
    const isOne = (fn) => fn > LEFT_OUT_FUNCTION;  // and not many
    const topOf = (tree) => topHolders(tree, functions, 2, null).map((row) => row.function).find(isOne);
    const fn = node > 0 && isOne(this.tree.functions[node]) ? this.tree.functions[node]
      : topOf(this.filteredTree()) ?? topOf(this.wholeTree) ?? this.wholeTree.functions[1];
    return functions.groups[fn];
  }

  showCallers(node) {
    this.set({ page: "callers", pivot: this.report.functions.groups[this.tree.functions[node]] });
  }

  topHolders() {
    return this.remember("top " + this.moment.index + this.state.view, () => topHolders(this.wholeTree, this.report.functions, 10, this.errors()));
  }

  // Standard errors by node of the whole tree; null: they are not known.
  errors() {
    const { tree } = this.moment;
    return tree.about.has_errors && this.state.view === "space" ? tree.ownErrors() : null;
  }

  // Modules whose functions have no names, by what they hold.
  unnamedModules() {
    const { functions } = this.report;
    const sums = new Map();
    if (!this.wholeTree) return [];
    for (let node = 1; node < this.wholeTree.count; ++node) {
      const fn = this.wholeTree.functions[node];
      if (functions.isNamed(fn) || this.wholeTree.own[node] === 0) continue;
      const module = functions.module(fn);
      sums.set(module, (sums.get(module) || 0) + this.wholeTree.own[node]);
    }
    return [...sums].map(([module, value]) => ({ module, value })).sort((a, b) => b.value - a.value).slice(0, 20);
  }

  // What gives names to the functions of such a file.
  remedyFor(module) {
    const known = this.report.remedies.find((row) => row.upid === this.heap.upid && row.path === module);
    return known ? known.text : "install its debug symbols, or name a directory with its symbol file in PERFETTO_BINARY_PATH";
  }

  theme() {
    return this.state.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  }

  // ---- What is seen.

  render() {
    this.closeMenu();
    document.documentElement.dataset.theme = this.theme();
    this.derive();
    const focused = this.root.contains(document.activeElement) ? nameOf(document.activeElement) : "";
    const { selectionStart, selectionEnd } = this.search;
    const page = this.pages.find((one) => one.key === this.state.page);
    const main = make("main", { id: "page", class: "page-" + page.key, tabIndex: -1 });
    this.root.replaceChildren(this.header(), ...this.banner(), main);
    const isEmpty = this.heap ? page.needsMemory && this.tree.totals[0] <= 0 : page.key !== "sql";
    if (isEmpty) {
      main.append(emptyText(this));
      if (this.heap && page.key === "overview") main.prepend(tiles(this));
    } else {
      page.render(this, main);
    }
    for (const graph of [this.flame, this.changeGraph, ...Object.values(this.graphsAround)]) {
      graph.restoreScroll();
      graph.request();
    }
    this.timelineView.draw();
    this.seriesView.draw();
    this.fitMoments();
    if (focused) this.focus(focused);
    if (document.activeElement === this.search) this.search.setSelectionRange(selectionStart, selectionEnd);
  }

  // What a render has made anew, or put elsewhere, loses the focus.
  focus(name) {
    const next = [...this.root.querySelectorAll("button, input, select, textarea, [tabindex]")].find((element) => nameOf(element) === name);
    (next || document.getElementById("page")).focus({ preventScroll: true });
  }

  // To its callers and callees; what stands for many functions has none of its own.
  linkTo(fn, change = {}) {
    const { functions } = this.report;
    if (fn <= LEFT_OUT_FUNCTION) return make("span", { class: "quiet" }, functions.name(fn));
    return button(cut(functions.name(fn), 240), { class: "link", title: cut(`Callers and callees; ${functions.module(fn)}`, 240) },
      () => this.set({ page: "callers", pivot: fn, ...change }));
  }

  // The same of a name that stands in a text of stacks; of one that no tree has the name alone.
  linkToName(name, change) {
    const { functions } = this.report;
    const fn = functions.rowOf(name);
    return fn > LEFT_OUT_FUNCTION ? this.linkTo(functions.groups[fn], change) : cut(name, 240);
  }

  moduleCell(fn) {
    return make("td", { class: "quiet" }, cut(this.report.functions.moduleName(fn), 60));
  }

  header() {
    const process = this.heap && this.report.processById.get(this.heap.upid);
    const name = (process && (process.cmdline || process.name)) || this.report.files.join(", ") || "Heap profile";
    document.title = cut(name, 80) + " – heap profile";
    const tabs = make("nav", { class: "tabs", "aria-label": "Pages" }, ...this.pages.map((page) =>
      button(page.title, { "aria-current": page.key === this.state.page ? "page" : "false", "data-page": page.key }, () => this.set({ page: page.key }))));
    return make("header", {},
      make("div", { class: "bar-row" },
        make("h1", { title: cut(name, 2000) }, cut(name, 100)),
        process && process.pid > 0 ? make("span", { class: "quiet" }, "pid " + process.pid) : null,
        this.heapChooser(), make("span", { class: "spring" }), tabs,
        make("span", { class: "icons" },
          button(this.theme() === "dark" ? "☀" : "☾", { title: "Light or dark (t)", "aria-label": "Light or dark" }, () => this.toggleTheme()),
          this.heap ? button("⤓", { title: "Save as a file (x)", "aria-label": "Save as a file" }, () => showExports(this)) : null,
          button("?", { title: "Keys (?)", "aria-label": "Keys" }, () => this.showHelp()))),
      this.heap ? this.controls() : null);
  }

  // Of the end; elsewhere threads are not told apart.
  threadChooser() {
    const { threads, end } = this.heap;
    return threads.length ? chooser("Thread", [end, ...threads], this.moment,
      (moment) => (moment.tid ? `${moment.title}: ${formatBytes(this.totalOf(moment, "space"))}` : "all threads"),
      (moment) => this.showMoment(moment)) : null;
  }

  heapChooser() {
    if (this.heaps.length < 2) return this.heap ? make("span", { class: "quiet" }, "heap " + cut(this.heap.name, 60)) : null;
    return chooser("Process and heap", this.heaps, this.heap,
      (heap) => cut(`${processTitle(this.report.processById.get(heap.upid) || {})}, ${heap.name}`, 120) + ": " + formatBytes(this.totalOf(heap.end, "space")),
      (heap) => this.showMoment(this.usualMoment(heap)[0]));
  }

  // As many of the moments as there is room for, none of them cut: the chosen one, the end and the peak come
  // first, then those nearest to the chosen one. A list has the others.
  fitMoments() {
    const strip = document.querySelector(".moments");
    if (!strip) return;
    strip.querySelector("select")?.remove();
    const buttons = [...strip.children];
    for (const one of buttons) one.hidden = false;
    const widths = buttons.map((one) => one.offsetWidth);
    const chosen = this.moments.indexOf(this.moment.tid ? this.heap.end : this.moment);
    const rank = (at) => (at === chosen ? -3 : this.moments[at] === this.heap.end ? -2 : this.moments[at] === this.heap.peak ? -1 : Math.abs(at - chosen));
    let room = strip.clientWidth + 1;
    if (widths.reduce((sum, width) => sum + width - 1, 0) <= room) return;
    room -= MORE_MOMENTS_WIDTH;
    const shown = new Set();
    for (const at of [...buttons.keys()].sort((a, b) => rank(a) - rank(b) || b - a)) {
      room -= widths[at] - 1;
      if (room < 0 && shown.size > 1) break;
      shown.add(at);
    }
    buttons.forEach((one, at) => (one.hidden = !shown.has(at)));
    const others = this.moments.filter((_, at) => !shown.has(at));
    if (others.length === 0) return;
    strip.append(chooser("More moments", [null, ...others], null,
      (moment) => (moment ? `${moment.title} ${formatBytes(this.totalOf(moment, "space"))}` : `+${others.length}`),
      (moment) => moment && this.showMoment(moment)));
  }

  controls() {
    const momentButton = (moment) => fill(button("", { "aria-pressed": String(moment === this.moment), title: "Show this moment ([ and ])" },
      () => this.showMoment(moment)), make("span", {}, moment.title), " ", make("b", {}, formatBytes(this.totalOf(moment, "space"))));
    const total = this.tree.totals[0];
    return make("div", { class: "bar-row" },
      make("span", { class: "switch moments", role: "group", "aria-label": "Moment" }, ...this.moments.map(momentButton)), this.threadChooser(),
      make("span", { class: "switch", role: "group", "aria-label": "Value" }, ...VIEWS.map((view, i) => isTold(this.moment, view) &&
        button(view.title, { "aria-pressed": String(view === this.view), "data-view": view.key, title: `Key ${i + 1}` }, () => this.setView(view.key)))),
      make("output", { id: "total", title: formatExactly(total, this.view.unit), "data-value": String(total) },
        formatValue(total, this.view.unit)),
      make("span", { class: "spring" }), this.searchBox());
  }

  // One for all renders: it keeps what is typed and where. What is still being composed
  // (accents, other scripts) is not disturbed by a render.
  makeSearch() {
    const search = () => this.set({ query: this.search.value });
    return make("input", { id: "search", type: "search", placeholder: "Search: text, /regex/ ( / )",
      "aria-label": "Search functions", spellcheck: false, autocomplete: "off",
      oninput: (event) => event.isComposing || search(),
      oncompositionend: search,
      onkeydown: (event) => {
        if (event.isComposing) return;
        if (event.key === "Enter") this.nextMatch(event.shiftKey ? -1 : 1);
        if (event.key === "Escape") event.target.blur();
      } });
  }

  searchBox() {
    if (this.search.value !== this.state.query) this.search.value = this.state.query;
    this.search.setAttribute("aria-invalid", String(this.isBadQuery));
    const text = this.isBadQuery ? "no regular expression"
      : this.found ? `${formatValue(this.found.value, this.view.unit)}, ${formatShare(this.found.value, this.tree.totals[0])} in ${countedExactly(this.found.names, "function", "functions")}` : "";
    return make("span", { class: "search" }, make("output", { id: "found", class: this.isBadQuery ? "bad" : "quiet",
      "data-value": this.found ? String(this.found.value) : "" }, text), this.search);
  }

  focusSearch() {
    this.search.focus();
    this.search.setSelectionRange(this.search.value.length, this.search.value.length);
  }

  banner() {
    const bad = problemsOf(this.report).filter(([isBad]) => isBad);
    if (bad.length === 0 || this.state.page === "quality") return [];
    return [make("div", { class: "banner", role: "note" }, "⚠ " + cut(bad[0][1], 240) + (bad.length > 1 ? ` (and ${bad.length - 1} more)` : "") + " ",
      button("Data quality", { class: "link" }, () => this.set({ page: "quality" })))];
  }

  // What an answer of the server has shown.
  addWarnings(warnings) {
    const { warnings: known } = this.report;
    const more = warnings.map(printable).filter((text) => !known.includes(text));
    if (more.length === 0) return;
    known.push(...more);
    this.render();
  }

  selectionText() {
    const node = this.flame.selected >= 0 ? this.flame.selected : this.state.zoom;
    if (!this.tree || node >= this.tree.count) return "";
    const { functions } = this.report;
    const total = this.tree.totals[node];
    return `${cut(functions.name(this.tree.functions[node]), 300)}: ${formatValue(total, this.view.unit)} ` +
      `(${formatShare(total, this.tree.totals[0])}), itself ${formatValue(this.tree.own[node], this.view.unit)}` +
      (node > 0 ? this.growthText(node).replace(/^(?=.)/, "; ") : "");
  }

  // What a stack has more than at the heap's first dump; "": this is the first.
  growthText(node) {
    const first = this.moments.find((moment) => !moment.isPeak);
    if (!first || this.moments.indexOf(this.moment) <= this.moments.indexOf(first)) return "";
    const tree = this.treesOf(first, this.state).shown;
    const like = tree.nodeLike(this.tree, node, this.report.functions.groups);
    const before = tree.depths[like] === this.tree.depths[node] ? tree.totals[like] : 0;
    return `since ${first.title}: ${formatChange(this.tree.totals[node] - before, this.view.unit)}`;
  }

  showSelection() {
    const element = document.getElementById("selection");
    if (element) element.textContent = this.selectionText();
    const copy = document.getElementById("copy");
    if (copy) copy.disabled = this.flame.selected <= 0 && this.state.zoom === 0;
  }

  // ---- What can be done.

  toggleTheme() {
    this.set({ theme: this.theme() === "dark" ? "light" : "dark" });
  }

  nextMatch(step) {
    if (!this.found || this.found.nodes.length === 0) return;
    const { nodes } = this.found;
    const at = nodes.indexOf(this.flame.selected);
    const node = nodes[at < 0 && step < 0 ? nodes.length - 1 : (at + step + nodes.length) % nodes.length];
    if (!this.flame.isInZoom(node)) this.set({ zoom: 0 });
    this.goTo(node);
  }

  // Enter is about that box from now on, not about a button that was used before.
  goTo(node, graph = this.flame) {
    graph.select(node);
    graph.scrollTo(node);
    if (document.activeElement !== this.search) graph.element.focus({ preventScroll: true });
  }

  stackText(node) {
    const { functions } = this.report;
    const lines = this.tree.pathOf(node).reverse().map((at) => {
      const fn = this.tree.functions[at];
      return [functions.name(fn), functions.place(fn), functions.module(fn)].filter(Boolean).join("  ");
    });
    const total = this.tree.totals[node];
    return `${formatExactly(total, this.view.unit)} ${this.view.short} (${formatShare(total, this.tree.totals[0])})\n` + lines.join("\n") + "\n";
  }

  copyStack(node = this.flame.selected > 0 ? this.flame.selected : this.state.zoom) {
    if (node > 0) this.copy(this.stackText(node));
  }

  async copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {  // files are not always allowed to
      const area = make("textarea", { value: text, class: "offscreen" });
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  }

  addFilter(kind, node) {
    const text = this.report.functions.name(this.tree.functions[node]);
    this.set({ filters: [...this.state.filters, { kind, text, exact: true }], zoom: 0 });
  }

  showMenu(node, x, y) {
    this.closeMenu();
    const item = (text, action) => button(text, { role: "menuitem" }, () => {
      this.closeMenu();
      action();
    });
    const fn = this.tree.functions[node];
    const name = this.report.functions.name(fn);
    const filters = fn === LEFT_OUT_FUNCTION ? [] : Object.entries(FILTERS);  // many functions have no name to filter by
    this.menu = make("div", { class: "menu", role: "menu" },
      make("div", { class: "quiet" }, cut(name, 80)),
      item("Zoom", () => this.set({ page: "flame", zoom: node })),
      ...filters.map(([kind, filter]) => item(filter.menu, () => this.addFilter(kind, node))),
      ...(fn > LEFT_OUT_FUNCTION ? [item("Callers and callees", () => this.showCallers(node))] : []),
      item("Copy name", () => this.copy(name)),
      item("Copy stack", () => this.copyStack(node)));
    document.body.append(this.menu);
    this.menu.style.left = Math.max(4, Math.min(x, innerWidth - this.menu.offsetWidth - 8)) + "px";
    this.menu.style.top = Math.max(4, Math.min(y, innerHeight - this.menu.offsetHeight - 8)) + "px";
    this.menu.querySelector("button").focus();
    addEventListener("pointerdown", (event) => {
      if (this.menu && !this.menu.contains(event.target)) this.closeMenu();
    }, { once: true });
  }

  closeMenu() {
    const hadFocus = this.menu && this.menu.contains(document.activeElement);
    if (this.menu) this.menu.remove();
    this.menu = null;
    this.flame.tip.hidden = true;
    if (hadFocus) this.flame.element.focus({ preventScroll: true });
  }

  // While the menu is open, keys are about it. Enter is the focused item's own.
  menuKey(event) {
    const items = [...this.menu.querySelectorAll("button")];
    const at = items.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at < 0 ? -1 : at - 1, Home: 0, End: -1 }[event.key];
    if (next !== undefined) items[(next + items.length) % items.length].focus();
    else if (event.key === "Escape" || event.key === "Tab") this.closeMenu();
    else return;
    event.preventDefault();
  }

  showHelp() {
    const keys = [
      ["1 2 3 4", VIEWS.map((view) => view.title.toLowerCase()).join(", ")], ["[ ]", "dump before, dump after"],
      ["p e", "the peak, the end"], ["b", "top-down or bottom-up"], ["/", "search; Enter or n, N: next, previous"],
      ["← → ↑ ↓", "walk through the flame graph"], ["Enter", "zoom to the selected box"], ["Escape", "back: zoom, search"],
      ["m", "menu of the selected box: filters, copy"], ["c", "copy the selected stack"], [this.pages.map((page) => page.letter).join(" "), this.pages.map((page) => page.title).join(", ")],
      ["x", "save as a file: pprof, folded stacks, speedscope, CSV, SVG, PNG"], ["t", "light or dark"], ["?", "this list"],
    ];
    const dialog = make("dialog", { class: "help", onclose: (event) => event.target.remove() }, make("h2", {}, "Keys"),
      make("dl", {}, ...keys.flatMap(([key, text]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, text)])),
      make("p", {}, "A box is a function in a stack, as wide as the " +
        "memory that went through it; below it is what it called. Colours tell modules apart."),
      button("Close", {}, () => dialog.close()));
    document.body.append(dialog);
    dialog.showModal();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog")) return;
    if (this.menu) return this.menuKey(event);
    if (event.target.matches("input, select, textarea")) return;
    const isAlways = "t?".includes(event.key) || this.pageOf(event.key);  // without a heap there is nothing else
    const action = (this.heap || isAlways) && this.actionOf(event.key, event.target);
    if (!action) return;
    event.preventDefault();
    action();
  }

  // By its key.
  pageOf(letter) {
    return this.pages.find((page) => page.letter === letter)?.key;
  }

  // Whoever goes there by a key is in it: the next Tab leads to what it has, and arrows scroll it.
  goToPage(page) {
    this.set({ page });
    document.getElementById("page").focus({ preventScroll: true });
  }

  actionOf(key, target) {
    const page = this.pageOf(key);
    if (page === "callers" && this.flame.selected > 0 && this.state.page !== page) return () => this.showCallers(this.flame.selected);
    if (page) return () => this.goToPage(page);
    if (/^[1-4]$/.test(key)) return () => this.setView(VIEWS[Number(key) - 1].key);
    if (key === "[" || key === "]") return () => this.step(key === "]" ? 1 : -1);
    if (key.startsWith("Arrow") && ["flame", "overview", "callers", "compare"].includes(this.state.page)) return () => this.walk(key);
    if (key === "Enter" && target.closest("button")) return null;
    return {
      Escape: () => this.back(),
      Enter: () => this.graph().selected >= 0 && this.graph().handlers.onZoom(this.graph().selected),
      p: () => this.heap.peak && this.showMoment(this.heap.peak),
      e: () => this.showMoment(this.heap.end),
      b: () => this.set({ page: "flame", isInverted: !this.state.isInverted, zoom: 0 }),
      "/": () => this.focusSearch(),
      n: () => this.nextMatch(1),
      N: () => this.nextMatch(-1),
      c: () => this.copyStack(),
      m: () => this.flame.selected > 0 && this.showMenu(this.flame.selected, innerWidth / 2, innerHeight / 3),
      x: () => showExports(this),
      t: () => this.toggleTheme(),
      "?": () => this.showHelp(),
    }[key];
  }

  step(by) {
    const at = this.moments.indexOf(this.moment.tid ? this.heap.end : this.moment) + by;
    if (at >= 0 && at < this.moments.length) this.showMoment(this.moments[at]);
  }

  walk(key) {
    const graph = this.graph();
    const node = graph.neighbour(key);
    if (node >= 0 && graph.isInZoom(node)) this.goTo(node, graph);
  }

  // One step: the zoom, the search.
  back() {
    if (this.state.zoom > 0) this.set({ zoom: Math.max(0, this.graph().tree.parents[this.state.zoom]) });
    else if (this.state.query) this.set({ query: "" });
  }
}

function showFailure(error) {
  const app = document.getElementById("app");
  app.textContent = "";
  app.append(make("section", { class: "card empty" }, make("h2", {}, "The report cannot be shown"),
    make("p", {}, error.message),
    make("p", {}, error.hint || "heap_profile query FILE \"SELECT * FROM top('space', 20)\" tells who holds the memory.")));
}

// The build keeps no other names (CMakeLists.txt).
const FOR_TESTS = {
  EXPORTS, FileText, GREW, GREW_PARTLY, LEFT_OUT_FUNCTION, MOST_BYTES, SAME, SHRANK, SHRANK_PARTLY, Tree, comparisonOf, estimated, evidenceOf, findLeaks,
  formatChange, formatError, formatRange, formatSeconds, formatTime, largest, printable, problemsOf, seriesOf, showExports, textThatFits, timeScale, timelineOf,
};

async function begin() {
  const element = document.getElementById("app");
  try {
    const app = new App(await loadReport());
    Object.assign(globalThis, { heapReport: app }, FOR_TESTS);
    app.render();
    requestAnimationFrame(() => {
      performance.mark("painted");
      element.setAttribute("aria-busy", "false");
    });
  } catch (error) {
    showFailure(error);
    element.setAttribute("aria-busy", "false");
    throw error;
  }
}

begin();
