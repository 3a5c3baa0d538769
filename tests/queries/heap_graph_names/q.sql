SELECT name, location, deobfuscated_name FROM heap_graph_class;
SELECT owner_id, field_name, field_type_name, deobfuscated_field_name FROM heap_graph_reference;
