SELECT ts, callsite_id, count, size FROM heap_profile_allocation;
SELECT is_peak, live_size, live_count FROM heap_dump;
SELECT alloc_size, alloc_count, live_size_low, live_size_high FROM heap_dump;
