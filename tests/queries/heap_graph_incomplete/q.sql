SELECT ts, truncated FROM heap_graph;
SELECT id, depth, name, map_name, count, cumulative_count, size, cumulative_size, parent_id
FROM experimental_flamegraph('graph', 5000, NULL, 1, NULL, NULL);
SELECT name, size FROM experimental_flamegraph('graph', 6000, NULL, 1, NULL, NULL);
