INCLUDE PERFETTO MODULE android.memory.heap_graph.class_tree;
INCLUDE PERFETTO MODULE android.memory.heap_graph.dominator_class_tree;
SELECT o.id, c.name, o.native_size, o.reachable, o.object_data_id FROM heap_graph_object o JOIN heap_graph_class c ON c.id = o.type_id;
SELECT c.name, c.location, s.name AS superclass, s.location AS superclass_location
FROM heap_graph_class c JOIN heap_graph_class s ON c.superclass_id = s.id;
SELECT owner_id, owned_id, field_name, field_type_name FROM heap_graph_reference;
SELECT o.id, p.field_name, p.field_type, p.int_value, p.long_value
FROM heap_graph_object o JOIN heap_graph_object_data d ON o.object_data_id = d.id JOIN heap_graph_primitive p USING (field_set_id);
SELECT id, depth, name, count, size, cumulative_size, parent_id FROM experimental_flamegraph('graph', 5000, NULL, 1, NULL, NULL);
SELECT id, parent_id, name, root_type, heap_type, self_count, self_size FROM _heap_graph_class_tree;
SELECT id, parent_id, name, root_type, heap_type, self_count, self_size FROM _heap_graph_dominator_class_tree;
SELECT id, dominated_native_size_bytes FROM heap_graph_dominator_tree WHERE dominated_native_size_bytes > 0;
-- Ours: what would be freed with an object; it has no address in a trace.
SELECT id, retained_size, address FROM heap_graph_object WHERE id IN (4, 6, 7);
