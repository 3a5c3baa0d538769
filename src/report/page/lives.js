// What nobody touches, and how long blocks live: of freed ones the lifetime, of live ones the age, and who allocates
// what the same thread frees at once. Of the heap's end, from heap_profile_histogram.

function formatTime(ns) {
  if (ns < 999.5) return Math.round(ns) + " ns";
  if (ns < 999.5e3) return threeDigits(ns / 1e3) + " µs";
  return ns < 999.5e6 ? threeDigits(ns / 1e6) + " ms" : formatSeconds(ns / 1e9);
}

// The innermost function that is no allocator; names are separated by arrows. "?": the stack is not known (null).
function holderOf(stack, functions) {
  if (!stack) return "?";
  const names = stack.split("←");
  return names.find((name) => !functions.isAllocator(functions.rowOf(name))) || names[0];
}

// What nobody has touched lately of what is live at the heap's end, in words of the terminal; null: that is not known.
function idleOf({ report, heap: { end: { dump } } }) {
  const sum = report.idle_sums.find((row) => row.dump_id === dump.id);
  if (!sum) return null;
  const live = liveOf(dump);
  const size = Math.min(sum.size, live);
  const [idle, ago] = [dump.idle_until_ts - dump.idle_ts, Math.max(0, dump.ts - dump.idle_until_ts)];
  const time = ago <= idle / 10 ? `in the last ${formatTime(idle)}` : `for ${formatTime(idle)} until ${formatTime(ago)} before the end`;
  return { live, size, time, unseen: Math.max(0, Math.min(dump.idle_unseen_size, live - size)) };
}

function idleCard(app) {
  const { report, heap: { end } } = app;
  const idle = idleOf(app);
  if (!idle)
    return !isManaged(end.dump) && end.dump.idle_unseen_size !== null ? quiet("What of it is idle is not known: there was no second look at it.") : null;
  const sums = new Map();
  for (const row of report.idle.filter((one) => one.dump_id === end.dump.id)) {
    const name = holderOf(row.stack, report.functions);
    sums.set(name, (sums.get(name) || 0) + row.size);
  }
  const rows = [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 50);
  return livesCard("idle", `Idle: ${formatBytes(idle.size)} of live ${formatBytes(idle.live)}`,
    `Not touched ${idle.time}, by whole pages. ` + (idle.unseen >= 0.5 ? `${formatBytes(idle.unseen)} could not be looked at.` : ""),
    ["Function", "Share of live", "Bytes"],
    rows.map(([name, size]) => [app.linkToName(name, { view: "space", moment: end.index }), formatShare(size, idle.live), formatBytes(size)]), 0);
}

// By function, those with most blocks first: name, blocks, bytes and the variance of blocks.
function temporaryByFunction(rows, functions) {
  const sums = new Map();
  for (const row of rows) {
    const name = holderOf(row.stack, functions);
    const sum = sums.get(name) || { name, count: 0, size: 0, variance: 0 };
    sum.count += row.count;
    sum.size += row.size;
    sum.variance += row.count_error ** 2;
    sums.set(name, sum);
  }
  return [...sums.values()].sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
}

const estimated = (count, variance) => `${formatCount(count)} ${formatError(Math.sqrt(variance), count, "objects")}`.trim();

const ratioOf = (part, whole) => (whole ? part / whole : 0);

// A card with one table; `textColumn` is the one that is no figure.
function livesCard(id, title, text, titles, rows, textColumn) {
  return Object.assign(card(title, quiet(text),
    table(titles, rows, { numbers: [0, 1, 2, 3, 4].filter((i) => i !== textColumn), className: "sizes" })), { id });
}

function timesCard(id, title, text, rows) {
  const most = largest(rows.map((row) => row.count));
  const all = rows.reduce((sum, row) => sum + row.count, 0);
  return livesCard(id, title, text, ["For", "", "Share", "Blocks", "Bytes"], rows.map((row) =>
    [make("td", { class: "number", title: `${grouped(row.low)} to ${grouped(row.high)} ns` }, formatRange(row.low, row.high + 1, formatTime)), shareBar(ratioOf(row.count, most)), formatShare(row.count, all), estimated(row.count, row.variance), formatBytes(row.size)]), 1);
}

// Those that were counted, as at the terminal, else as many as samples tell of.
const allCallsOf = (dump) => dump.exact_alloc_count || dump.alloc_count;

// What was temporary until the end of the heap; null: nothing was, or nobody knows.
function temporaryOf({ report, heap: { end } }) {
  const row = report.histogram.find((one) => one.dump_id === end.dump.id && one.kind === "temporary");
  const calls = allCallsOf(end.dump);
  return row ? { count: row.count, error: Math.sqrt(row.variance), share: formatShare(Math.min(row.count, calls), calls) } : null;
}

// As the summary at the terminal has it: where it is some of them, and known to some percent; else "".
function temporaryText(app) {
  const calls = allCallsOf(app.heap.end.dump);
  const temporary = temporaryOf(app);
  return temporary && temporary.count >= 0.01 * calls && temporary.error <= 0.05 * calls ? temporary.share + " temporary" : "";
}

function renderLives(app, main) {
  const { report, heap } = app;
  const id = heap.end.dump.id;
  const of = (kind) => report.histogram.filter((row) => row.dump_id === id && row.kind === kind).sort((a, b) => a.low - b.low);
  const [lifetimes, ages, temporary] = [of("lifetime"), of("age"), temporaryOf(app)];
  main.append(...[idleCard(app)].filter(Boolean));
  if (lifetimes.length + ages.length === 0) {
    main.append(emptyCard("No lives are known", "Only recordings of heap_profile that have ended tell when blocks were allocated and freed."));
    return;
  }
  if (app.moment.tid) main.append(quiet("Of all threads: lives are not told apart by thread."));
  const calls = allCallsOf(heap.end.dump);
  const rows = temporaryByFunction(report.temporary.filter((row) => row.dump_id === id), report.functions).slice(0, 50);
  const error = temporary ? formatError(temporary.error, temporary.count, "objects") : "";
  const share = temporary ? `${temporary.share} of all allocations${error && " (" + error + ")"}` : "";
  main.append(temporary ? livesCard("temporary", `Temporary: ${share}`,
    `Freed within 1 ms by the thread that allocated them: memory on the stack, or one buffer for all, would do. ` +
      "A realloc ends a block.",
    ["Function", "Share", "Blocks", "Bytes", "Mean size"], rows.map((row) => [app.linkToName(row.name, { view: "alloc_objects", moment: heap.end.index }), formatShare(Math.min(row.count, calls), calls),
      estimated(row.count, row.variance), formatBytes(row.size),
      formatBytes(ratioOf(row.size, row.count))]), 0)
    : quiet("Nothing was temporary: freed within 1 ms by the thread that allocated it."));
  if (lifetimes.length)
    main.append(timesCard("lifetimes", "How long freed blocks lived", "From malloc to free or realloc, whoever freed them.", lifetimes));
  if (ages.length)
    main.append(timesCard("ages", "How old live blocks are", "At the end of the recording.", ages));
}
