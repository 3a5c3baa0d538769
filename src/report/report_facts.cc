#include "report/report_facts.h"

#include <nlohmann/json.hpp>

#include "report/json_rows.h"

namespace heapprofd {
namespace {

using nlohmann::json;

struct Question {
  const char* name;
  const char* sql;
};

// Of the rows of `top`, by their callsite_id: the innermost functions first, the
// allocation function left out. Functions without a name have their file's, without its
// directories.
#define HPD_NAMED_STACKS                                                             \
  "chain(row, id, level) AS (SELECT callsite_id, c.parent_id, 1 FROM top JOIN "      \
  "stack_profile_callsite c ON c.id = callsite_id UNION SELECT row, c.parent_id, "   \
  "level + 1 FROM chain JOIN stack_profile_callsite c ON c.id = chain.id WHERE "     \
  "c.parent_id IS NOT NULL AND level < 20), named AS (SELECT row, level, "           \
  "substr(coalesce(f.deobfuscated_name, nullif(f.name, ''), '[' || replace(m.name, " \
  "rtrim(m.name, replace(m.name, '/', '')), '') || ']'), 1, 1000) AS name FROM "     \
  "chain JOIN stack_profile_callsite c USING (id) JOIN stack_profile_frame f ON "    \
  "f.id = c.frame_id JOIN stack_profile_mapping m ON m.id = f.mapping) "
#define HPD_STACK                                                               \
  "(SELECT group_concat(name, '←') FROM (SELECT name FROM named WHERE row = " \
  "callsite_id ORDER BY level))"

// Each has a limit: a file may hold anything. What is beyond it is left out, and the page
// says how much there is (`counts`).
constexpr Question kQuestions[] = {
    // Of too many the last ones of all heaps (of too many heaps those that have allocated
    // most), those with a label, and every n-th of each heap.
    {"dumps",
     "SELECT id, ts, start_ts, upid, substr(heap_name, 1, 1000) AS heap_name, "
     "substr(label, 1, 1000) AS label, substr(reason, 1, 1000) AS reason, live_size, "
     "live_count, live_size_low, live_size_high, alloc_size, alloc_count, "
     "exact_alloc_size, exact_alloc_count, peak_size, peak_size_low, peak_size_high, "
     "peak_ts, "
     "sampling_interval, original_sampling_interval, client_error, is_peak, is_complete, "
     "from_startup, rejected_concurrent, disconnected, buffer_overran, "
     "buffer_corrupted, hit_guardrail, allocator, allocator_system_size, "
     "allocator_in_use_size, allocator_free_size FROM (SELECT *, row_number() OVER "
     "(PARTITION BY upid, heap_name ORDER BY id DESC) - 1 AS newer, count(*) OVER () AS "
     "total FROM heap_dump) WHERE newer % (1 + total / 20000) = 0 OR label IS NOT NULL "
     "ORDER BY newer > 0, label IS NULL, iif(newer = 0, -alloc_size, newer) LIMIT 20000"},
    {"errors",
     "SELECT dump_id, sum(live_size_error * live_size_error) AS live_size_variance, "
     "sum(live_count_error * live_count_error) AS live_count_variance, "
     "sum(alloc_size_error * alloc_size_error) AS alloc_size_variance, "
     "sum(alloc_count_error * alloc_count_error) AS alloc_count_variance "
     "FROM heap_profile_estimate WHERE dump_id IN (SELECT max(id) FROM heap_dump GROUP "
     "BY upid, heap_name) GROUP BY dump_id LIMIT 20000"},
    {"processes",
     "SELECT upid, pid, substr(name, 1, 4096) AS name, substr(cmdline, 1, 4096) AS "
     "cmdline, start_ts FROM process WHERE upid IN (SELECT upid FROM heap_dump) LIMIT "
     "5000"},
    {"threads",
     "SELECT dump_id, tid, substr(thread_name, 1, 1000) AS thread_name, live_size, "
     "live_count, alloc_size, alloc_count FROM heap_profile_thread WHERE dump_id IN "
     "(SELECT max(id) FROM heap_dump GROUP BY upid, heap_name) ORDER BY dump_id, "
     "live_size DESC LIMIT 2000"},
    {"histogram",
     "SELECT dump_id, kind, low, high, sum(count) AS count, sum(size) AS size, "
     "sum(count_error * count_error) AS variance FROM heap_profile_histogram "
     "GROUP BY 1, 2, 3 LIMIT 20000"},
    {"temporary",
     "WITH RECURSIVE top AS (SELECT dump_id, callsite_id, count, size, count_error FROM "
     "heap_profile_histogram WHERE kind = 'temporary' ORDER BY count DESC LIMIT "
     "200), " HPD_NAMED_STACKS "SELECT dump_id, count, size, count_error, " HPD_STACK
     " AS stack FROM top"},
    // Of each size those who hold, or have allocated, most in blocks of it.
    {"size_holders",
     "WITH RECURSIVE top AS (SELECT dump_id, kind, low, callsite_id, size FROM (SELECT "
     "*, "
     "row_number() OVER (PARTITION BY dump_id, kind, low ORDER BY size DESC) AS place "
     "FROM heap_profile_histogram WHERE kind IN ('allocated_size', 'live_size')) WHERE "
     "place <= 3 ORDER BY size DESC LIMIT 500), " HPD_NAMED_STACKS
     "SELECT dump_id, kind, low, size, " HPD_STACK " AS stack FROM top"},
    // Of too many every n-th, counted from each process's last one, which is there.
    {"memory",
     "SELECT ts, upid, name, value FROM (SELECT *, row_number() OVER (PARTITION BY upid "
     "ORDER BY ts DESC) - 1 AS newer, count(*) OVER () AS total FROM process_memory "
     "WHERE name = 'mem.rss' AND upid IN (SELECT upid FROM heap_dump)) WHERE newer % (1 "
     "+ total / 40000) = 0 ORDER BY newer > 0, ts LIMIT 60000"},
    {"quality",
     "SELECT dump_id, name, value, description FROM heap_profile_quality WHERE dump_id "
     "IN (SELECT max(id) FROM heap_dump GROUP BY upid, heap_name) AND value != 0 LIMIT "
     "20000"},
    {"stats",
     "SELECT name, idx, severity, value, description FROM stats WHERE value != 0 AND "
     "severity != 'info' LIMIT 1000"},
    {"counts",
     "SELECT (SELECT count(*) FROM heap_dump) AS dumps, (SELECT count(*) FROM "
     "process_memory WHERE name = 'mem.rss' AND upid IN (SELECT upid FROM heap_dump)) AS "
     "memory, (SELECT count(*) FROM heap_graph) AS heap_graphs"},
};

}  // namespace

Result<json> ReportFacts(TraceDatabase& database) {
  json facts = json::object();
  for (const Question& question : kQuestions) {
    JsonRows rows;
    HPD_TRY(database.Run(question.sql, rows));
    facts[question.name] = std::move(rows.result);
  }
  return facts;
}

}  // namespace heapprofd
