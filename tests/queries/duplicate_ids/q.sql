SELECT a.size, f.name FROM heap_profile_allocation a
JOIN stack_profile_callsite c ON a.callsite_id = c.id JOIN stack_profile_frame f ON c.frame_id = f.id;
SELECT name, value FROM stats WHERE severity != 'info' AND value != 0;
