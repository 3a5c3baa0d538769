SELECT * FROM heap_graph;
SELECT * FROM heap_graph_object;
SELECT * FROM heap_graph_class;
SELECT * FROM heap_graph_reference;
SELECT * FROM experimental_flamegraph('graph', 1100, NULL, 1, NULL, NULL);
