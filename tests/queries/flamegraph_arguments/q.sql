SELECT * FROM experimental_flamegraph('native', 1100, NULL, 2, NULL, NULL);
SELECT name, depth FROM experimental_flamegraph('native', 1100, NULL, 2, NULL, NULL) WHERE depth = 0 OR name = 'malloc';
SELECT name, size, cumulative_size FROM experimental_flamegraph('native', 1100, NULL, NULL, '2,7', 'IDLE');
SELECT name, alloc_size, cumulative_alloc_size FROM experimental_flamegraph(1100, 2, 'native', 'inlined_t');
SELECT count(*) AS n FROM experimental_flamegraph WHERE profile_type = 'native' AND ts_in = 1100 AND upid = 2;
SELECT a.ts, count(*) AS nodes FROM (SELECT DISTINCT ts, upid FROM heap_profile_allocation) a,
  experimental_flamegraph(a.ts, a.upid, 'native') GROUP BY 1;
SELECT name FROM experimental_flamegraph('native', 1099, NULL, 2, NULL, NULL);
