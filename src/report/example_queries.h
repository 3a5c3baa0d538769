// Queries that the page offers where it can ask in SQL.
#pragma once

namespace heapprofd {

struct ExampleQuery {
  const char* title;
  const char* sql;
};

inline constexpr ExampleQuery kExampleQueries[] = {
    {"Who holds the memory", "SELECT * FROM top('space', 20)"},
    {"All dumps",
     "SELECT id, ts, heap_name, label, live_size, live_count, alloc_size FROM heap_dump "
     "ORDER BY id"},
    {"What grew, first to last dump",
     "SELECT * FROM diff((SELECT min(id) FROM heap_dump), (SELECT max(id) FROM "
     "heap_dump), 'space') LIMIT 50"},
    {"Threads",
     "SELECT thread_name, tid, live_size, alloc_size FROM heap_profile_thread\n"
     "WHERE dump_id = (SELECT max(id) FROM heap_dump) ORDER BY live_size DESC"},
    {"Quality", "SELECT * FROM heap_profile_quality WHERE value != 0"},
    {"A flame graph: columns stack and value",
     "WITH RECURSIVE\n"
     "  tree AS MATERIALIZED (SELECT * FROM flamegraph((SELECT max(id) FROM heap_dump), "
     "'space')),\n"
     "  stacks(id, stack) AS (\n"
     "    SELECT id, name FROM tree WHERE parent_id IS NULL\n"
     "    UNION ALL SELECT tree.id, stack || ';' || tree.name FROM stacks JOIN tree ON "
     "tree.parent_id = stacks.id)\n"
     "SELECT stack, self AS value FROM stacks JOIN tree USING (id) WHERE self > 0 ORDER "
     "BY value DESC"},
};

}  // namespace heapprofd
