#include "cli/hprof/class_sums.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "cli/hprof/examined_dump.h"
#include "hprof/histogram.h"

namespace heapprofd {
namespace {

using nlohmann::json;

// By type: the first one of the same name. Different loaders may have loaded the others.
std::vector<uint32_t> FirstOfName(const ObjectGraph& graph) {
  std::unordered_map<std::string_view, uint32_t> first_of;
  std::vector<uint32_t> first;
  for (const ObjectType& type : graph.types())
    first.push_back(first_of.try_emplace(type.name, static_cast<uint32_t>(first.size()))
                        .first->second);
  return first;
}

std::vector<ClassRow> RetainedRows(const Examined& examined) {
  const ObjectGraph& graph = examined.heap.graph;
  const std::vector<uint32_t> row_of = FirstOfName(graph);
  const std::vector<uint64_t> retained =
      RetainedByGroup(graph, examined.tree, examined.retained, row_of);
  std::vector<ClassRow> rows(row_of.size());
  for (uint32_t object = 0; object < graph.object_count(); ++object) {
    ClassRow& row = rows[row_of[graph.TypeOf(object)]];
    ++row.objects;
    row.bytes += graph.SizeOf(object);
  }
  for (size_t type = 0; type < rows.size(); ++type) {
    rows[type].name = graph.types()[type].name;
    rows[type].retained = retained[type];
  }
  std::erase_if(rows, [](const ClassRow& row) { return row.objects == 0; });
  std::sort(rows.begin(), rows.end(),
            [](const ClassRow& a, const ClassRow& b) { return a.retained > b.retained; });
  return rows;
}

std::vector<ClassRow> PlainRows(OpenedDump* opened) {
  const hprof::HeapCensus census = TakeCensus(opened->file, *opened->dump);
  AddDamage(census, opened);
  std::vector<ClassRow> rows;
  for (hprof::HistogramRow& row : MakeHistogram(opened->file, census))
    rows.push_back({std::move(row.name), row.objects, row.bytes, 0});
  return rows;
}

}  // namespace

Result<ClassSums> SumClasses(OpenedDump* opened, bool with_retained) {
  ClassSums sums;
  if (with_retained) {
    HPD_TRY_ASSIGN(const Examined examined, Examine(opened));
    sums.rows = RetainedRows(examined);
    sums.reachable_bytes = examined.total;
  } else {
    sums.rows = PlainRows(opened);
  }
  for (const ClassRow& row : sums.rows) {
    sums.objects += row.objects;
    sums.bytes += row.bytes;
  }
  return sums;
}

json JsonOf(const ClassRow& row, bool with_retained) {
  json result = {{"class", row.name}, {"objects", row.objects}, {"bytes", row.bytes}};
  if (with_retained)
    result["retained"] = row.retained;
  return result;
}

json JsonOf(const ClassSums& sums, bool with_retained) {
  json result = {{"objects", sums.objects}, {"bytes", sums.bytes}};
  if (with_retained)
    result["reachable_bytes"] = sums.reachable_bytes;
  return result;
}

}  // namespace heapprofd
