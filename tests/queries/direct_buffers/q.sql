SELECT * FROM heap_profile_direct_buffer;

SELECT p.pid, c.name AS class, f.name AS called_by, sum(b.bytes) AS bytes, count(*) AS buffers
FROM heap_profile_direct_buffer b
  JOIN process p USING (upid)
  JOIN heap_graph_object o ON o.id = b.object_id
  JOIN heap_graph_class c ON c.id = o.type_id
  LEFT JOIN stack_profile_callsite leaf ON leaf.id = b.callsite_id
  LEFT JOIN stack_profile_callsite caller ON caller.id = leaf.parent_id
  LEFT JOIN stack_profile_frame f ON f.id = caller.frame_id
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

SELECT name, value FROM stats WHERE value > 0 AND name LIKE '%callstack%' OR name LIKE '%parser_error%' AND value > 0;
