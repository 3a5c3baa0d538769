#include "cli/hprof/collection_report.h"

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

struct Fill {
  uint64_t arrays = 0;
  uint64_t unused = 0;  // of them: without any element that is set
  uint64_t places = 0;
  uint64_t empty = 0;  // of them

  void Add(const Fill& other) {
    arrays += other.arrays;
    unused += other.unused;
    places += other.places;
    empty += other.empty;
  }
};

struct FillRow {
  std::string holder;
  std::string array;
  Fill fill;
};

constexpr char kNoHolder[] = "several or none";

// Arrays by their type and by that of the object that holds them alone.
class FillCounter : public hprof::HeapVisitor {
 public:
  FillCounter(const Examined& examined, uint32_t id_bytes)
      : examined_(examined),
        graph_(examined.heap->graph()),
        ids_(examined.heap->of_dump()->ids),
        id_bytes_(id_bytes) {}

  void ObjectArray(const hprof::ObjectArrayRecord& record) {
    const uint32_t object = ids_.Find(record.id);
    if (object == kNoObject || examined_.retention.DominatorOf(object) == kUnreachable)
      return;
    Fill fill{1, 0, record.length, 0};
    for (uint32_t i = 0; i < record.length; ++i)
      fill.empty += static_cast<uint64_t>(
          hprof::GetId(record.elements + uint64_t{i} * id_bytes_, id_bytes_) == 0);
    fill.unused = static_cast<uint64_t>(fill.empty == fill.places);
    fills_[{HolderOf(object), graph_.TypeOf(object)}].Add(fill);
  }

  // Those of one name, which several loaders have loaded, together; what wastes most
  // first.
  std::vector<FillRow> Rows() const {
    std::map<std::pair<std::string, std::string>, Fill> by_name;
    for (const auto& [types, fill] : fills_)
      by_name[{types.first == kNoType ? kNoHolder : NameOf(types.first),
               NameOf(types.second)}]
          .Add(fill);
    std::vector<FillRow> rows;
    rows.reserve(by_name.size());
    for (const auto& [names, fill] : by_name)
      rows.push_back({names.first, names.second, fill});
    std::stable_sort(rows.begin(), rows.end(), [](const FillRow& a, const FillRow& b) {
      return a.fill.empty > b.fill.empty;
    });
    return rows;
  }

 private:
  static constexpr uint32_t kNoType = UINT32_MAX;

  std::string NameOf(uint32_t type) const { return graph_.types()[type].name; }

  uint32_t HolderOf(uint32_t object) const {
    const uint32_t above = examined_.retention.DominatorOf(object);
    return above == kHeldByRoots ? kNoType : graph_.TypeOf(above);
  }

  const Examined& examined_;
  const ObjectGraph& graph_;
  const AddressIndex& ids_;
  const uint32_t id_bytes_;
  std::map<std::pair<uint32_t, uint32_t>, Fill> fills_;  // by holder's type and own
};

}  // namespace

Status PrintCollections(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(&opened));
  FillCounter counter(examined, opened.source->file.id_bytes());
  WalkDump(opened.source->file, *opened.source->dump, counter);
  const std::vector<FillRow> rows = counter.Rows();
  const uint64_t place_bytes = examined.heap->of_dump()->census.layout.reference_bytes;
  Fill all;
  for (const FillRow& row : rows)
    all.Add(row.fill);
  const size_t shown = Shown(rows.size(), view);
  if (view.json) {
    json list = json::array();
    for (size_t i = 0; i < shown; ++i)
      list.push_back({{"holder", rows[i].holder},
                      {"class", rows[i].array},
                      {"arrays", rows[i].fill.arrays},
                      {"unused_arrays", rows[i].fill.unused},
                      {"places", rows[i].fill.places},
                      {"empty_places", rows[i].fill.empty},
                      {"wasted", rows[i].fill.empty * place_bytes}});
    PrintJson(opened, "collections", std::move(list),
              {{"arrays", all.arrays}, {"wasted", all.empty * place_bytes}});
    return {};
  }
  Print(stdout, "%s: %s of references, of whose places %s are empty: %s\n\n",
        opened.path.c_str(),
        FormatCounted(static_cast<double>(all.arrays), "array", "arrays").c_str(),
        FormatShare(static_cast<double>(all.empty), static_cast<double>(all.places))
            .c_str(),
        FormatBytes(static_cast<double>(all.empty * place_bytes)).c_str());
  Print(stdout, "%12s %6s %10s %10s  %s\n", "wasted", "filled", "arrays", "unused",
        "array, held by");
  for (size_t i = 0; i < shown; ++i) {
    const Fill& fill = rows[i].fill;
    const uint64_t wasted = fill.empty * place_bytes;
    Print(stdout, "%12llu %6s %10llu %10llu  %s, %s\n",
          static_cast<unsigned long long>(wasted),
          FormatShare(static_cast<double>(fill.places - fill.empty),
                      static_cast<double>(fill.places))
              .c_str(),
          static_cast<unsigned long long>(fill.arrays),
          static_cast<unsigned long long>(fill.unused), rows[i].array.c_str(),
          rows[i].holder.c_str());
  }
  return {};
}

}  // namespace heapprofd
