INCLUDE PERFETTO MODULE android.memory.heap_graph.dominator_tree;
INCLUDE PERFETTO MODULE android.memory.heap_graph.class_summary_tree;
-- 18 (40 bytes) is held by the list and by the diamond: it hangs on no object.
SELECT d.*, c.name, o.self_size FROM heap_graph_dominator_tree d
JOIN heap_graph_object o USING (id) JOIN heap_graph_class c ON o.type_id = c.id;
SELECT * FROM android_heap_graph_class_summary_tree;
