SELECT callsite_id, size FROM heap_profile_allocation;
SELECT name, idx, severity, value FROM stats WHERE severity != 'info' AND value != 0;
