SELECT heap_name, live_size, live_count, alloc_size, alloc_count FROM heap_dump;
SELECT name, cumulative FROM flamegraph(0, 'alloc_space');
SELECT count, size, alloc_count, alloc_size FROM callers('work', 0);
SELECT count, size, alloc_count, alloc_size FROM callers('work', 1);
