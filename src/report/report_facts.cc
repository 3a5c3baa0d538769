#include "report/report_facts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "profile/figures.h"
#include "query/histogram.h"
#include "query/stacks/frame_functions.h"
#include "report/buffer_owners.h"
#include "report/json_rows.h"
#include "tables/last_dumps.h"

namespace heapprofd {
namespace {

using nlohmann::json;

struct Question {
  const char* name;
  const char* sql;
};

// What is told of the sizes and times of blocks.
constexpr size_t kMostBins = 20'000;
constexpr size_t kMostTemporary = 200;
constexpr size_t kMostHolders = 500;
constexpr size_t kMostIdle = 200;  // call sites of each last dump
constexpr size_t kMostErrors = 20'000;
constexpr size_t kMostFigures = 20'000;
constexpr size_t kMostBufferGroups = 2000;
constexpr size_t kMostNamedFunctions = 20;
constexpr size_t kMostNameCharacters = 1000;

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
     "peak_ts, idle_ts, idle_until_ts, idle_unseen_size, "
     "sampling_interval, original_sampling_interval, client_error, is_peak, is_complete, "
     "from_startup, rejected_concurrent, disconnected, buffer_overran, "
     "buffer_corrupted, hit_guardrail, allocator, allocator_system_size, "
     "allocator_in_use_size, allocator_free_size FROM (SELECT *, row_number() OVER "
     "(PARTITION BY upid, heap_name ORDER BY id DESC) - 1 AS newer, count(*) OVER () AS "
     "total FROM heap_dump) WHERE newer % (1 + total / 20000) = 0 OR label IS NOT NULL "
     "ORDER BY newer > 0, label IS NULL, iif(newer = 0, -alloc_size, newer) LIMIT 20000"},
    {"processes",
     "SELECT upid, pid, substr(name, 1, 4096) AS name, substr(cmdline, 1, 4096) AS "
     "cmdline, start_ts FROM process WHERE upid IN (SELECT upid FROM heap_dump UNION "
     "SELECT upid "
     "FROM heap_graph) LIMIT 5000"},
    // Of each last dump at least those that have trees.
    {"threads",
     "SELECT dump_id, tid, thread_name, live_size, live_count, alloc_size, alloc_count "
     "FROM (SELECT dump_id, tid, substr(thread_name, 1, 1000) AS thread_name, live_size, "
     "live_count, alloc_size, alloc_count, row_number() OVER (PARTITION BY dump_id ORDER "
     "BY live_size DESC, alloc_size DESC) AS place FROM heap_profile_thread WHERE "
     "dump_id "
     "IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY upid, heap_name "
     "ORDER BY ts DESC, id DESC) AS newer FROM heap_dump) WHERE newer = 1)) ORDER BY "
     "place > 16, dump_id, place LIMIT 2000"},
    // Of too many every n-th, counted from each process's last one, which is there.
    {"memory",
     "SELECT ts, upid, name, value FROM (SELECT *, row_number() OVER (PARTITION BY upid "
     "ORDER BY ts DESC) - 1 AS newer, count(*) OVER () AS total FROM process_memory "
     "WHERE name = 'mem.rss' AND upid IN (SELECT upid FROM heap_dump)) WHERE newer % (1 "
     "+ total / 40000) = 0 ORDER BY newer > 0, ts LIMIT 60000"},
    {"counts",
     "SELECT (SELECT count(*) FROM heap_dump) AS dumps, (SELECT count(*) FROM "
     "process_memory WHERE name = 'mem.rss' AND upid IN (SELECT upid FROM heap_dump)) AS "
     "memory, (SELECT count(*) FROM heap_graph) AS graphs"},
};

json NumberOrNull(double value) {
  return std::isfinite(value) ? json(value) : json();
}

// At most so many characters of it, and as many bytes as those can have: what is no UTF-8
// may consist of continuations alone.
std::string_view Begin(std::string_view text, size_t count) {
  constexpr size_t kMostBytes = 4;
  text = text.substr(0, kMostBytes * count);
  size_t at = 0;
  for (; at < text.size(); ++at) {
    const bool goes_on = (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
    if (!goes_on && count-- == 0)
      break;
  }
  return text.substr(0, at);
}

// Stacks as the names of their functions, those of call trees.
class StackTexts {
 public:
  explicit StackTexts(const ImportedTrace& trace)
      : trace_(trace), functions_(trace, NameStyle::kDemangled) {}

  // The innermost functions first, the allocation function left out.
  json Of(uint32_t callsite) {
    text_.clear();
    names_ = 0;
    if (trace_.stacks.row_count() > 0) {
      const std::span<const uint32_t> frames = trace_.stacks.FramesOf(callsite);
      for (size_t i = 1; i < frames.size(); ++i)
        Add(frames[frames.size() - 1 - i]);
    } else {
      uint32_t at = trace_.callsites.parent[callsite];
      for (; at != kNoId && names_ < kMostNamedFunctions;
           at = trace_.callsites.parent[at])
        Add(trace_.callsites.frame[at]);
    }
    return text_.empty() ? json() : json(text_);
  }

 private:
  void Add(uint32_t frame) {
    for (const uint32_t function : functions_.At(frame)) {
      if (names_++ < kMostNamedFunctions)
        text_ += (text_.empty() ? "" : "←") + NameOf(functions_.table()[function]);
    }
  }

  // Without a name its file's, without directories.
  std::string NameOf(const TreeFunction& function) const {
    const std::string_view name = functions_.names()->Get(function.name);
    if (name != "unknown")
      return std::string(Begin(name, kMostNameCharacters));
    std::string file = "[";
    file += FileName(trace_.Text(function.mapping_name));
    return std::string(Begin(file + "]", kMostNameCharacters));
  }

  const ImportedTrace& trace_;
  FrameFunctions functions_;
  std::string text_;
  size_t names_ = 0;
};

// Rows of heap_profile_histogram, each with its stack.
json StacksOfRows(const ShapeTable& shapes,
                  const std::vector<uint32_t>& ids,
                  StackTexts& stacks) {
  json rows = json::array();
  for (const uint32_t id : ids) {
    const auto kind = static_cast<ShapeKind>(shapes.kind[id]);
    const ShapeSum sum = SumOfThreads(shapes, id);
    rows.push_back({shapes.dump[id], NameOf(kind), LowOf(kind, shapes.log2[id]),
                    sum.count, sum.size, NumberOrNull(std::sqrt(sum.variance)),
                    stacks.Of(shapes.callsite[id])});
  }
  return {
      {"columns", {"dump_id", "kind", "low", "count", "size", "count_error", "stack"}},
      {"rows", std::move(rows)}};
}

// Of the last dump of each heap the variances of all its callsites, as
// heap_profile_estimate has them.
json ErrorFacts(const ImportedTrace& trace) {
  json answer = {{"columns",
                  {"dump_id", "live_size_variance", "live_count_variance",
                   "alloc_size_variance", "alloc_count_variance"}},
                 {"rows", json::array()}};
  for (const uint32_t id : LastDumps(trace)) {
    const ImportedDump& dump = trace.dumps[id];
    if (dump.estimate_count == 0 || answer["rows"].size() == kMostErrors)
      continue;
    const auto variance_of = [&dump](const Column<double>& errors) {
      double sum = 0;
      for (const double error :
           errors.span().subspan(dump.first_estimate, dump.estimate_count))
        sum += error * error;
      return NumberOrNull(sum);
    };
    const EstimateTable& estimates = trace.estimates;
    answer["rows"].push_back({id, variance_of(estimates.live_bytes_error),
                              variance_of(estimates.live_count_error),
                              variance_of(estimates.allocated_bytes_error),
                              variance_of(estimates.alloc_count_error)});
  }
  return answer;
}

// Of the last dump of each heap what nobody has touched lately: in all, and the call sites
// that hold most of it.
void AddIdleFacts(const ImportedTrace& trace, StackTexts& stacks, json* facts) {
  json sums = json::array();
  json rows = json::array();
  const std::span<const int64_t> idle = trace.estimates.idle_bytes.span();
  for (const uint32_t id : LastDumps(trace)) {
    const ImportedDump& dump = trace.dumps[id];
    if (!dump.idle_ts || sums.size() == kMostErrors)
      continue;
    double sum = 0;  // files may say anything
    std::vector<size_t> holders;
    for (size_t row = dump.first_estimate;
         row < dump.first_estimate + dump.estimate_count; ++row) {
      if (idle[row] <= 0)
        continue;
      sum += static_cast<double>(idle[row]);
      holders.push_back(row);
    }
    sums.push_back({id, sum});
    std::ranges::stable_sort(holders, std::ranges::greater(),
                             [&idle](size_t row) { return idle[row]; });
    holders.resize(std::min({holders.size(), kMostIdle, kMostBins - rows.size()}));
    for (const size_t row : holders)
      rows.push_back({id, idle[row], stacks.Of(trace.estimates.callsite[row])});
  }
  (*facts)["idle_sums"] = {{"columns", {"dump_id", "size"}}, {"rows", std::move(sums)}};
  (*facts)["idle"] = {{"columns", {"dump_id", "size", "stack"}},
                      {"rows", std::move(rows)}};
}

// All figures of the table that are not 0, of the last dump of each process.
json QualityFacts(const ImportedTrace& trace) {
  json rows = json::array();
  for (const auto& [upid, id] : LastDumpsWithQuality(trace)) {
    const Quality& quality = trace.qualities[trace.dumps[id].quality];
    for (const Figure& figure : kFigures) {
      const uint64_t value = quality.*figure.value;
      if (value != 0 && rows.size() < kMostFigures)
        rows.push_back({upid, figure.name, value, figure.meaning, figure.is_fault});
    }
  }
  return {{"columns", {"upid", "name", "value", "description", "is_fault"}},
          {"rows", std::move(rows)}};
}

// Stacks that read the same are one, and their sizes what a file says.
void AddBuffers(const BufferGroup& group, json* row) {
  const auto known = row->at(3).get<uint64_t>();
  const uint64_t sum = known + group.bytes;
  row->at(2) = row->at(2).get<uint64_t>() + group.buffers;
  row->at(3) = sum < known ? UINT64_MAX : sum;
}

Result<json> BufferFacts(TraceDatabase& database, StackTexts& stacks) {
  std::vector<json> rows;
  if (!database.trace().heap_graph.direct_buffers.empty()) {
    HPD_TRY_ASSIGN(const std::vector<BufferGroup> groups,
                   GroupBuffers(database.trace(), database.cancel_flag()));
    using Key = std::tuple<uint32_t, std::string_view, json>;
    std::map<Key, size_t> known;
    for (const BufferGroup& group : groups) {
      json stack = group.callsite == kNoId ? json() : stacks.Of(group.callsite);
      Key key(group.upid, group.owner, stack);
      auto row = known.find(key);
      if (row == known.end()) {
        if (rows.size() == kMostBufferGroups)
          continue;  // others may yet belong to those that are there
        row = known.emplace(std::move(key), rows.size()).first;
        rows.push_back({group.upid, Begin(group.owner, kMostNameCharacters), 0, 0,
                        std::move(stack)});
      }
      AddBuffers(group, &rows[row->second]);
    }
  }
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const json& row) { return row[3].get<uint64_t>(); });
  return json{{"columns", {"upid", "owner", "buffers", "bytes", "stack"}},
              {"rows", std::move(rows)}};
}

json HistogramFacts(const std::map<HistogramBin, HistogramSum>& sums) {
  json rows = json::array();
  for (const auto& [bin, sum] : sums) {
    if (rows.size() == kMostBins)
      break;
    rows.push_back({bin.dump, NameOf(bin.kind), bin.low, sum.high, sum.count, sum.size,
                    NumberOrNull(sum.variance)});
  }
  return {{"columns", {"dump_id", "kind", "low", "high", "count", "size", "variance"}},
          {"rows", std::move(rows)}};
}

// Of each size those who hold, or have allocated, most in blocks of it.
std::vector<uint32_t> SizeHolders(const std::map<HistogramBin, HistogramSum>& sums) {
  std::vector<SizedRow> holders;
  for (const auto& [bin, sum] : sums) {
    if (bin.kind == ShapeKind::kAllocatedSize || bin.kind == ShapeKind::kLiveSize)
      std::copy_if(sum.largest.begin(), sum.largest.end(), std::back_inserter(holders),
                   [](const SizedRow& holder) { return holder.row != kNoId; });
  }
  std::ranges::sort(holders, [](const SizedRow& a, const SizedRow& b) {
    return a.size != b.size ? a.size > b.size : a.row < b.row;
  });
  holders.resize(std::min(holders.size(), kMostHolders));
  std::vector<uint32_t> rows;
  rows.reserve(holders.size());
  for (const SizedRow& holder : holders)
    rows.push_back(holder.row);
  return rows;
}

Status Answer(TraceDatabase& database, const std::string& sql, json& answer) {
  JsonRows rows;
  HPD_TRY(database.Run(sql, rows));
  answer = std::move(rows.result);
  return {};
}

}  // namespace

Result<json> ReportFacts(TraceDatabase& database) {
  json facts = json::object();
  for (const Question& question : kQuestions)
    HPD_TRY(Answer(database, question.sql, facts[question.name]));
  const ShapeTable& shapes = database.trace().shapes;
  const std::map<HistogramBin, HistogramSum> sums = SumHistogram(shapes);
  facts["histogram"] = HistogramFacts(sums);
  facts["errors"] = ErrorFacts(database.trace());
  facts["quality"] = QualityFacts(database.trace());
  StackTexts stacks(database.trace());
  HPD_TRY_ASSIGN(facts["buffers"], BufferFacts(database, stacks));
  facts["temporary"] =
      StacksOfRows(shapes, LargestTemporary(shapes, kMostTemporary), stacks);
  facts["size_holders"] = StacksOfRows(shapes, SizeHolders(sums), stacks);
  AddIdleFacts(database.trace(), stacks, &facts);
  return facts;
}

}  // namespace heapprofd
