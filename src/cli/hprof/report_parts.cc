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
  PrintData(all.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

size_t Shown(size_t rows, const HprofView& view) {
  return view.top == 0 ? rows : std::min<size_t>(rows, view.top);
}

void PrintTotal(const OpenedDump& opened, uint64_t objects, uint64_t bytes) {
  Print(stdout, "%s: %s, %s\n\n", opened.path.c_str(),
        FormatCounted(static_cast<double>(objects), "object", "objects").c_str(),
        FormatBytes(static_cast<double>(bytes)).c_str());
}

std::string TitleOf(const Examined& examined, uint32_t object) {
  return examined.heap->ObjectName(object) + " " + examined.heap->HandleOf(object);
}

json JsonOf(const Examined& examined, uint32_t object) {
  json row = {{"class", examined.heap->ObjectName(object)},
              {"bytes", examined.heap->graph().SizeOf(object)},
              {"retained", examined.retention.RetainedBy(object)}};
  examined.heap->Identify(object, &row);
  return row;
}

json JsonOf(const Examined& examined, const HoldingPath& path) {
  json list = json::array();
  for (const HoldingPath::Step& step : path.steps) {
    list.push_back(JsonOf(examined, step.object));
    list.back()["reference"] = step.reference;
  }
  return list;
}

void PrintSteps(const Examined& examined, const HoldingPath& path) {
  Print(stdout, "%s\n", path.root.c_str());
  PrintStepRows(examined, path);
}

void PrintStepRows(const Examined& examined, const HoldingPath& path) {
  for (const HoldingPath::Step& step : path.steps)
    Print(stdout, "  %s%s%s, retains %s\n", step.reference.c_str(),
          step.reference.empty() ? "" : " -> ", TitleOf(examined, step.object).c_str(),
          FormatBytes(static_cast<double>(examined.retention.RetainedBy(step.object)))
              .c_str());
}

}  // namespace heapprofd
