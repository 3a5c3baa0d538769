#include "cli/hprof/loader_report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/print.h"
#include "cli/hprof/report_parts.h"

namespace heapprofd {
namespace {

using nlohmann::json;

struct LoaderRow {
  ClassLoader loader;
  uint64_t classes = 0;
  uint64_t objects = 0;  // of these classes
  uint64_t bytes = 0;
  uint64_t retained = 0;
};

constexpr char kOwnLoader[] = "the virtual machine's own";

// By type: the loader of its class; nobody's are arrays of numbers. Classes of arrays come
// with those of what is in them, and are not counted.
std::vector<LoaderRow*> RowsOfTypes(const LoadedHeap& heap,
                                    std::map<ClassLoader, LoaderRow>* loaders) {
  std::vector<LoaderRow*> of_type(heap.graph().types().size(), nullptr);
  for (const LoadedClass& loaded : heap.Classes()) {
    LoaderRow& row = (*loaders)[loaded.loader];
    row.classes += loaded.is_counted ? 1u : 0u;
    if (loaded.type != LoadedClass::kNoType)
      of_type[loaded.type] = &row;
  }
  return of_type;
}

// Those that retain most first, and that of the virtual machine behind them.
std::vector<LoaderRow> LoadersOf(const Examined& examined) {
  const ObjectGraph& graph = examined.heap->graph();
  std::map<ClassLoader, LoaderRow> loaders;
  const std::vector<LoaderRow*> of_type = RowsOfTypes(*examined.heap, &loaders);
  for (uint32_t object = 0; object < graph.object_count(); ++object) {
    LoaderRow* const loader = of_type[graph.TypeOf(object)];
    if (loader == nullptr)
      continue;
    ++loader->objects;
    loader->bytes += graph.SizeOf(object);
  }
  std::vector<LoaderRow> rows;
  for (auto& [loader, row] : loaders) {
    row.loader = loader;
    row.retained =
        loader.object == kNoObject ? 0 : examined.retention.RetainedBy(loader.object);
    rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const LoaderRow& a, const LoaderRow& b) {
    return a.retained > b.retained;
  });
  return rows;
}

std::string LoaderName(const Examined& examined, const ClassLoader& loader) {
  if (loader.object != kNoObject)
    return TitleOf(examined, loader.object);
  return loader.missing == 0
             ? kOwnLoader
             : hprof::HexOf(loader.missing) + ", which the dump does not have";
}

json JsonOfLoader(const Examined& examined, const LoaderRow& row) {
  const uint32_t object = row.loader.object;
  return {{"loader", object == kNoObject ? json() : JsonOf(examined, object)},
          {"name", LoaderName(examined, row.loader)},
          {"classes", row.classes},
          {"objects", row.objects},
          {"bytes", row.bytes}};
}

}  // namespace

Status PrintLoaders(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(&opened));
  const std::vector<LoaderRow> rows = LoadersOf(examined);
  const size_t shown = Shown(rows.size(), view);
  if (view.json) {
    json list = json::array();
    for (size_t i = 0; i < shown; ++i)
      list.push_back(JsonOfLoader(examined, rows[i]));
    PrintJson(opened, "loaders", std::move(list), {{"all_loaders", rows.size()}});
    return {};
  }
  Print(stdout, "%s: %s\n\n", opened.path.c_str(),
        FormatCounted(static_cast<double>(rows.size()), "class loader", "class loaders")
            .c_str());
  Print(stdout, "%14s %8s %12s %14s  %s\n", "retained", "classes", "objects", "bytes",
        "loader");
  for (size_t i = 0; i < shown; ++i)
    Print(stdout, "%14s %8llu %12llu %14llu  %s\n",
          rows[i].loader.object == kNoObject ? "-"
                                             : std::to_string(rows[i].retained).c_str(),
          static_cast<unsigned long long>(rows[i].classes),
          static_cast<unsigned long long>(rows[i].objects),
          static_cast<unsigned long long>(rows[i].bytes),
          LoaderName(examined, rows[i].loader).c_str());
  return {};
}

}  // namespace heapprofd
