SELECT ts, heap_name, callsite_id, count, size FROM heap_profile_allocation;
SELECT heap_name, sum(size) AS live FROM heap_profile_allocation GROUP BY heap_name ORDER BY heap_name;
SELECT heap_name, ts, live_size FROM heap_dump;
SELECT name, cumulative FROM flamegraph(3, 'alloc_space');
