SELECT ts, callsite_id, count, size FROM heap_profile_allocation;
-- live and total at each dump
SELECT d.ts, sum(a.size) AS live, sum(max(a.size, 0)) AS total, sum(a.count) AS objects
FROM (SELECT DISTINCT ts FROM heap_dump) d JOIN heap_profile_allocation a ON a.ts <= d.ts
GROUP BY d.ts ORDER BY d.ts;
SELECT ts, live_size, live_count, alloc_size, alloc_count FROM heap_dump;
SELECT ts, dur, retained, allocated, delta FROM _android_heap_profile_intervals;
