#include "cli/hprof/report_parts.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/format.h"
#include "base/print.h"

namespace heapprofd {

using nlohmann::json;

void PrintJson(const OpenedDump& opened, const char* name, json rows, json all) {
  all["file"] = opened.path;
  all["notes"] = opened.notes;
  all[name] = std::move(rows);
  PrintText(all.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

size_t Shown(size_t rows, const HprofView& view) {
  return view.top == 0 ? rows : std::min<size_t>(rows, view.top);
}

void PrintTotal(const OpenedDump& opened, uint64_t objects, uint64_t bytes) {
  Print(stdout, "%s: %s, %s\n\n", opened.path.c_str(),
        FormatCounted(static_cast<double>(objects), "object", "objects").c_str(),
        FormatBytes(static_cast<double>(bytes)).c_str());
}

std::string TitleOf(const Examined& examined, const OpenedDump& opened, uint32_t object) {
  return ObjectName(examined.heap, opened.file, object) + " " +
         hprof::HexOf(examined.heap.ids.IdOf(object));
}

json JsonOf(const Examined& examined, const OpenedDump& opened, uint32_t object) {
  return {{"class", ObjectName(examined.heap, opened.file, object)},
          {"address", hprof::HexOf(examined.heap.ids.IdOf(object))},
          {"bytes", examined.heap.graph.SizeOf(object)},
          {"retained", examined.retained[object]}};
}

json JsonOf(const Examined& examined, const OpenedDump& opened, const HoldingPath& path) {
  json list = json::array();
  for (const HoldingPath::Step& step : path.steps) {
    list.push_back(JsonOf(examined, opened, step.object));
    list.back()["reference"] = step.reference;
  }
  return list;
}

void PrintSteps(const Examined& examined,
                const OpenedDump& opened,
                const HoldingPath& path) {
  Print(stdout, "%s\n", path.root.c_str());
  for (const HoldingPath::Step& step : path.steps)
    Print(stdout, "  %s%s%s, retains %s\n", step.reference.c_str(),
          step.reference.empty() ? "" : " -> ",
          TitleOf(examined, opened, step.object).c_str(),
          FormatBytes(static_cast<double>(examined.retained[step.object])).c_str());
}

}  // namespace heapprofd
