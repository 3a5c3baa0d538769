SELECT * FROM heap_graph;
SELECT id, upid, graph_sample_ts, self_size, reachable FROM heap_graph_object;
SELECT id, owner_id, owned_id, field_name, field_type_name FROM heap_graph_reference;
SELECT name, value FROM stats WHERE name LIKE 'heap_graph%' AND value > 0;
