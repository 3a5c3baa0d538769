// How large blocks are, by powers of two: measured at the end of our recordings, else the
// mean size of a stack's blocks.

// As the recorder has counted them; the holders are stacks. Empty: it has not.
function measuredSizes({ report, heap, moment }, kind) {
  if (moment !== heap.end || moment.isPeak) return [];
  const isOf = (row) => row.dump_id === moment.dump.id && row.kind === kind;
  const rows = report.histogram.filter(isOf).map((row) => ({
    power: Math.floor(Math.log2(Math.max(row.low, 1))), bytes: row.size, objects: row.count,
    error: Math.sqrt(row.variance), holders: new Map(), low: row.low }));
  for (const { low, size, stack } of report.size_holders.filter(isOf)) {
    const row = rows.find((one) => one.low === low);
    const group = report.functions.groups[report.functions.rowOf(holderOf(stack, report.functions))];
    if (row && group > LEFT_OUT_FUNCTION) row.holders.set(group, (row.holders.get(group) || 0) + size);
  }
  return rows.sort((a, b) => a.power - b.power);
}

// By power of two, the smallest first: bytes, objects, and who holds them (by group of
// functions, allocators and containers left out). `views`: which bytes, which objects.
function sumBySize(tree, functions, [bytesView, objectsView]) {
  const bytes = tree.own(bytesView);
  const objects = tree.own(objectsView);
  const holders = [0];  // by depth, of the stack at hand
  const rows = new Map();
  for (let node = 1; node < tree.count; ++node) {
    const depth = tree.depths[node];
    const isAllocator = functions.isAllocator(tree.functions[node]) && depth > 1;
    holders[depth] = isAllocator ? holders[depth - 1] : functions.groups[tree.functions[node]];
    if (bytes[node] <= 0 || objects[node] <= 0) continue;
    const power = Math.max(0, Math.floor(Math.log2(bytes[node] / objects[node])));
    const row = rows.get(power) || { power, bytes: 0, objects: 0, holders: new Map() };
    row.bytes += bytes[node];
    row.objects += objects[node];
    row.holders.set(holders[depth], (row.holders.get(holders[depth]) || 0) + bytes[node]);
    rows.set(power, row);
  }
  return [...rows.values()].sort((a, b) => a.power - b.power);
}

function renderSizes(app, main) {
  const { report: { functions }, moment, view } = app;
  const isAllocated = view.key.startsWith("alloc");
  const views = isAllocated ? ["alloc_space", "alloc_objects"] : ["space", "objects"];
  const measured = measuredSizes(app, isAllocated ? "allocated_size" : "live_size");
  const rows = measured.length ? measured
    : app.remember(`sizes ${moment.index} ${views[0]}`, () => sumBySize(moment.tree, functions, views));
  if (rows.length === 0) {
    main.append(emptyCard("No sizes are known", "The file tells how many bytes, but not in how many objects."));
    return;
  }
  const { unit } = view;
  const [all, most] = [rows.reduce((sum, row) => sum + row[unit], 0), largest(rows.map((row) => row[unit]))];
  const link = ([group, value]) => [app.linkTo(group), make("span", { class: "quiet" }, ` ${formatBytes(value)}  `)];
  if (app.unfiltered()) main.append(quiet(app.unfiltered()));
  main.append(
    quiet(measured.length
      ? `${view.title}, ${moment.title}, by the size that was asked for.`
      : `${view.title}, ${moment.title}, by the mean size of a stack's blocks: ${moment.tid ? "sizes as measured are here of all threads together, and one thread"
        : "sizes are measured at the end of a recording alone, and all else"} ` +
        "has sums of stacks: one that allocates small and large blocks is in one row."),
    table(["Blocks of", "", "Share", "Bytes", "Objects", "Mostly of"], rows.map((row) => [
      formatRange(row.power && 2 ** row.power, 2 ** (row.power + 1), formatBytes), shareBar(row[unit] / most), formatShare(row[unit], all), figure(row.bytes, "bytes"),
      figure(row.objects, "objects", row.error ? " " + formatError(row.error, row.objects, "objects") : ""),
      make("td", {}, ...[...row.holders].sort((a, b) => b[1] - a[1]).slice(0, 3).flatMap(link))]), { numbers: [0, 2, 3, 4], className: "sizes" }));
}
