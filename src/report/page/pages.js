// The pages: each answers one question, from what the app (main.js) has made ready.

// The heap of a virtual machine: what nobody holds is in the dump, too, and nothing is known of allocations.
const isManaged = (dump) => dump.unreachable_size >= 0;

// How the process's resident memory comes about, as far as it is known: parts that add
// up to it. null: nothing is known.
function residentParts(report, dump) {
  if (isManaged(dump)) return null;
  const rows = report.memory.filter((row) => row.upid === dump.upid && row.ts <= dump.ts + 1e9);
  const resident = rows.length ? rows[rows.length - 1].value : null;
  const managed = report.dumps.filter((one) => isManaged(one) && one.upid === dump.upid).pop();
  const live = Math.max(0, dump.live_size);
  const parts = [["live heap (estimate)", live]];
  const unknown = ["code", "stacks", "mapped files"];
  if (dump.allocator !== null) {
    parts.push(["allocator's overhead", Math.max(0, dump.allocator_in_use_size - live)]);
    parts.push(["free in the allocator", Math.max(0, dump.allocator_free_size)]);
  } else {
    unknown.unshift("allocator's overhead");
  }
  if (managed) {
    parts.push(["objects of Java, garbage too", managed.live_size + managed.unreachable_size]);
    unknown.unshift("free room in the Java heap");
  }
  if (resident === null) return parts.length === 1 ? null : { resident, parts };
  const known = parts.reduce((sum, part) => sum + part[1], 0);
  parts.push([unknown.join(", "), Math.max(0, resident - known)]);
  return { resident, parts, isMore: known > resident };
}

// What a reader must know before he trusts the figures: [is bad, text].
function problemsOf(report) {
  const problems = report.warnings.map((warning) => [true, warning]);
  const note = (condition, text) => condition && problems.push([false, text + "; heap_profile query has all"]);
  const others = report.dumps.filter((dump) => !isManaged(dump));
  const graphs = report.dumps.filter(isManaged).filter((_, at) => at % 2 === 0);  // each is there as two heaps
  const incomplete = [...others, ...graphs].filter((dump) => !dump.is_complete).length;
  if (incomplete > 0)
    problems.push([true, `the end of ${incomplete === 1 ? "a dump" : incomplete + " dumps"} is missing: the recording was cut off`]);
  const heapsOf = (dumps) => new Set(dumps.map((dump) => dump.upid + " " + dump.heap_name)).size;
  const [shown, heaps] = [heapsOf(report.trees.map((tree) => report.dumpById.get(tree.about.dump))), heapsOf(report.dumps)];
  note(report.trees.some((tree) => !tree.about.is_whole), "the smallest callees were taken together");
  note(report.trees.some((tree) => tree.about.is_folded),
    "in managed heaps what is deeper than 500 classes, or has no room, counts for the node above it");
  note(report.counts.graphs > graphs.length, `the last ${graphs.length} of ${report.counts.graphs} dumps of managed heaps are in the report`);
  note(shown < heaps, `call trees of ${shown} of ${heaps} heaps are in the report`);
  note(report.counts.dumps > others.length, `${others.length} of ${report.counts.dumps} dumps are in the report, evenly spread`);
  note(report.counts.memory > report.memory.length,
    `${report.memory.length} of ${report.counts.memory} values of resident memory are in the report, evenly spread`);
  return problems;
}

// Why there is nothing to see, and what to do.
function emptyText(app) {
  const { moment } = app;
  const lostEnd = app.report.warnings.find((text) => text.includes("is incomplete"));
  if (!moment)
    return emptyCard("This file has no heap profile", lostEnd || "It has no dump. Record with: heap_profile -- PROGRAM");
  const reason = moment.dump.reason || lostEnd;
  const isFiltered = app.wholeTree.total() > 0;
  const others = [...new Set([moment, ...app.moments])]
    .flatMap((other) => VIEWS.map((view) => ({ other, view, total: app.totalOf(other, view.key) })))
    .filter(({ other, view, total }) => total > 0 && (other === moment || view.key === app.state.view));
  return emptyCard(isFiltered ? "The filters leave nothing" : `No ${app.view.title.toLowerCase()} at: ${moment.title}`, ...[
    reason,
    threadGap(app, moment, app.view),
    !isFiltered && app.view.unit === "objects" && app.totalOf(moment, app.view.key.replace("objects", "space")) > 0 && "The file does not tell how many there are.",
    isFiltered && button("Remove all filters", {}, () => app.set({ filters: [], zoom: 0 })),
    !isFiltered && moment.isPeak && app.state.view.startsWith("alloc") && "For the peak, only what was live is known.",
    others.length && "There is something here:",
    ...others.slice(0, 6).map(({ other, view, total }) =>
      button(`${other.title}: ${view.title.toLowerCase()}, ${formatValue(total, view.unit)}`, {},
        () => app.showMoment(other, { view: view.key, filters: [] }))),
    !reason && others.length === 0 && "Nothing was sampled: the program allocated less than the sampling " +
      "interval, or not by malloc. Use a smaller one: heap_profile -i 1 -- PROGRAM",
  ].filter(Boolean));
}

// What the file has no numbers of is no zero.
const knowsCount = (count, size) => count > 0 || size <= 0;

function tile(title, value, note, exact, key) {
  return make("div", { class: "tile", title: exact || "", "data-key": key || "" },
    make("div", { class: "tile-title" }, title), make("div", { class: "tile-value" }, value),
    make("div", { class: "quiet" }, note || "\u00a0"));
}

// Of a dump of the maximum the limits are those of the end.
const hasLiveLimits = (dump) => dump.live_size_low !== null && dump.live_size_high !== null && !dump.is_peak;

// What exact counts do not allow is not shown.
function liveOf(dump) {
  return hasLiveLimits(dump) ? Math.min(Math.max(dump.live_size, dump.live_size_low), dump.live_size_high) : dump.live_size;
}

function tiles(app) {
  const { heap, report } = app;
  const { end, peak } = heap;
  const last = end.dump;
  const error = report.errorById.get(last.id);
  const live = liveOf(last);
  const idle = idleOf(app);
  const plusMinus = hasLiveLimits(last) ? formatLimits(live, last.live_size_low, last.live_size_high)
    : error ? formatError(Math.sqrt(error.live_size_variance), live) : "";
  const peakPlusMinus = last.peak_size_low === null || last.peak_size_high === null ? ""
    : formatLimits(last.peak_size, last.peak_size_low, last.peak_size_high);
  const isExact = last.exact_alloc_size > 0;
  const allocated = isExact ? last.exact_alloc_size : last.alloc_size;
  const calls = isExact ? last.exact_alloc_count : last.alloc_count;
  const resident = residentParts(report, last);
  return make("section", { class: "tiles", "aria-label": "Figures" },
    tile(last.is_peak ? "Live at the maximum" : "Live at end", formatBytes(live),
      [plusMinus, last.live_count !== null && knowsCount(last.live_count, live) ? formatCounted(last.live_count, "object", "objects") : ""].filter(Boolean).join(" · "),
      formatExactly(live, "bytes"), "live"),
    last.peak_size > 0
      ? tile("Peak", formatBytes(last.peak_size),
        [peakPlusMinus, last.peak_ts === null ? "" : "at " + formatSeconds(app.timeline.seconds(last.peak_ts))].filter(Boolean).join(" · "),
        formatExactly(last.peak_size, "bytes"), "peak")
      : peak && tile("Peak", formatBytes(app.totalOf(peak, "space")), "", formatExactly(app.totalOf(peak, "space"), "bytes"), "peak"),
    isManaged(last) ? tile("Unreachable", formatBytes(last.unreachable_size), formatCounted(last.unreachable_count, "object", "objects"),
      formatExactly(last.unreachable_size, "bytes"), "unreachable")
      : tile("Allocated", formatBytes(allocated), calls === null || !knowsCount(calls, allocated) ? ""
        : [formatCounted(calls, "call", "calls") + (isExact ? "" : " (estimate)"), isExact ? temporaryText(app) : ""].filter(Boolean).join(" · "),
      formatExactly(allocated, "bytes"), "allocated"),
    idle && tile("Idle", formatBytes(idle.size), "not touched " + idle.time, formatExactly(idle.size, "bytes"), "idle"),
    resident && resident.resident !== null
      ? tile("Resident (RSS)", formatBytes(resident.resident), "of the whole process", formatExactly(resident.resident, "bytes"), "rss") : null,
    last.sampling_interval > 0
      ? tile("Sampled", last.sampling_interval === 1 ? "every byte" : "1 per " + formatBytes(last.sampling_interval),
        "± is the longer side of the 95\u00a0% interval") : null);
}

// Direct buffers of Java of the process that is shown, the largest first.
function buffersOf({ report, heap }) {
  return report.buffers.filter((row) => row.upid === heap.upid);
}

// null: there is none.
function sumOfBuffers(rows) {
  return rows.length === 0 ? null : rows.reduce((sum, row) => ({ buffers: sum.buffers + row.buffers, bytes: sum.bytes + row.bytes }), { buffers: 0, bytes: 0 });
}

function reconciliation(app) {
  const resident = residentParts(app.report, app.heap.end.dump);
  const buffers = sumOfBuffers(buffersOf(app));
  if (!resident && !buffers) return null;
  const { parts } = resident || { parts: [] };
  const sum = parts.reduce((all, part) => all + part[1], 0) || 1;
  const bar = make("div", { class: "bar" });
  const list = make("ul", { class: "parts" });
  parts.forEach(([name, value], i) => {
    const piece = make("span", { class: "part part" + i, title: name + ": " + formatExactly(value, "bytes") });
    piece.style.width = (100 * value) / sum + "%";
    bar.append(piece);
    list.append(make("li", {}, make("i", { class: "part" + i }), `${name} `, make("b", {}, formatBytes(value))));
  });
  return card(!resident ? "Memory outside the Java heap" : resident.resident === null ? "The allocator's memory at the end" : "Where the resident memory goes, at the end",
    resident ? bar : null, resident ? list : null,
    resident?.isMore ? quiet("Parts of the heap were not resident: never touched, or swapped out.") : null,
    buffers ? make("p", { id: "buffers" }, isManaged(app.heap.end.dump) ? "" : "Of it, most of it in the live heap: ",
      make("b", {}, formatBytes(buffers.bytes)), ` in ${formatCounted(buffers.buffers, "direct buffer", "direct buffers")} of Java. `,
      button("Who holds them, and who has allocated them", { class: "link" }, () => app.set({ page: "buffers" }))) : null);
}

function topList(app) {
  const { functions } = app.report;
  const rows = app.topHolders();
  const total = app.wholeTree.total();
  return make("section", { class: "card top" },
    make("h2", {}, `Who holds it: ${app.view.title.toLowerCase()}, ${app.moment.title}`),
    app.unfiltered() ? quiet(app.unfiltered()) : null,
    make("ol", {}, ...rows.map((row) => {
      const callers = app.wholeTree.pathOf(row.node).reverse().slice(1, 4);
      return make("li", {},
        button("", { class: "top-row", title: "Show in the flame graph" }, () => app.showNamed(functions.name(row.function))),
        make("span", { class: "top-value", title: formatExactly(row.value, app.view.unit), "data-bytes": String(row.value) },
          formatValue(row.value, app.view.unit), make("span", { class: "quiet" }, " " + formatError(Math.sqrt(row.variance), row.value))),
        make("span", { class: "top-share" }, formatShare(row.value, total)),
        shareBar(row.value / total),
        make("div", { class: "quiet callers" },
          cut([functions.place(row.function), callers.map((node) => "← " + cut(functions.name(app.wholeTree.functions[node]), 60)).join(" ")]
            .filter(Boolean).join("  "), 300)));
    })));
}

// A name as a search that finds it.
function searchText(name) {
  return name.startsWith("/") ? "/" + name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&") + "/" : name;
}

function renderOverview(app, main) {
  const top = topList(app);
  top.querySelectorAll(".top-row").forEach((row, i) => {
    row.textContent = cut(app.report.functions.name(app.topHolders()[i].function), 200);
  });
  fitTo(app.flame, 400);
  fill(main,
    tiles(app),
    app.explanation ? make("p", { class: "explanation" }, app.explanation) : null,
    card("Memory over time", app.timelineView.element),
    make("div", { class: "columns" },
      card("Flame graph", app.flame.element), top),
    reconciliation(app));
}

function renderFlame(app, main) {
  const { state, flame } = app;
  flame.element.style.height = "";  // as high as the page
  const zoomed = state.zoom > 0 ? flame.tree.pathOf(state.zoom) : [];
  const crumbs = zoomed.slice(-6);
  main.append(
    make("div", { class: "toolbar" },
      make("span", { class: "switch", role: "group", "aria-label": "Direction" },
        button("Top-down", { "aria-pressed": String(!state.isInverted), title: "Callers above what they call (b)" },
          () => app.set({ isInverted: false, zoom: 0 })),
        button("Bottom-up", { "aria-pressed": String(state.isInverted), title: "Allocations first, their callers below (b)" },
          () => app.set({ isInverted: true, zoom: 0 }))),
      ...chipsOf(app),
      make("span", { class: "spring" }),
      button("Copy stack", { id: "copy", title: "Of the selected box, with figures (c)", disabled: flame.selected <= 0 && state.zoom === 0 }, () => app.copyStack()),
      button("Reset", { title: "No zoom, search and filters (Escape goes back one step)" },
        () => app.set({ zoom: 0, query: "", filters: app.usualFilters() }))),
    make("nav", { class: "crumbs", "aria-label": "Zoom" },
      button("all", {}, () => app.set({ zoom: 0 })),
      ...(zoomed.length > crumbs.length ? [make("span", {}, " › … ")] : []),
      ...crumbs.flatMap((node) => [
        make("span", {}, " › "),
        button(cut(app.report.functions.name(flame.tree.functions[node]), 40), {}, () => app.set({ zoom: node })),
      ])),
    quiet(threadGap(app, app.moment, app.view)),
    flame.element,
    make("div", { class: "status", id: "selection", role: "status", "aria-live": "polite" }, app.selectionText()));
}

function filterBar(app) {
  return make("div", { class: "toolbar" }, ...chipsOf(app));
}

function chipsOf(app) {
  const { filters } = app.state;
  const chips = filters.map((filter, i) =>
    make("span", { class: "chip" },
      FILTERS[filter.kind].label + " ",
      make("b", {}, filter.text === INTERNALS ? "allocators and containers" : cut(filter.text, 48)),
      button("×", { "aria-label": "Remove this filter", title: "Remove this filter" },
        () => app.set({ filters: filters.filter((_, at) => at !== i), zoom: 0 }))));
  if (!filters.some((filter) => filter.text === INTERNALS))
    chips.push(button("Merge allocators and containers", { class: "quiet-button" },
      () => app.set({ filters: [...filters, { kind: "merge", text: INTERNALS, exact: false }], zoom: 0 })));
  return chips;
}

const FIRST_ROWS = 250;

function renderFunctions(app, main) {
  const { report, state, view } = app;
  const test = state.query ? nameTest(state.query) : null;
  const tree = app.filteredTree();
  const rows = sumByFunction(tree, report.functions).filter((row) => !test || test(report.functions.name(row.function)));
  const text = { name: (row) => report.functions.name(row.function), module: (row) => report.functions.moduleName(row.function) }[state.sort];
  if (text) rows.sort((a, b) => (text(a) < text(b) ? -1 : 1));
  else rows.sort((a, b) => b[state.sort] - a[state.sort] || b.total - a.total);
  const total = tree.total();
  const head = (key, title, className = "") =>
    make("th", { class: className, "aria-sort": state.sort === key ? (text ? "ascending" : "descending") : "none", scope: "col" },
      button(title, {}, () => app.set({ sort: key })));
  const tableOf = (shown) => table([head("own", "Itself", "number"), "%", head("total", "Total", "number"), "%", head("name", "Function"), head("module", "Module")],
    shown.map((row) => [figure(row.own, view.unit), formatShare(row.own, total), figure(row.total, view.unit), formatShare(row.total, total),
      app.linkTo(row.function), app.moduleCell(row.function)]), { numbers: [1, 3] });
  const some = tableOf(rows.slice(0, FIRST_ROWS));
  const more = button(`Show all ${grouped(rows.length)}`, {}, () => {
    some.replaceWith(tableOf(rows));
    more.remove();
  });
  main.append(
    filterBar(app),
    quiet(`${countedExactly(rows.length, "function", "functions")}. “Itself” is what a function has allocated directly, ` +
      "“total” what came through it, with recursion counted once."),
    some, rows.length > FIRST_ROWS ? more : "");
}

const MOST_DUMPS = 1000;  // in the table: the last ones

function renderTimeline(app, main) {
  const { heap, report } = app;
  const dumps = report.dumps.filter((dump) => dump.upid === heap.upid && dump.heap_name === heap.name);
  const first = Math.max(0, dumps.length - MOST_DUMPS);
  const treeOf = (dump) => app.moments.find((moment) => moment.dump.id === dump.id && !moment.tree.about.is_peak);
  main.append(
    card("Memory over time", app.timelineView.element,
      quiet("◆ a dump, ▲ the peak, when most of this heap was live. Between them nothing is known. " +
        (app.timeline.others.length > 0 ? `◇ a dump of the same process's ${app.timeline.otherTitle}, which a click chooses. ` : "") +
        "Drag from one to another to see what changed.")),
    seriesCard(app),
    table(["Dump", "Time", "Live", "Change", "Objects", "Allocated so far", ""], dumps.slice(first).map((dump, at) => {
      const i = first + at;
      const moment = treeOf(dump);
      const change = dump.live_size - (i > 0 ? dumps[i - 1].live_size : 0);  // dumps of one file tell the same figures
      return [
        dump.label || (dump === dumps[dumps.length - 1] ? "end" : dump.is_peak ? "maximum" : String(i + 1)),
        dump.ts ? formatSeconds(app.timeline.seconds(dump.ts)) : "?", figure(dump.live_size, "bytes"), dump.live_size === null ? "unknown" : formatChange(change, "bytes"),
        dump.live_count !== null && knowsCount(dump.live_count, dump.live_size) ? figure(dump.live_count, "objects") : "?", figure(dump.alloc_size, "bytes"),
        moment ? button("Flame graph", { class: "link" }, () => app.showMoment(moment, { page: "flame" }))
          : make("span", { class: "quiet" }, "not in the report")];
    }), { numbers: [1, 2, 3, 4, 5] }));
}

function renderQuality(app, main) {
  const { report } = app;
  const { dump } = app.heap.end;
  const problems = problemsOf(report);
  const quality = report.quality.filter((row) => row.upid === dump.upid);
  const unnamed = app.unnamedModules();
  const total = app.wholeTree.total();
  fill(main,
    card("How far the figures can be trusted",
      problems.length
        ? make("ul", {}, ...problems.map(([isBad, text]) => make("li", { class: isBad ? "bad" : "" }, text)))
        : make("p", {}, "Nothing was lost or wrong, as far as the file tells."),
      dump.sampling_interval > 1
        ? quiet(`Sizes and counts are unbiased estimates from samples, one per ${formatBytes(dump.sampling_interval)} on average.`) : null),
    unnamed.length ? card("Functions without names",
      table(["Module", app.view.title, "Share", "Why, and what to do"], unnamed.map((row) => [row.module || "(memory without a file)",
        formatValue(row.value, app.view.unit), formatShare(row.value, total), cut(app.remedyFor(row.module), 400)]), { numbers: [1, 2] }),
      quiet("Names come with the next recording, or, with a file of symbols that is there now, the next heap_profile report FILE.")) : null,
    quality.length ? card("Of the recording",
      table(["Figure", "Value", "Meaning"], quality.map((row) => [row.name, grouped(row.value), row.description]),
        { numbers: [1], rowAt: (at) => ({ class: quality[at].is_fault ? "bad" : "" }) }),
      quiet("Since the process was profiled. Red: something is missing or poor.")) : null,
    card("About this report",
      make("p", {}, "Made by heap_profile " + report.version + " from " + report.files.map((file) => cut(file, 200)).join(", ") +
        (report.isServed ? ". It asks only the heap_profile view on this machine that has served it." : ". It holds all of its data and asks no network for anything.") +
        " The same figures in SQL: heap_profile query FILE.")));
}

// By letter, the key of each. Some need the server, or what not all files have; those of managed heaps
// (buffers.js, objects.js) add themselves.
const PAGES = [
  { key: "overview", letter: "o", title: "Overview", render: renderOverview, needsMemory: true },
  { key: "flame", letter: "f", title: "Flame graph", render: renderFlame, needsMemory: true },
  { key: "functions", letter: "u", title: "Functions", render: renderFunctions, needsMemory: true },
  { key: "callers", letter: "a", title: "Callers", render: renderCallers, needsMemory: true },
  { key: "compare", letter: "d", title: "Compare", render: renderCompare },
  { key: "leaks", letter: "l", title: "Leaks", render: renderLeaks },
  { key: "sizes", letter: "s", title: "Sizes", render: renderSizes, needsMemory: true },
  { key: "lives", letter: "h", title: "Lifetimes", render: renderLives },
  { key: "threads", letter: "r", title: "Threads", render: renderThreads },
  { key: "timeline", letter: "i", title: "Timeline", render: renderTimeline },
  { key: "source", letter: "w", title: "Source", render: renderSource, needs: (report) => report.isServed || report.source },
  { key: "sql", letter: "y", title: "SQL", render: renderSql, needs: (report) => report.isServed },
  { key: "quality", letter: "q", title: "Data quality", render: renderQuality },
];
