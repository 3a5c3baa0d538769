// What may be leaks: stacks whose memory grows from dump to dump, or is never freed.

const LEAST_DUMPS = 3;  // that growth can be seen in
const MOST_LEAKS = 200;  // rows

// Evidence, the strongest first.
const EVIDENCE = [
  { title: "grows, nothing freed", text: "It never fell from one dump to the next and rose at least twice; nothing of it was freed." },
  { title: "grows", text: "It never fell from one dump to the next and rose at least twice; some of it was freed." },
  { title: "nothing freed", text: "Allocated and kept. What a program needs until its end looks like this, too." },
];

function barsCell(values, unit) {
  const most = largest(values, 1);
  const title = values.map((value) => formatValue(value, unit)).join(", ");
  return make("td", { class: "bars", "aria-label": title, title },
    values.map((value) => "▁▂▃▄▅▆▇█"[Math.max(0, Math.min(7, Math.floor((8 * value) / most)))]).join(""));
}

// The number of its evidence; -1: there is none.
function evidenceOf({ series, live, allocated }, tellsFrees) {
  let rises = 0;
  for (let i = 1; i < series.length; ++i) {
    if (series[i] < series[i - 1]) rises = -Infinity;
    else if (series[i] > series[i - 1]) ++rises;
  }
  const isGrowing = series.length >= LEAST_DUMPS && rises >= 2;
  const isKept = tellsFrees && live >= allocated;
  return isGrowing ? (isKept ? 0 : 1) : isKept ? 2 : -1;
}

// Stacks with memory at the end of a heap, those with the strongest evidence first.
function findLeaks(app, heap) {
  const { functions } = app.report;
  const moments = heap.moments.filter((moment) => !moment.isPeak || moment === heap.end).sort((a, b) => byTime(a.dump, b.dump));
  // Filters may put into a caller what was freed in a container's function: nodes are kept by the first
  // column, not by what is live. Then live and allocated at the end, the variance, and live bytes by moment.
  const [KEPT, LIVE, ALLOCATED, VARIANCE, SERIES] = [0, 1, 2, 3, 4];
  const maker = new TreeMaker(largest(moments.map((moment) => moment.tree.count)), { columns: SERIES + moments.length });
  moments.forEach(({ tree }, i) => {
    const live = tree.own("space");
    const figures = [[KEPT, live.map(Math.abs)], [SERIES + i, live]];
    if (moments[i] === heap.end) {
      const allocated = tree.own("alloc_space");
      figures.push([KEPT, allocated.map(Math.abs)], [LIVE, live], [ALLOCATED, allocated]);
      if (tree.about.has_errors) figures.push([VARIANCE, tree.ownErrors().map((error) => error ** 2)]);
    }
    maker.addTree(tree, functions.groups, figures);
  });
  const tree = filtered(maker.finish(), app.state.filters, functions);
  const [, lives, allocations, variances, ...byMoment] = tree.columns;
  const sumOf = (key) => heap.end.tree.own(key).reduce((sum, value) => sum + value, 0);  // a dump's own live size is within limits
  // In other tools' files what was allocated may be of a part of the time.
  const isPartial = allocations.some((allocated, node) => lives[node] > allocated);
  const tellsFrees = !isPartial && sumOf("alloc_space") > sumOf("space");
  const rows = [];
  for (let node = 1; node < tree.count; ++node) {
    const live = lives[node];
    if (live <= 0) continue;
    const series = byMoment.map((column) => column[node]);
    const row = { node, series, live, allocated: allocations[node], variance: variances[node], growth: live - series[0] };
    row.evidence = evidenceOf(row, tellsFrees);
    if (row.evidence >= 0) rows.push(row);
  }
  rows.sort((a, b) => a.evidence - b.evidence || (a.evidence < 2 ? b.growth - a.growth : 0) || b.live - a.live);
  return { tree, rows, moments, tellsFrees, live: lives.reduce((sum, value) => sum + value, 0) };
}

function leakRow(app, leaks, row) {
  const { functions } = app.report;
  const stack = leaks.tree.pathOf(row.node).reverse().map((node) => leaks.tree.functions[node]);
  return [
    make("span", { title: EVIDENCE[row.evidence].text }, EVIDENCE[row.evidence].title),
    figure(row.live, "bytes", make("span", { class: "quiet" }, " " + formatError(Math.sqrt(row.variance), row.live))),
    make("td", { class: "number", title: formatExactly(row.growth, "bytes") }, leaks.moments.length > 1 ? formatChange(row.growth, "bytes") : "?"),
    leaks.moments.length > 1 ? barsCell(row.series, "bytes") : "",
    leaks.tellsFrees ? figure(Math.max(0, row.allocated - row.live), "bytes") : "?",
    make("td", {}, app.linkTo(stack[0], { view: "space", moment: app.heap.end.index }),
      make("div", { class: "quiet" }, cut(stack.slice(1, 6).map((fn) => "← " + cut(functions.name(fn), 60)).join(" "), 330)))];
}

function renderLeaks(app, main) {
  if (!isTold(app.heap.end, VIEWS[0])) {
    main.append(emptyCard("The file does not tell what is live"));
    return;
  }
  const leaks = app.remember(`leaks ${app.heap.upid} ${app.heap.name} ${JSON.stringify(app.state.filters)}`, () => findLeaks(app, app.heap));
  const { rows, moments } = leaks;
  const held = rows.reduce((sum, row) => sum + row.live, 0);
  main.append(
    card("Stacks that grow or keep what they allocate",
      make("p", { id: "leaks" }, rows.length === 0 ? "There is none."
        : `${countedExactly(rows.length, "stack holds", "stacks hold")} ${formatBytes(held)} at the end, ${formatShare(held, leaks.live)} of what is live then. ` +
          "This is evidence, not proof: the program may still need it."),
      moments.length < LEAST_DUMPS ? quiet(`Growth is seen in ${LEAST_DUMPS} dumps or more, and the report has ${moments.length} of this heap. ` + moreTrees(app))
        : quiet(`In ${moments.length} dumps, from ${moments[0].title} to ${moments[moments.length - 1].title}. ${lackingTrees(app)}`),
      leaks.tellsFrees ? null : quiet("Nothing was freed, or the file does not tell: not to be freed is no evidence here."),
      filterBar(app)));
  if (rows.length === 0) return;
  fill(main, table(["Evidence", "Live at the end", "Growth", "By dump", "Freed", "Allocated by"],
    rows.slice(0, MOST_LEAKS).map((row) => leakRow(app, leaks, row)), { numbers: [1, 2, 4], className: "leaks" }), moreRows(rows.length, MOST_LEAKS));
}
