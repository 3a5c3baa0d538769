// Everything a report shows, in one piece of bytes: facts, texts, functions and call
// trees. The page reads it (src/report/page/data.js); what is in it is made of the same
// tables as the answers to SQL queries.
#pragma once

#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "query/stacks/stack_order.h"
#include "query/trace_database.h"

namespace heapprofd {

// Why functions of a file have no names in a process, with what to do about it.
struct UnnamedRemedy {
  uint32_t upid = 0;
  std::string path = {};  // empty: memory without a file
  std::string text = {};
};

struct ReportOptions {
  std::string version = {};             // of the program
  std::vector<std::string> files = {};  // that the trace was read from, for people
  // What is told about the reading of the files, one line each.
  std::vector<std::string> warnings = {};
  std::vector<UnnamedRemedy> remedies = {};
  // Source code for the page, JSON (cli/view/embedded_source.h); empty: none.
  std::string source = {};
  bool is_served = false;  // the page can ask who has made it (heap_profile view)
  size_t max_nodes = size_t{1} << 20;  // of all trees together
  size_t max_earlier_dumps = 16;       // per heap: with a tree, besides the last and peak
  size_t max_threads = 16;             // per heap: with a tree of the last dump
  size_t max_trees = 256;
  // Of functions. All blocks together then have less than 2 GiB, as Gzip() wants.
  size_t max_text_bytes = size_t{1} << 30;
};

// At most `count` of `dumps`, those with a label, then every n-th: the earlier dumps of a
// heap, besides its last one, that are looked at where growth is told of.
std::vector<uint32_t> ChosenDumps(const ImportedTrace& trace,
                                  const std::vector<uint32_t>& dumps,
                                  size_t count);

// What trees of whole stacks need: begun on a thread of its own, where there is one to be
// had, while others decode what else the trace has and ask for it. nullopt: it has
// callsites. The database must outlive it.
using BegunOrder = std::future<Result<std::optional<StackOrder>>>;

Result<BegunOrder> BeginOrder(TraceDatabase& database);

// "hpdrep1\n", a block with facts (JSON), texts and functions
// (report_functions.h), trees (report_tree.h) in the order of the fact "trees".
Result<std::string> EncodeReport(TraceDatabase& database,
                                 const ReportOptions& options,
                                 BegunOrder order);

}  // namespace heapprofd
