INCLUDE PERFETTO MODULE android.memory.heap_profile.summary_tree;
include perfetto module android.memory.heap_profile.*;
INCLUDE PERFETTO MODULE callstacks.stack_profile;
SELECT * FROM android_heap_profile_summary_tree;
SELECT name, self_size, self_count, self_alloc_size, self_alloc_count
FROM _android_heap_profile_callstacks_for_allocations!((
  SELECT callsite_id, size, count, max(size, 0) AS alloc_size, max(count, 0) AS alloc_count
  FROM heap_profile_allocation WHERE ts <= 1100 -- a comment with ) and !( in it
));
SELECT * FROM _callstacks_for_stack_profile_samples!(heap_profile_allocation) WHERE callsite_id = 1;
WITH calls AS (SELECT * FROM _callstacks_for_callsites!((SELECT 2 AS callsite_id UNION ALL SELECT 2 UNION ALL SELECT 4)))
SELECT c.name, c.self_count, t.cumulative_count
FROM calls c JOIN _callstacks_self_to_cumulative!(calls) t USING (id) ORDER BY c.id;
SELECT name, self_value FROM _callstacks_for_callsites_weighted!((SELECT 4 AS callsite_id, 10 AS value)) WHERE self_value != 0;
INCLUDE PERFETTO MODULE slices.with_context;
