SELECT ts, callsite_id, count, size FROM heap_profile_allocation;
SELECT name, idx, value FROM stats WHERE severity != 'info' AND value != 0;
