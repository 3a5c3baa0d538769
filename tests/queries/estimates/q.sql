SELECT * FROM heap_profile_estimate;
SELECT exact_alloc_size, exact_alloc_count, peak_size, peak_ts, idle_ts, idle_until_ts, idle_unseen_size FROM heap_dump;
SELECT live_size_low, live_size, live_size_high, peak_size_low, peak_size, peak_size_high FROM heap_dump;
SELECT name, value FROM heap_profile_quality WHERE value != 0;
-- errors add up as squares: 30 and 40 are 50 together
SELECT name, cumulative, cumulative_error FROM flamegraph(0, 'space');
