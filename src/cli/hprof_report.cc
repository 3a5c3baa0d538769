#include "cli/hprof_report.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/print.h"
#include "hprof/histogram.h"
#include "hprof/load_graph.h"
#include "hprof/merge.h"
#include "object_graph/dominators.h"
#include "object_graph/paths.h"

namespace heapprofd {
namespace {

using hprof::HeapGraph;
using nlohmann::json;

// `rows` and what is true of all of the dump.
void PrintJson(const OpenedDump& opened, const char* name, json rows, json all) {
  all["file"] = opened.path;
  all["notes"] = opened.notes;
  all[name] = std::move(rows);
  PrintText(all.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

void AddDamage(const hprof::HeapCensus& census, OpenedDump* opened) {
  constexpr size_t kMostNotes = 10;
  std::vector<std::string>& notes = opened->notes;
  for (const std::string& damage : census.damage) {
    opened->is_damaged = true;
    if (std::find(notes.begin(), notes.end(), damage) == notes.end() &&
        notes.size() < kMostNotes)
      notes.push_back(damage);
  }
  if (opened->is_damaged)
    notes.push_back("what follows is of the " + std::to_string(census.objects) +
                    " objects that could be read");
}

// The graph of a dump and who dominates whom in it.
struct Examined {
  HeapGraph heap;
  DominatorTree tree;
  Column<uint64_t> retained;
  uint64_t total = 0;
};

Result<Examined> Examine(OpenedDump* opened) {
  HPD_TRY_ASSIGN(HeapGraph heap, LoadGraph(opened->file, *opened->dump));
  AddDamage(heap.census, opened);
  const std::atomic<bool> cancelled = false;
  HPD_TRY_ASSIGN(DominatorTree tree, FindDominators(heap.graph, cancelled));
  Column<uint64_t> retained = RetainedSizes(heap.graph, tree);
  uint64_t total = 0;
  for (const uint32_t object : tree.order)
    total += tree.dominator[object] == kHeldByRoots ? retained[object] : 0;
  return Examined{std::move(heap), std::move(tree), std::move(retained), total};
}

std::string NameOf(const HeapGraph& heap, uint32_t object) {
  return heap.graph.types()[heap.graph.TypeOf(object)].name;
}

// "class java.lang.String" for the object that stands for a class.
std::string ObjectName(const HeapGraph& heap,
                       const hprof::DumpFile& file,
                       uint32_t object) {
  const std::string name = NameOf(heap, object);
  const uint64_t id = heap.ids.IdOf(object);
  return name == hprof::kClassClass && file.HasName(id) ? "class " + file.ClassName(id)
                                                        : name;
}

struct RetainedRow {
  hprof::HistogramRow row;
  uint64_t retained = 0;
};

// By type: the first one of the same name. Different loaders may have loaded the others.
std::vector<uint32_t> FirstOfName(const ObjectGraph& graph) {
  std::unordered_map<std::string_view, uint32_t> first_of;
  std::vector<uint32_t> first;
  for (const ObjectType& type : graph.types())
    first.push_back(first_of.try_emplace(type.name, static_cast<uint32_t>(first.size()))
                        .first->second);
  return first;
}

std::vector<RetainedRow> RetainedHistogram(const Examined& examined) {
  const ObjectGraph& graph = examined.heap.graph;
  const std::vector<uint32_t> row_of = FirstOfName(graph);
  const std::vector<uint64_t> retained =
      RetainedByGroup(graph, examined.tree, examined.retained, row_of);
  std::vector<RetainedRow> rows(row_of.size());
  for (uint32_t object = 0; object < graph.object_count(); ++object) {
    hprof::HistogramRow& row = rows[row_of[graph.TypeOf(object)]].row;
    ++row.objects;
    row.bytes += graph.SizeOf(object);
  }
  for (size_t type = 0; type < rows.size(); ++type) {
    rows[type].row.name = graph.types()[type].name;
    rows[type].retained = retained[type];
  }
  std::erase_if(rows, [](const RetainedRow& row) { return row.row.objects == 0; });
  std::sort(rows.begin(), rows.end(), [](const RetainedRow& a, const RetainedRow& b) {
    return a.retained > b.retained;
  });
  return rows;
}

Result<uint32_t> FindObject(const Examined& examined, const std::string& text) {
  const HeapGraph& heap = examined.heap;
  uint32_t found = kNoObject;
  if (text.starts_with("0x")) {
    uint64_t id = 0;
    const auto [end, error] =
        std::from_chars(text.data() + 2, text.data() + text.size(), id, 16);
    if (error == std::errc() && end == text.data() + text.size())
      found = heap.ids.Find(id);
  } else {
    std::vector<bool> is_meant;  // by type
    for (const ObjectType& type : heap.graph.types())
      is_meant.push_back(type.name == text);
    for (uint32_t object = 0; object < heap.graph.object_count(); ++object) {
      if (is_meant[heap.graph.TypeOf(object)] &&
          (found == kNoObject || examined.retained[object] > examined.retained[found]))
        found = object;
    }
  }
  if (found == kNoObject)
    return Status(StatusCode::kNotFound,
                  "cannot find " + text +
                      " in the dump: no object has this address or class; heap_profile "
                      "hprof histogram --top 0 lists the classes");
  return found;
}

size_t Shown(size_t rows, const HprofView& view) {
  return view.top == 0 ? rows : std::min<size_t>(rows, view.top);
}

void PrintTotal(const OpenedDump& opened, uint64_t objects, uint64_t bytes) {
  Print(stdout, "%s: %s objects, %s\n\n", opened.path.c_str(),
        FormatCount(static_cast<double>(objects)).c_str(),
        FormatBytes(static_cast<double>(bytes)).c_str());
}

Status PrintRetainedHistogram(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(&opened));
  const std::vector<RetainedRow> rows = RetainedHistogram(examined);
  const size_t shown = Shown(rows.size(), view);
  const uint64_t objects = examined.heap.graph.object_count();
  uint64_t bytes = 0;
  for (const RetainedRow& row : rows)
    bytes += row.row.bytes;
  if (view.json) {
    json list = json::array();
    for (size_t i = 0; i < shown; ++i)
      list.push_back({{"class", rows[i].row.name},
                      {"objects", rows[i].row.objects},
                      {"bytes", rows[i].row.bytes},
                      {"retained", rows[i].retained}});
    PrintJson(
        opened, "classes", std::move(list),
        {{"objects", objects}, {"bytes", bytes}, {"reachable_bytes", examined.total}});
    return {};
  }
  PrintTotal(opened, objects, bytes);
  Print(stdout, "%12s %12s %14s  %s\n", "objects", "bytes", "retained", "class");
  for (size_t i = 0; i < shown; ++i)
    Print(stdout, "%12llu %12llu %14llu  %s\n",
          static_cast<unsigned long long>(rows[i].row.objects),
          static_cast<unsigned long long>(rows[i].row.bytes),
          static_cast<unsigned long long>(rows[i].retained), rows[i].row.name.c_str());
  return {};
}

// Objects that `above` dominates immediately, those that retain most first.
std::vector<uint32_t> DominatedBy(const Examined& examined, uint32_t above) {
  std::vector<uint32_t> objects;
  for (const uint32_t object : examined.tree.order) {
    if (examined.tree.dominator[object] == above)
      objects.push_back(object);
  }
  std::stable_sort(objects.begin(), objects.end(), [&](uint32_t a, uint32_t b) {
    return examined.retained[a] > examined.retained[b];
  });
  return objects;
}

json JsonOf(const Examined& examined, const OpenedDump& opened, uint32_t object) {
  return {{"class", ObjectName(examined.heap, opened.file, object)},
          {"address", hprof::HexOf(examined.heap.ids.IdOf(object))},
          {"bytes", examined.heap.graph.SizeOf(object)},
          {"retained", examined.retained[object]}};
}

// ".next" for each step of a path.
std::vector<std::string> ReferenceNames(const OpenedDump& opened,
                                        const HeapGraph& heap,
                                        const std::vector<uint32_t>& path) {
  std::vector<hprof::NamedReference> references;
  for (size_t i = 1; i < path.size(); ++i)
    references.push_back({heap.ids.IdOf(path[i - 1]), heap.ids.IdOf(path[i]), ""});
  NameReferences(opened.file, *opened.dump, heap.census, &references);
  std::vector<std::string> names = {""};
  for (hprof::NamedReference& reference : references)
    names.push_back(std::move(reference.name));
  return names;
}

std::string RootOf(const HeapGraph& heap, uint32_t object) {
  for (const GraphRoot& root : heap.graph.roots()) {
    if (root.object == object)
      return hprof::RootName(heap.roots[root.kind].tag);
  }
  return "";
}

}  // namespace

Result<OpenedDump> OpenDump(const std::string& path, uint64_t number) {
  std::vector<std::string> notes;
  HPD_TRY_ASSIGN(hprof::MappedInput input, hprof::OpenWhole(path, &notes));
  HPD_TRY_ASSIGN(OpenedDump opened, OpenDump(std::move(input), path, number));
  opened.notes.insert(opened.notes.begin(), notes.begin(), notes.end());
  return opened;
}

Result<OpenedDump> OpenDump(hprof::MappedInput input,
                            const std::string& path,
                            uint64_t number) {
  HPD_TRY_ASSIGN(hprof::DumpFile file, hprof::DumpFile::Read(input.bytes(), path));
  const size_t count = file.dumps().size();
  if (count == 0)
    return Status(StatusCode::kNotFound,
                  "cannot examine " + path + ": it has no heap dump" +
                      (file.damage().empty() ? "" : "; " + file.damage()));
  if (number > count)
    return Invalid("cannot examine dump " + std::to_string(number) + " of " + path +
                   ": it has " + std::to_string(count));
  OpenedDump opened{path, std::move(input), std::move(file), nullptr, {}, false};
  const size_t at = number == 0 ? count - 1 : number - 1;
  opened.dump = &opened.file.dumps()[at];
  if (count > 1 && number == 0)
    opened.notes.push_back("it has " + std::to_string(count) +
                           " dumps, of which this is the last; --dump 1 is the first");
  for (const std::string& damage : {opened.input.damage(), opened.file.damage()}) {
    if (!damage.empty())
      opened.notes.push_back(damage);
    opened.is_damaged = opened.is_damaged || !damage.empty();
  }
  return opened;
}

Status PrintHistogram(OpenedDump& opened, const HprofView& view) {
  if (view.retained)
    return PrintRetainedHistogram(opened, view);
  const hprof::HeapCensus census = TakeCensus(opened.file, *opened.dump);
  AddDamage(census, &opened);
  const std::vector<hprof::HistogramRow> rows = MakeHistogram(opened.file, census);
  uint64_t bytes = 0;
  for (const hprof::HistogramRow& row : rows)
    bytes += row.bytes;
  const size_t shown = Shown(rows.size(), view);
  if (view.json) {
    json list = json::array();
    for (size_t i = 0; i < shown; ++i)
      list.push_back({{"class", rows[i].name},
                      {"objects", rows[i].objects},
                      {"bytes", rows[i].bytes}});
    PrintJson(opened, "classes", std::move(list),
              {{"objects", census.objects}, {"bytes", bytes}});
    return {};
  }
  PrintTotal(opened, census.objects, bytes);
  Print(stdout, "%12s %14s  %s\n", "objects", "bytes", "class");
  for (size_t i = 0; i < shown; ++i)
    Print(stdout, "%12llu %14llu  %s\n", static_cast<unsigned long long>(rows[i].objects),
          static_cast<unsigned long long>(rows[i].bytes), rows[i].name.c_str());
  return {};
}

Status PrintDominators(OpenedDump& opened,
                       const HprofView& view,
                       const std::string& object) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(&opened));
  uint32_t above = kHeldByRoots;
  if (!object.empty()) {
    HPD_TRY_ASSIGN(above, FindObject(examined, object));
  }
  const std::vector<uint32_t> objects = DominatedBy(examined, above);
  const size_t shown = Shown(objects.size(), view);
  if (view.json) {
    json list = json::array();
    for (size_t i = 0; i < shown; ++i)
      list.push_back(JsonOf(examined, opened, objects[i]));
    PrintJson(opened, "objects", std::move(list), {{"reachable_bytes", examined.total}});
    return {};
  }
  PrintTotal(opened, examined.tree.order.size(), examined.total);
  Print(stdout, "%14s %6s %10s  %s\n", "retained", "share", "bytes", "object");
  for (size_t i = 0; i < shown; ++i) {
    const uint64_t retained = examined.retained[objects[i]];
    Print(stdout, "%14llu %6s %10llu  %s %s\n", static_cast<unsigned long long>(retained),
          FormatShare(static_cast<double>(retained), static_cast<double>(examined.total))
              .c_str(),
          static_cast<unsigned long long>(examined.heap.graph.SizeOf(objects[i])),
          ObjectName(examined.heap, opened.file, objects[i]).c_str(),
          hprof::HexOf(examined.heap.ids.IdOf(objects[i])).c_str());
  }
  return {};
}

Status PrintPath(OpenedDump& opened, const HprofView& view, const std::string& target) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(&opened));
  HPD_TRY_ASSIGN(const uint32_t object, FindObject(examined, target));
  const std::vector<uint32_t> path = NearestPath(examined.heap.graph, object);
  const std::vector<std::string> names = ReferenceNames(opened, examined.heap, path);
  const std::string root = path.empty() ? "" : RootOf(examined.heap, path.front());
  if (view.json) {
    json list = json::array();
    for (size_t i = 0; i < path.size(); ++i) {
      list.push_back(JsonOf(examined, opened, path[i]));
      list.back()["reference"] = names[i];
    }
    PrintJson(opened, "path", std::move(list), {{"root", root}});
    return {};
  }
  if (path.empty())
    Print(stdout, "%s is not held by any root: it is garbage\n", target.c_str());
  else
    Print(stdout, "%s\n", root.c_str());
  for (size_t i = 0; i < path.size(); ++i)
    Print(stdout, "  %s%s%s %s, retains %s\n", names[i].c_str(),
          names[i].empty() ? "" : " -> ",
          ObjectName(examined.heap, opened.file, path[i]).c_str(),
          hprof::HexOf(examined.heap.ids.IdOf(path[i])).c_str(),
          FormatBytes(static_cast<double>(examined.retained[path[i]])).c_str());
  return {};
}

}  // namespace heapprofd
