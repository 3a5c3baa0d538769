SELECT * FROM stack_profile_symbol;
SELECT f.id, f.name, f.symbol_set_id, s.name AS symbol, s.inlined
FROM stack_profile_frame f LEFT JOIN stack_profile_symbol s USING (symbol_set_id) ORDER BY f.id, s.id;
SELECT depth, name, map_name, parent_id, source_file, line_number, cumulative_alloc_size
FROM experimental_flamegraph('native', 1100, NULL, 2, NULL, NULL);
