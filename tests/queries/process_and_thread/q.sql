SELECT * FROM process;
SELECT * FROM thread;
SELECT p.name, c.name AS child FROM process p JOIN process c ON c.parent_upid = p.upid WHERE p.pid = 42;
SELECT p.name, sum(a.size) AS live FROM heap_profile_allocation a JOIN process p USING (upid) GROUP BY 1 ORDER BY 1;
