// Two moments, of one heap or of two: what grew and what shrank from A to B.

// What nodes of a moment hold and the variance of that, with filters: a tree with the columns by
// which filters keep a node, held, variance.
function filteredSide({ tree }, view, hasErrors, { filters, functions }) {
  const held = tree.own(view);
  const variances = hasErrors ? tree.ownErrors().map((error) => error ** 2) : new Float64Array(tree.count);
  if (filters.length === 0) return { tree, held, variances };
  const weights = held.map((value, node) => Math.abs(value) + variances[node]);
  const whole = Object.assign(new Tree(tree.depths, tree.functions, weights), { columns: [weights, held, variances] });
  const left = filtered(whole, filters, functions);
  return { tree: left, held: left.columns[1], variances: left.columns[2] };
}

class Comparison {
  constructor(app, a, b) {
    const { functions } = app.report;
    const { view, filters } = app.state;
    this.hasErrors = view === "space" && a.tree.about.has_errors && b.tree.about.has_errors;
    const sides = [a, b].map((moment) => filteredSide(moment, view, this.hasErrors, { filters, functions }));
    const counts = sides.map((side) => side.tree.count);
    const isAlike = a.heap === b.heap;  // of others little may be the same
    const maker = new TreeMaker(isAlike ? largest(counts) : counts[0] + counts[1], { columns: 3 });
    sides.forEach(({ tree, held, variances }, i) => maker.addTree(tree, functions.alike(), [[i, held], [2, variances]]));
    this.rows = this.sumByFunction(maker, functions);
    const [heldByA, heldByB] = maker.columns;
    const changes = heldByA.map((value, node) => Math.abs(heldByB[node] - value));
    maker.sumCallees();
    this.totals = [heldByA[0], heldByB[0]];
    this.variance = maker.columns[2][0];
    this.tree = maker.finish(changes);
    [this.a, this.b, this.variances] = this.tree.columns;  // with callees
  }

  // Half of a 95 % interval.
  static noise(variance) {
    return 1.96 * Math.sqrt(variance);
  }

  isNoise(change, variance) {
    return this.hasErrors && Math.abs(change) <= Comparison.noise(variance);
  }

  // Of functions that hold more or less: all of A and of B.
  sumByFunction({ count, functions: made, columns }, functions) {
    const sums = columns.map(() => new Float64Array(functions.count));
    for (let node = 1; node < count; ++node) {
      const fn = functions.groups[made[node]];
      for (let i = 0; i < sums.length; ++i) sums[i][fn] += columns[i][node];
    }
    const rows = [];
    sums[0].forEach((a, fn) => sums[1][fn] !== a && rows.push({ function: fn, a, b: sums[1][fn], variance: sums[2][fn] }));
    return rows.sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a));
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
// heaps of the first and the last file, else the first dump of the heap that is shown at
// which something was live, or its peak, and its end.
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
  const first = heap.moments.find((moment) => moment !== heap.end && !moment.isPeak && app.totalOf(moment, "space") > 0);
  return [first || heap.peak || heap.end, heap.end];
}

// By file, the largest heaps first, in the order of time; threads come behind the end, which is theirs.
function momentsInOrder(app) {
  const heaps = app.heaps.map((heap, at) => ({ heap, at })).sort((a, b) => app.fileOf(a.heap) - app.fileOf(b.heap) || a.at - b.at);
  return heaps.flatMap(({ heap }) => [...heap.moments, ...heap.threads]);
}

// "after.pb.gz: server (pid 7), libc.malloc, end": what of it is needed to tell it from others.
function momentTitle(app, moment) {
  const { heap } = moment;
  const process = app.report.processById.get(heap.upid) || {};
  const where = [
    app.report.files.length > 1 ? cut(app.report.files[app.fileOf(heap)] || "", 80) + ":" : "",
    app.heaps.length > 1 ? `${processTitle(process)}, ${cut(heap.name, 60)},` : "",
  ];
  return [...where, moment.title].filter(Boolean).join(" ");
}

function momentChooser(app, side, chosen, change) {
  return make("label", {}, make("b", {}, side + " "), chooser("Moment " + side, momentsInOrder(app), chosen,
    (moment) => `${momentTitle(app, moment)}: ${formatValue(app.totalOf(moment, app.state.view), app.view.unit)}`, (moment) => change(moment.index)));
}

const MOST_CHANGES = 250;  // rows

function changeTable(app, comparison) {
  const { unit } = app.view;
  const { rows } = comparison;
  const shown = rows.slice(0, MOST_CHANGES);
  const isNoise = (row) => comparison.isNoise(row.b - row.a, row.variance);
  return table(["B − A", "±", "A", "B", "Function", "Module"], shown.map((row) => [
    make("td", { class: "number", title: formatExactly(row.b - row.a, unit) }, formatChange(row.b - row.a, unit)),
    comparison.hasErrors ? (isNoise(row) ? "noise, " : "") + formatValue(Comparison.noise(row.variance), unit) : "?",
    figure(row.a, unit), figure(row.b, unit), app.linkTo(row.function), app.moduleCell(row.function)]),
  { numbers: [0, 1, 2, 3], className: "changes", rowAt: (at) => ({ class: isNoise(shown[at]) ? "noise" : "" }) });
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
      quiet(a === b ? "Both are the same moment. Choose another one, or make a page of two files: heap_profile report BEFORE AFTER."
        : "▲ and orange: more in B. ▼ and blue: less in B. " + (comparison.hasErrors
          ? "Grey: changes within the sampling error (95 %)." : "The sampling error of these figures is not known.")),
      filterBar(app)));
  if (comparison.rows.length === 0) {
    main.append(emptyCard("Nothing changed",
      `Every function holds as much in B as in A, by ${view.title.toLowerCase()}${state.filters.length ? " and with these filters" : ""}.`));
    return;
  }
  const graph = app.changeGraph;
  graph.show(comparison.tree, view.unit, app.palette, state.zoom, comparison.style(view.unit, app.report.functions));
  fitTo(graph, 340);
  fill(main, card("Where it changed: boxes are as wide as what grew and what shrank in them, together", graph.element),
    changeTable(app, comparison), moreRows(comparison.rows.length, MOST_CHANGES, "more functions"));
}
