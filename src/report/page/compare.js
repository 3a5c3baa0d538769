// Two moments, of one heap or of two: what grew and what shrank from A to B.

// A tree's nodes and columns in a new one whose widths are `weights`.
function reweighted(tree, weights, columns) {
  const maker = new TreeMaker(tree.count, { columns: columns.length + 1 });
  const made = new Int32Array(tree.count);
  for (let node = 1; node < tree.count; ++node) {
    made[node] = maker.callee(made[tree.parents[node]], tree.functions[node]);
    [weights, ...columns].forEach((column, i) => maker.add(made[node], column[node], i));
  }
  return maker.finish();
}

// Columns: all of both, A, B, and the variance of their difference (0 where it is not known).
function pairOf(a, b, view, functions) {
  const hasErrors = view === "space" && a.about.has_errors && b.about.has_errors;
  const parts = [a, b].map((tree, i) => {
    const own = tree.own(view);
    const figures = [[0, own.map(Math.abs)], [1 + i, own]];
    if (hasErrors) figures.push([3, tree.ownErrors().map((error) => error ** 2)]);
    return { tree, figures };
  });
  return { tree: unionTree(parts, 4, functions.alike()), hasErrors };
}

// With what is below: by node.
function totalsOf(tree, own) {
  const totals = own.slice();
  for (let node = tree.count - 1; node > 0; --node) totals[tree.parents[node]] += totals[node];
  return totals;
}

class Comparison {
  constructor(app, a, b) {
    const { functions } = app.report;
    const { tree, hasErrors } = pairOf(a.tree, b.tree, app.state.view, functions);
    const left = filtered(tree, app.state.filters, functions);
    const [, ownA, ownB, variances] = left.columns;
    this.hasErrors = hasErrors;
    this.tree = reweighted(left, ownA.map((value, node) => Math.abs(ownB[node] - value)), [ownA, ownB, variances]);
    [this.a, this.b, this.variances] = this.tree.columns.slice(1).map((column) => totalsOf(this.tree, column));
    const sum = (column) => column.reduce((all, value) => all + value, 0);
    this.totals = [sum(ownA), sum(ownB)];
    this.variance = sum(variances);
    this.rows = this.sumByFunction(functions);
  }

  // Half of a 95 % interval.
  static noise(variance) {
    return 1.96 * Math.sqrt(variance);
  }

  isNoise(change, variance) {
    return this.hasErrors && Math.abs(change) <= Comparison.noise(variance);
  }

  sumByFunction(functions) {
    const rows = new Map();
    const [, ownA, ownB, variances] = this.tree.columns;
    for (let node = 1; node < this.tree.count; ++node) {
      if (ownA[node] === ownB[node]) continue;
      const fn = functions.groups[this.tree.functions[node]];
      const row = rows.get(fn) || { function: fn, a: 0, b: 0, variance: 0 };
      row.a += ownA[node];
      row.b += ownB[node];
      row.variance += variances[node];
      rows.set(fn, row);
    }
    return [...rows.values()].filter((row) => row.a !== row.b).sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a));
  }

  // How a graph shows a node.
  style(unit, functions) {
    const change = (node) => this.b[node] - this.a[node];
    return {
      color: (node) => {
        if (this.isNoise(change(node), this.variances[node]) || change(node) === 0) return SAME;
        const isMuch = Math.abs(change(node)) * 2 >= this.tree.totals[node];
        return change(node) > 0 ? (isMuch ? GREW : GREW_PARTLY) : (isMuch ? SHRANK : SHRANK_PARTLY);
      },
      text: (node) => `${formatChange(change(node), unit)} ${functions.name(this.tree.functions[node])}`,
      describe: (node) => [
        make("div", { class: "tip-name" }, cut(functions.name(this.tree.functions[node]), 600)),
        make("div", {}, "B − A ", make("b", {}, formatChange(change(node), unit)),
          this.isNoise(change(node), this.variances[node]) ? ", within the sampling error" : ""),
        make("div", {}, `A ${formatValue(this.a[node], unit)} (${formatExactly(this.a[node], unit)})`),
        make("div", {}, `B ${formatValue(this.b[node], unit)} (${formatExactly(this.b[node], unit)})`),
      ],
    };
  }
}

// "▲ +1.20 MiB": never by colour alone.
function formatChange(change, unit) {
  return (change > 0 ? "▲ +" : change < 0 ? "▼ −" : "= ") + formatValue(Math.abs(change), unit);
}

// Which moments of the report to compare unless somebody says so: the ends of the largest
// heaps of the first and the last file, else the first moment and the end of the heap that
// is shown.
function usualPair(app) {
  const heap = app.allMoments[app.state.moment]?.heap || app.heaps[0];
  if (app.report.files.length > 1) {
    const largestOf = (file) => {  // heaps are in the order of their sizes
      const heaps = app.heaps.filter((one) => app.fileOf(one) === file);
      return heaps.find((one) => one.name === heap.name) || heaps[0];
    };
    const [first, last] = [largestOf(0), largestOf(app.report.files.length - 1)];
    if (first && last) return [first.end, last.end];
  }
  const first = heap.moments.find((moment) => moment !== heap.end && !moment.isPeak) || heap.peak || heap.end;
  return first === heap.end && heap.peak ? [heap.peak, heap.end] : [first, heap.end];
}

// "after.pb.gz: server (pid 7), libc.malloc, end": what of it is needed to tell it from others.
function momentTitle(app, moment) {
  const { heap } = moment;
  const process = app.report.processById.get(heap.upid) || {};
  const where = [
    app.report.files.length > 1 ? cut(app.report.files[app.fileOf(heap)] || "", 80) + ":" : "",
    app.heaps.length > 1 ? `${cut(process.name || process.cmdline || "process", 50)}${process.pid > 0 ? ` (pid ${process.pid})` : ""}, ${cut(heap.name, 60)},` : "",
  ];
  return [...where, moment.title].filter(Boolean).join(" ");
}

function momentChooser(app, side, chosen, change) {
  return make("label", {}, make("b", {}, side + " "), make("select", { "aria-label": "Moment " + side, onchange: (event) => change(Number(event.target.value)) },
    ...app.allMoments.map((moment) => make("option", { value: String(moment.index), selected: moment === chosen },
      `${momentTitle(app, moment)}: ${formatValue(app.totalOf(moment, app.state.view), app.view.unit)}`))));
}

const MOST_CHANGES = 250;  // rows

function changeTable(app, comparison) {
  const { functions } = app.report;
  const { unit } = app.view;
  const { rows } = comparison;
  return make("table", { class: "changes" },
    make("thead", {}, make("tr", {}, ...["B − A", "±", "A", "B", "Function", "Module"].map((title, i) => make("th", { class: i < 4 ? "number" : "", scope: "col" }, title)))),
    make("tbody", {}, ...rows.slice(0, MOST_CHANGES).map((row) => {
      const isNoise = comparison.isNoise(row.b - row.a, row.variance);
      return make("tr", { class: isNoise ? "noise" : "" },
        make("td", { class: "number", title: formatExactly(row.b - row.a, unit) }, formatChange(row.b - row.a, unit)),
        make("td", { class: "number quiet" }, comparison.hasErrors ? (isNoise ? "noise, " : "") + formatValue(Comparison.noise(row.variance), unit) : "?"),
        make("td", { class: "number" }, formatValue(row.a, unit)),
        make("td", { class: "number" }, formatValue(row.b, unit)),
        make("td", {}, button(cut(functions.name(row.function), 240), { class: "link", title: "Callers and callees, in B" },
          () => app.set({ page: "callers", pivot: row.function }))),
        make("td", { class: "quiet" }, cut(functions.moduleName(row.function), 60)));
    })));
}

// Of the moments that the state names.
function comparisonOf(app) {
  const { base, moment, view, filters } = app.state;
  return app.remember(["compare", base, moment, view, JSON.stringify(filters)].join(" "),
    () => new Comparison(app, app.allMoments[base], app.allMoments[moment]));
}

function renderCompare(app, main) {
  const { state, view, allMoments } = app;
  const [a, b] = [allMoments[state.base], allMoments[state.moment]];
  const comparison = comparisonOf(app);
  const [inA, inB] = comparison.totals;
  const change = inB - inA;
  main.append(
    make("section", { class: "card" },
      make("div", { class: "toolbar" },
        momentChooser(app, "A", a, (base) => app.set({ base, zoom: 0 })),
        momentChooser(app, "B", b, (moment) => app.set({ moment, zoom: 0 })),
        button("Swap A and B", {}, () => app.set({ base: state.moment, moment: state.base, zoom: 0 }))),
      make("p", { id: "change", "data-value": String(change) }, make("b", {}, `B − A = ${formatChange(change, view.unit)}`),
        `${inA > 0 ? ` (${formatShare(change, inA)} of A)` : ""}: from ${formatValue(inA, view.unit)} to ${formatValue(inB, view.unit)} ${view.title.toLowerCase()}`,
        comparison.isNoise(change, comparison.variance) && change !== 0 ? ", within the sampling error" : ""),
      make("p", { class: "quiet" }, a === b ? "Both are the same moment. Choose another one, or make a page of two files: heap_profile report BEFORE AFTER."
        : "▲ and orange: more in B. ▼ and blue: less in B. " + (comparison.hasErrors
          ? "Grey: changes within the sampling error (95 %)." : "The sampling error of these figures is not known.")),
      make("div", { class: "toolbar" }, ...chipsOf(app))));
  if (comparison.rows.length === 0) {
    main.append(make("section", { class: "card empty", id: "empty" }, make("h2", {}, "Nothing changed"),
      make("p", {}, `Every function holds as much in B as in A, by ${view.title.toLowerCase()}${state.filters.length ? " and with these filters" : ""}.`)));
    return;
  }
  const graph = app.changeGraph;
  graph.show(comparison.tree, view.unit, app.palette, state.zoom, comparison.style(view.unit, app.report.functions));
  fitTo(graph, 340);
  main.append(
    make("section", { class: "card" }, make("h2", {}, "Where it changed: boxes are as wide as what grew and what shrank in them, together"), graph.element),
    changeTable(app, comparison),
    moreRows(comparison.rows.length, MOST_CHANGES, "more functions") ?? "");
}
