SELECT p.upid, p.pid, p.name, sum(size) AS live FROM heap_profile_allocation JOIN process p USING (upid) GROUP BY 1;
SELECT count(*) AS callsites FROM stack_profile_callsite;
SELECT name, cumulative_delta FROM diff(0, 1);
