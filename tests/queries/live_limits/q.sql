SELECT live_size, live_size_low, live_size_high, exact_alloc_size, live_count, exact_alloc_count FROM heap_dump;
SELECT sum(size), sum(count) FROM heap_profile_allocation;
SELECT cumulative FROM flamegraph(0, 'space') WHERE depth = 0;
