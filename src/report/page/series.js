// Memory over time by function: who holds it at each dump that the report has.

const MOST_SERIES = 8;

// Others are the last one.
const seriesColor = (palette, i) => (i < MOST_SERIES ? palette.boxes[(i * 5) % HUES] : palette.small);
const seriesName = (i) => (i < MOST_SERIES ? String(i + 1) : "…");

// What functions hold themselves at each of the moments, with filters, those with most at any of them first; what
// all others hold is the last one, of function ROOT_FUNCTION.
function seriesOf(app, moments) {
  const { report: { functions }, state: { view, filters } } = app;
  const sums = moments.map(({ tree }) => {
    const own = new Float64Array(functions.count);
    const left = filtered(new Tree(tree.depths, tree.functions, tree.own(view)), filters, functions);
    for (let node = 1; node < left.count; ++node) own[functions.groups[left.functions[node]]] += left.own[node];
    return own.map((value) => Math.max(value, 0));
  });
  const most = sums[0].map((_, group) => largest(sums.map((own) => own[group])));
  const groups = [...most.keys()].filter((group) => most[group] > 0).sort((a, b) => most[b] - most[a]);
  const valuesOf = (some) => sums.map((own) => some.reduce((sum, group) => sum + own[group], 0));
  const named = groups.filter((group) => group > LEFT_OUT_FUNCTION).slice(0, MOST_SERIES);
  const series = named.map((group) => ({ group, values: valuesOf([group]) }));
  const others = groups.filter((group) => !named.includes(group));
  if (others.length) series.push({ group: ROOT_FUNCTION, values: valuesOf(others) });
  return { series, totals: valuesOf(groups), isCut: most[LEFT_OUT_FUNCTION] > 0 };
}

// Dumps whose call trees the report lacks; "": none.
function lackingTrees({ report, heap }) {
  const dumps = report.dumps.filter((dump) => dump.upid === heap.upid && dump.heap_name === heap.name).length;
  const trees = heap.moments.filter(({ tree }) => !tree.about.is_peak).length;
  return dumps > trees ? `${countedExactly(dumps - trees, "more dump has", "more dumps have")} no call tree here: heap_profile query has all.` : "";
}

// What gives more call trees of dumps.
const moreTrees = (app) => lackingTrees(app) || "Record with heap_profile -c 1000 for a dump every second.";

function seriesCard(app) {
  const { view, heap, palette, seriesView, timelineView } = app;
  const title = view.title + " by function";
  // Of the peak, only what was live is known.
  const moments = heap.moments.filter(({ tree }) => !tree.about.is_peak || !view.key.startsWith("alloc"));
  if (moments.length < 2)
    return card(title, quiet("This takes call trees of two dumps, and the report has one of this heap. " + moreTrees(app)));
  const { series, totals, isCut } = app.remember(["series", heap.end.index, view.key, JSON.stringify(app.state.filters)].join(" "), () => seriesOf(app, moments));
  const points = moments.map(({ time, dump, isPeak }, i) => ({ time, value: totals[i], dump: dump.id, isPeak }));
  seriesView.show({ points, others: [], resident: [], areas: series.map((one) => one.values), unit: view.unit }, palette, timelineView.isChosen, timelineView.hasTree);
  const swatch = (i) => {
    const cell = make("td", null, seriesName(i));
    cell.style.background = seriesColor(palette, i);
    return cell;
  };
  const ends = [0, moments.length - 1];
  return card(title, filterBar(app), seriesView.element,
    isCut ? quiet("Where a tree is cut, its smallest callees are among all others: what holds little may seem to shrink.") : null,
    table(["", "Function", "By dump", ...ends.map((at) => moments[at].title)], series.map(({ group, values }, i) =>
      [swatch(i), group === ROOT_FUNCTION ? "all others" : app.linkTo(group), barsCell(values, view.unit), ...ends.map((at) => figure(values[at], view.unit))]),
    { numbers: [3, 4], className: "series" }));
}
