#include "cli/hprof/find_report.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/hprof/report_parts.h"
#include "cli/text_layout.h"
#include "hprof/find_objects.h"

namespace heapprofd {
namespace {

using nlohmann::json;

// Characters of a text: for people, and in JSON as long as all together are not too many.
constexpr size_t kShownFoundText = 100;
constexpr size_t kJsonFoundText = 10'000;
constexpr size_t kAllJsonFoundText = size_t{64} << 20;

struct FoundRow {
  hprof::FoundObject object;
  uint64_t retained = 0;        // 0 unless asked for
  uint32_t number = kNoObject;  // in the graph, where there is one
};

// The largest of what is added, in bounded memory when their number is.
class LargestRows {
 public:
  explicit LargestRows(uint64_t most) : most_(most == 0 ? SIZE_MAX : most) {}

  void Add(FoundRow row) {
    rows_.push_back(std::move(row));
    if (rows_.size() / 2 >= most_)
      Cut();
  }

  std::vector<FoundRow>& Finish() {
    Cut();
    return rows_;
  }

 private:
  static bool IsLarger(const FoundRow& a, const FoundRow& b) {
    return a.retained != b.retained ? a.retained > b.retained
                                    : a.object.bytes > b.object.bytes;
  }

  void Cut() {
    std::stable_sort(rows_.begin(), rows_.end(), IsLarger);
    if (rows_.size() > most_)
      rows_.resize(most_);
  }

  const size_t most_;
  std::vector<FoundRow> rows_;
};

// Takes what it needs off `room`.
json JsonOfTexts(const std::vector<hprof::StringBytes>& texts,
                 size_t* room,
                 bool* is_cut) {
  json list = json::array();
  for (const hprof::StringBytes& text : texts) {
    const size_t most = *room < kJsonFoundText ? kShownFoundText : kJsonFoundText;
    list.push_back(hprof::TextOf(text, most));
    *is_cut = *is_cut || text.length() > most;
    *room -= std::min({*room, most, size_t{text.length()}});
  }
  return list;
}

// `heap`: of a trace, in which an id is no address; else nullptr.
json JsonOfFound(const std::vector<FoundRow>& rows,
                 bool with_retained,
                 const LoadedHeap* heap) {
  json list = json::array();
  size_t room = kAllJsonFoundText;
  for (const FoundRow& row : rows) {
    bool is_cut = false;
    json texts = JsonOfTexts(row.object.texts, &room, &is_cut);
    list.push_back({{"class", row.object.class_name},
                    {"bytes", row.object.bytes},
                    {"texts", std::move(texts)},
                    {"is_cut", is_cut}});
    if (heap != nullptr)
      heap->Identify(row.number, &list.back());
    else
      list.back()["address"] = hprof::HexOf(row.object.id);
    if (with_retained)
      list.back()["retained"] = row.retained;
  }
  return list;
}

void PrintFoundRows(const std::vector<FoundRow>& rows,
                    bool with_retained,
                    const LoadedHeap* heap) {
  Print(stdout, "%14s  %s\n", with_retained ? "retained" : "bytes", "object");
  for (const FoundRow& row : rows) {
    std::string line =
        row.object.class_name + " " +
        (heap != nullptr ? heap->HandleOf(row.number) : hprof::HexOf(row.object.id));
    for (const hprof::StringBytes& text : row.object.texts)
      line += " \"" +
              Cut(Printable(hprof::TextOf(text, kShownFoundText + 1)), kShownFoundText) +
              "\"";
    Print(
        stdout, "%14llu  %s\n",
        static_cast<unsigned long long>(with_retained ? row.retained : row.object.bytes),
        line.c_str());
  }
}

void PrintAllFound(const OpenedDump& opened,
                   const HprofView& view,
                   const hprof::FoundObjects& found,
                   const std::vector<FoundRow>& rows,
                   const LoadedHeap* heap) {
  if (view.json) {
    PrintJson(opened, "objects", JsonOfFound(rows, view.retained, heap),
              {{"all_objects", found.count}, {"bytes", found.bytes}});
    return;
  }
  PrintTotal(opened, found.count, found.bytes);
  PrintFoundRows(rows, view.retained, heap);
}

// By class only: nothing else is in a trace.
Status PrintFoundInTrace(OpenedDump& opened, const HprofView& view) {
  if (!view.conditions.empty())
    return Invalid("cannot find objects by " + view.conditions[0].field + " in " +
                   opened.path +
                   ": it is a trace, and what is in fields is not in it; leave the "
                   "condition out, or " +
                   kTakeDump);
  HPD_TRY_ASSIGN(const Examined examined, Examine(&opened));
  const ObjectGraph& graph = examined.heap->graph();
  const hprof::ClassPattern pattern(view.object);
  std::vector<bool> is_meant;
  for (const ObjectType& type : graph.types())
    is_meant.push_back(pattern.Matches(type.name));
  if (std::ranges::count(is_meant, true) == 0)
    return hprof::NoSuchClass(view.object);
  LargestRows rows(view.top);
  hprof::FoundObjects found;
  for (uint32_t object = 0; object < graph.object_count(); ++object) {
    if (!is_meant[graph.TypeOf(object)])
      continue;
    ++found.count;
    found.bytes += graph.SizeOf(object);
    rows.Add(
        {{.bytes = graph.SizeOf(object), .class_name = NameOf(*examined.heap, object)},
         view.retained ? examined.retention.RetainedBy(object) : 0,
         object});
  }
  PrintAllFound(opened, view, found, rows.Finish(), examined.heap.get());
  return {};
}

}  // namespace

Status PrintFound(OpenedDump& opened, const HprofView& view) {
  if (opened.is_of_trace())
    return PrintFoundInTrace(opened, view);
  const DumpOfFile& source = *opened.source;
  std::optional<Examined> examined;
  std::optional<hprof::HeapCensus> own_census;
  if (view.retained) {
    HPD_TRY_ASSIGN(examined, Examine(&opened));
  } else {
    own_census = hprof::TakeCensus(source.file, *source.dump);
    AddDamage(*own_census, &opened);
  }
  const hprof::HeapGraph* const heap = examined ? examined->heap->of_dump() : nullptr;
  LargestRows rows(view.top);
  HPD_TRY_ASSIGN(
      const hprof::FoundObjects found,
      hprof::FindObjects(
          source.file, *source.dump, heap != nullptr ? heap->census : *own_census,
          {view.object, view.conditions}, [&](hprof::FoundObject object) {
            const uint32_t row = heap != nullptr ? heap->ids.Find(object.id) : kNoObject;
            rows.Add({std::move(object),
                      row == kNoObject ? 0 : examined->retention.RetainedBy(row)});
          }));
  if (!found.is_whole)
    opened.notes.emplace_back(
        "parts of its texts are shared by so many strings that not all were compared");
  if (!found.has_all_fields)
    opened.notes.emplace_back("classes have more than " +
                              std::to_string(hprof::kMostNamesakes) +
                              " fields of a name: the others were not compared");
  PrintAllFound(opened, view, found, rows.Finish(), nullptr);
  return {};
}

}  // namespace heapprofd
