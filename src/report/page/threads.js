// Which threads have allocated what is live, and what they have allocated at all.

const MOST_OF_THREAD = 0.99;  // less is said

// What a thread's tree does not have of its memory, in a view of VIEWS; "": nothing. The recorder
// counts by stack, thread and size until it has no room, from then on by stack and size.
function threadGap(app, moment, view) {
  const rows = app.report.threads.filter((row) => moment.tid && row.dump_id === moment.dump.id && row.tid === moment.tid);
  const told = app.totalOf(moment, view.key);
  const all = rows.length === 1 ? rows[0][view.column] : 0;  // a number may have been given twice
  return told < MOST_OF_THREAD * all
    ? `${formatValue(told, view.unit)} of its ${formatValue(all, view.unit)} are in the graph (${view.title.toLowerCase()}): too many stacks to tell threads apart in all.` : "";
}

// A link where the report has its tree.
function threadCell(app, row) {
  if (row.tid === null) return "(further threads)";
  const title = `${cut(row.thread_name || "(unknown)", 120)} ${row.tid}`;
  const moment = app.heap.threads.find((one) => one.tid === row.tid);
  return moment ? make("span", {}, button(title, { class: "link" }, () => app.showMoment(moment, { page: "flame" })),
    make("div", { class: "quiet" }, threadGap(app, moment, VIEWS[0]))) : title;
}

function renderThreads(app, main) {
  const { dump } = app.heap.end;
  const rows = app.report.threads.filter((row) => row.dump_id === dump.id);
  if (rows.length === 0) {
    main.append(emptyCard("No threads are known", "The file does not tell which thread has allocated what: recordings of heap_profile do, " +
      "those of Perfetto, pprof profiles, folded stacks and heaptrack's do not."));
    return;
  }
  const most = largest(rows.map((row) => row.live_size), 1);
  const live = Math.max(dump.live_size, rows.reduce((sum, row) => sum + row.live_size, 0));  // estimates may add up to more
  main.append(
    quiet("At the end, by the thread that allocated: what is still live, whoever will free it, and all that it has allocated. " +
      "Threads without a name had ended early, or live elsewhere.",
      app.heap.threads.length ? " A click shows a thread's flame graph." : ""),
    table(["Thread", "", "Live", "Share", "Objects", "Allocated", "In calls"], rows.map((row) => [
      threadCell(app, row), shareBar(row.live_size / most),
      figure(row.live_size, "bytes"), formatShare(row.live_size, live), formatCount(row.live_count), figure(row.alloc_size, "bytes"), formatCount(row.alloc_count)]),
    { numbers: [2, 3, 4, 5, 6] }));
}
