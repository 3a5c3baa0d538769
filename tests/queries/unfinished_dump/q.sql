SELECT ts, callsite_id, count, size FROM heap_profile_allocation;
SELECT ts, is_complete FROM heap_dump;
SELECT name, value FROM stats WHERE severity != 'info' AND value != 0;
