// Which threads have allocated what is live, and what they have allocated at all.

function renderThreads(app, main) {
  const { dump } = app.heap.end;
  const rows = app.report.threads.filter((row) => row.dump_id === dump.id);
  if (rows.length === 0) {
    main.append(emptyCard("No threads are known", "The file does not tell which thread has allocated what: recordings of heap_profile do, " +
      "those of Perfetto, pprof profiles, folded stacks and heaptrack's do not."));
    return;
  }
  const most = largest(rows.map((row) => row.live_size), 1);
  main.append(
    quiet("At the end, by the thread that allocated: what of it is still live, whoever will free it, and all that it has ever allocated. " +
      "Threads without a name had ended before they could be asked, or live elsewhere."),
    table(["Thread", "", "Live", "Share", "Objects", "Allocated", "In calls"], rows.map((row) => [
      row.tid === null ? "(further threads)" : `${cut(row.thread_name || "(unknown)", 120)} ${row.tid}`, shareBar(row.live_size / most),
      figure(row.live_size, "bytes"), formatShare(row.live_size, dump.live_size), formatCount(row.live_count), figure(row.alloc_size, "bytes"), formatCount(row.alloc_count)]),
    { numbers: [2, 3, 4, 5, 6] }));
}
