#include "report/report_data.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "export/formats.h"
#include "query/allocators.h"
#include "query/dump_values.h"
#include "report/columns.h"
#include "report/example_queries.h"
#include "report/report_facts.h"
#include "report/report_functions.h"
#include "report/report_graphs.h"
#include "report/report_tree.h"
#include "report/stack_tree.h"

namespace heapprofd {
namespace {

using nlohmann::json;

// One moment of one heap, or of one thread in it.
struct Moment {
  uint32_t dump = 0;
  bool is_peak = false;   // what the estimates of the dump tell of the peak before it
  uint32_t utid = kNoId;  // kNoId: of all threads
  size_t rank = 0;        // 0: must be shown
};

constexpr size_t kRankOfThreads = 3;

using Heap = std::pair<uint32_t, StringId>;  // process, name

bool TellsPeak(const ImportedTrace& trace, const ImportedDump& dump) {
  const auto peaks =
      trace.estimates.peak_bytes.span().subspan(dump.first_estimate, dump.estimate_count);
  return std::any_of(peaks.begin(), peaks.end(), [](int64_t bytes) { return bytes > 0; });
}

// Those of a dump that hold, or have allocated, most; none where there are no two. Of a
// dump of the maximum it is not known which thread held what.
std::vector<uint32_t> ThreadsOf(const ImportedTrace& trace, uint32_t dump, size_t most) {
  std::vector<ThreadTotals> totals;
  const std::span<const uint32_t> dumps = trace.shapes.dump.span();
  if (trace.dumps[dump].is_peak || !std::binary_search(dumps.begin(), dumps.end(), dump))
    return {};
  for (auto row =
           std::ranges::lower_bound(trace.thread_totals, dump, {}, &ThreadTotals::dump);
       row != trace.thread_totals.end() && row->dump == dump; ++row) {
    if (row->utid != kNoId)
      totals.push_back(*row);
  }
  if (totals.size() < 2)
    return {};
  const auto size_of = [](const ThreadTotals& row) {
    const auto allocated = static_cast<double>(row.alloc_size);  // files may say anything
    return std::pair(allocated - static_cast<double>(row.free_size), allocated);
  };
  std::ranges::stable_sort(totals, std::ranges::greater(), size_of);
  std::vector<uint32_t> threads;
  for (size_t i = 0; i < std::min(most, totals.size()); ++i)
    threads.push_back(totals[i].utid);
  return threads;
}

// Of each heap the last dump, then its peak, then earlier dumps, then threads; of too
// many heaps those that changed in most places. `dump_ids`: those to choose from, ascending.
std::vector<Moment> MomentsOf(const ImportedTrace& trace,
                              const std::vector<uint32_t>& dump_ids,
                              const ReportOptions& options) {
  std::map<Heap, std::vector<uint32_t>> heaps;
  for (const uint32_t id : dump_ids)
    heaps[{trace.dumps[id].upid, trace.dumps[id].heap_name}].push_back(id);
  std::vector<Moment> moments;
  for (auto& [heap, dumps] : heaps) {
    std::ranges::stable_sort(dumps, {}, [&](uint32_t id) { return trace.dumps[id].ts; });
    const uint32_t last = dumps.back();
    moments.push_back({.dump = last, .is_peak = false, .rank = 0});
    if (TellsPeak(trace, trace.dumps[last]))
      moments.push_back({.dump = last, .is_peak = true, .rank = 1});
    for (const uint32_t utid : ThreadsOf(trace, last, options.max_threads))
      moments.push_back({.dump = last, .utid = utid, .rank = kRankOfThreads});
    dumps.pop_back();
    for (const uint32_t dump : ChosenDumps(trace, dumps, options.max_earlier_dumps))
      moments.push_back({.dump = dump, .is_peak = false, .rank = 2});
  }
  std::stable_sort(moments.begin(), moments.end(), [&](const Moment& a, const Moment& b) {
    return a.rank != b.rank ? a.rank < b.rank
                            : trace.dumps[a.dump].allocation_count >
                                  trace.dumps[b.dump].allocation_count;
  });
  moments.resize(std::min(moments.size(), options.max_trees));
  return moments;
}

ValuesByCallsite ValuesOf(const ImportedTrace& trace, const Moment& moment) {
  if (moment.is_peak)
    return PeakValuesAt(trace, moment.dump);
  if (moment.utid != kNoId)
    return ThreadValuesAt(trace, moment.dump, moment.utid);
  ValuesByCallsite values = ValuesAt(trace, moment.dump);
  AddVariances(trace, moment.dump, ProfileView::kLiveSize, &values);
  return values;
}

// The tree of a moment, made of whole stacks or of callsites.
class MomentTree {
 public:
  // `order`: of the trace's stacks; nullptr: it has callsites.
  static Result<MomentTree> Of(TraceDatabase& database,
                               const Moment& moment,
                               StackOrder* order) {
    const ImportedTrace& trace = database.trace();
    ValuesByCallsite values = ValuesOf(trace, moment);
    if (order != nullptr) {
      HPD_TRY_ASSIGN(StackTree tree,
                     StackTree::Of(*order, values, database.cancel_flag()));
      return MomentTree(std::move(tree));
    }
    MoveToCallers(trace, &values);
    HPD_TRY_ASSIGN(FlameTree tree,
                   BuildFlameTree(trace, std::move(values), {}, database.cancel_flag()));
    return MomentTree(std::move(tree));
  }

  size_t node_count() const {
    return flame_ ? flame_->nodes.size() : stacks_->node_count();
  }

  bool has_errors() const {
    return flame_ ? !flame_->variances.empty() : stacks_->has_errors();
  }

  Result<uint32_t> AppendTo(const ReportTreeLimits& limits,
                            ReportFunctions& functions,
                            std::string& out) const {
    if (flame_)
      return AppendReportTree(*flame_, limits, functions, out);
    return stacks_->AppendTo(limits, functions, out);
  }

 private:
  explicit MomentTree(FlameTree tree) : flame_(std::move(tree)) {}

  explicit MomentTree(StackTree tree) : stacks_(std::move(tree)) {}

  // One of them.
  std::optional<FlameTree> flame_;
  std::optional<StackTree> stacks_;
};

// nullopt: the trace has callsites, as it may have from now on.
Result<std::optional<StackOrder>> OrderOf(TraceDatabase& database, BegunOrder begun) {
  HPD_TRY_ASSIGN(std::optional<StackOrder> order, begun.get());
  if (!order)
    HPD_TRY(database.UseCallsites());
  return order;
}

// The trees, one behind the other, and what there is of them.
struct Trees {
  std::string bytes;
  json list = json::array();
  size_t room = 0;  // nodes that there may be still
};

Result<Trees> AppendTrees(TraceDatabase& database,
                          std::optional<StackOrder>& order,
                          const std::vector<uint32_t>& dump_ids,
                          const ReportOptions& options,
                          ReportFunctions& functions) {
  Trees trees;
  size_t& room = trees.room;
  room = options.max_nodes;
  const std::vector<Moment> moments = MomentsOf(database.trace(), dump_ids, options);
  const bool has_several =
      moments.size() > 1 && moments[1].rank < kRankOfThreads;  // they come last
  std::map<Heap, uint32_t> too_large;  // a heap's earliest dump whose tree had no room
  for (const Moment& moment : moments) {
    constexpr size_t kLeastNodes = 1000;
    if (room < kLeastNodes)
      break;
    // Later dumps have no fewer stacks: what was ever allocated stays.
    const ImportedDump& dump = database.trace().dumps[moment.dump];
    const auto known = too_large.find({dump.upid, dump.heap_name});
    if (moment.rank == 2 && known != too_large.end() && known->second < moment.dump)
      continue;
    HPD_TRY_ASSIGN(const MomentTree tree,
                   MomentTree::Of(database, moment, order ? &*order : nullptr));
    if (tree.node_count() == 0 && moment.rank == kRankOfThreads)
      continue;
    if (tree.node_count() > room && moment.rank > 1) {
      if (moment.rank == 2)
        too_large[{dump.upid, dump.heap_name}] = moment.dump;
      continue;
    }
    // The first of several trees leaves room for the others, but not for threads.
    const size_t limit =
        moment.rank == 0 && has_several ? std::max(room / 2, kLeastNodes) : room;
    const bool is_whole = tree.node_count() <= limit;
    HPD_TRY_ASSIGN(const uint32_t nodes, tree.AppendTo({limit}, functions, trees.bytes));
    room -= std::min<size_t>(room, nodes);
    trees.list.push_back({{"dump", moment.dump},
                          {"is_peak", moment.is_peak},
                          {"is_whole", is_whole},
                          {"has_errors", tree.has_errors()},
                          {"nodes", nodes}});
    if (moment.utid != kNoId)
      trees.list.back()["thread"] = database.trace().threads[moment.utid].tid;
  }
  return trees;
}

// The dumps that are told of: others have no tree either.
std::vector<uint32_t> DumpsIn(const json& facts) {
  std::vector<uint32_t> ids;
  for (const json& row : facts["dumps"]["rows"])
    ids.push_back(row[0].get<uint32_t>());
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

std::vector<uint32_t> ChosenDumps(const ImportedTrace& trace,
                                  const std::vector<uint32_t>& dumps,
                                  size_t count) {
  std::vector<uint32_t> chosen;
  std::vector<uint32_t> others;
  for (const uint32_t dump : dumps)
    (trace.dumps[dump].label != kNoId && chosen.size() < count ? chosen : others)
        .push_back(dump);
  const size_t room = std::min(count - chosen.size(), others.size());
  for (size_t i = 0; i < room; ++i)
    chosen.push_back(others[i * others.size() / room]);
  return chosen;
}

Result<BegunOrder> BeginOrder(TraceDatabase& database) {
  HPD_TRY(database.DecodeStacks());
  return std::async(std::launch::async | std::launch::deferred,
                    [&database]() -> Result<std::optional<StackOrder>> {
                      if (database.trace().stacks.row_count() == 0)
                        return std::optional<StackOrder>();
                      return StackOrder::Of(database.trace(), database.cancel_flag());
                    });
}

Result<std::string> EncodeReport(TraceDatabase& database,
                                 const ReportOptions& options,
                                 BegunOrder begun) {
  // Asking decodes what is left of the trace.
  HPD_TRY_ASSIGN(json facts, ReportFacts(database));
  HPD_TRY_ASSIGN(std::optional<StackOrder> order, OrderOf(database, std::move(begun)));
  ReportFunctions functions(database.trace());
  const ReportRoom kept = LeastRoomForGraphs(database.trace());
  ReportOptions of_heaps = options;
  of_heaps.max_nodes -= std::min(of_heaps.max_nodes, kept.nodes);
  of_heaps.max_trees -= std::min(of_heaps.max_trees, kept.trees);
  HPD_TRY_ASSIGN(Trees trees,
                 AppendTrees(database, order, DumpsIn(facts), of_heaps, functions));
  const ReportRoom room = {options.max_nodes - of_heaps.max_nodes + trees.room,
                           options.max_trees - trees.list.size()};
  facts["trees"] = std::move(trees.list);
  HPD_TRY(AppendGraphs(database, room, functions, &facts, trees.bytes));
  if (functions.TextBytes() > options.max_text_bytes)
    return Status(StatusCode::kUnavailable,
                  "cannot make the report: the names of its functions are longer than " +
                      std::to_string(options.max_text_bytes >> 20) +
                      " MiB together; heap_profile query reads the file");
  facts["version"] = options.version;
  facts["is_served"] = options.is_served;
  if (options.is_served) {
    for (const ExportFormat& format : kExportFormats)
      facts["export_formats"].push_back(format.name);
  }
  for (const ExampleQuery& example : kExampleQueries) {
    if (options.is_served)
      facts["examples"].push_back({example.title, example.sql});
  }
  if (!options.source.empty())
    facts["source"] = json::parse(options.source);
  facts["files"] = options.files;
  facts["file_ends"] = database.trace().file_ends;
  facts["warnings"] = options.warnings;
  json remedies = json::array();
  for (const UnnamedRemedy& remedy : options.remedies)
    remedies.push_back({remedy.upid, remedy.path, remedy.text});
  facts["remedies"] = {{"columns", {"upid", "path", "text"}},
                       {"rows", std::move(remedies)}};
  std::string bytes = "hpdrep1\n";
  // Texts of the trace may hold any bytes.
  AppendBlock(facts.dump(-1, ' ', false, json::error_handler_t::replace), bytes);
  functions.AppendTo(bytes);
  bytes += trees.bytes;
  return bytes;
}

}  // namespace heapprofd
