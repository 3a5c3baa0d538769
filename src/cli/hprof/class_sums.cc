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
  const ObjectGraph& graph = examined.heap->graph();
  const std::vector<uint32_t> row_of = FirstOfName(graph);
  const std::vector<uint64_t> retained =
      RetainedByGroup(graph, examined.retention, row_of);
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

std::vector<ClassRow> PlainRows(std::vector<hprof::HistogramRow> histogram) {
  std::vector<ClassRow> rows;
  rows.reserve(histogram.size());
  for (hprof::HistogramRow& row : histogram)
    rows.push_back({std::move(row.name), row.objects, row.bytes, 0});
  return rows;
}

// Of the objects that are meant.
template <typename IsMeant>
std::vector<ClassRow> RowsOf(const ObjectGraph& graph, IsMeant is_meant) {
  std::vector<hprof::HistogramRow> rows;
  rows.reserve(graph.types().size());
  for (const ObjectType& type : graph.types())
    rows.push_back({type.name});
  for (uint32_t object = 0; object < graph.object_count(); ++object) {
    if (!is_meant(object))
      continue;
    hprof::HistogramRow& row = rows[graph.TypeOf(object)];
    ++row.objects;
    row.bytes += graph.SizeOf(object);
  }
  std::erase_if(rows, [](const hprof::HistogramRow& row) { return row.objects == 0; });
  return PlainRows(hprof::SumByName(std::move(rows)));
}

// A dump needs no graph for that.
Result<std::vector<ClassRow>> AllRows(OpenedDump* opened) {
  if (!opened->is_of_trace()) {
    const DumpOfFile& source = *opened->source;
    const hprof::HeapCensus census = TakeCensus(source.file, *source.dump);
    AddDamage(census, opened);
    return PlainRows(MakeHistogram(source.file, census));
  }
  HPD_TRY_ASSIGN(const std::unique_ptr<LoadedHeap> heap, LoadHeap(opened));
  return RowsOf(heap->graph(), [](uint32_t) { return true; });
}

void AddRows(ClassSums* sums) {
  for (const ClassRow& row : sums->rows) {
    sums->objects += row.objects;
    sums->bytes += row.bytes;
  }
}

}  // namespace

Result<ClassSums> SumClasses(OpenedDump* opened, bool with_retained) {
  ClassSums sums;
  if (with_retained) {
    HPD_TRY_ASSIGN(const Examined examined, Examine(opened));
    sums.rows = RetainedRows(examined);
    sums.reachable_bytes = examined.retention.reachable_bytes();
  } else {
    HPD_TRY_ASSIGN(sums.rows, AllRows(opened));
  }
  AddRows(&sums);
  return sums;
}

Result<ClassSums> SumUnreachable(OpenedDump* opened) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(opened));
  ClassSums sums;
  sums.rows = RowsOf(examined.heap->graph(), [&examined](uint32_t object) {
    return examined.retention.DominatorOf(object) == kUnreachable;
  });
  AddRows(&sums);
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
