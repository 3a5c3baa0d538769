SELECT * FROM heap_graph;
SELECT * FROM heap_graph_class;
SELECT * FROM heap_graph_object;
SELECT * FROM heap_graph_reference;
SELECT depth, name, map_name, count, cumulative_count, size, cumulative_size
FROM experimental_flamegraph('graph', 5000, NULL, 1, NULL, NULL);
SELECT name, cumulative_size FROM experimental_flamegraph(5000, 1, 'graph', 'weak');
SELECT c.name, count(*) AS objects, sum(o.self_size) AS size
FROM heap_graph_object o JOIN heap_graph_class c ON o.type_id = c.id WHERE o.reachable GROUP BY 1 ORDER BY 3 DESC;
