// A heap as JSON for speedscope.app.

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "export/formats.h"
#include "export/stack_functions.h"

namespace heapprofd {
namespace {

using Json = nlohmann::ordered_json;

Json FramesOf(const StackFunctions& functions) {
  Json frames = Json::array();
  for (const ExportedFunction& function : functions.functions()) {
    Json frame = {{"name", function.name}};
    if (!function.file.empty())
      frame["file"] = function.file;
    if (!function.file.empty() && function.line != 0)
      frame["line"] = function.line;
    frames.push_back(std::move(frame));
  }
  return frames;
}

}  // namespace

std::string EncodeSpeedscope(const ExportedHeap& heap) {
  const StackFunctions functions(heap.profile);
  Json samples = Json::array();
  Json weights = Json::array();
  int64_t total = 0;
  for (const auto& [callsite, totals] : heap.dump.callsites) {
    const int64_t value = ValueOf(totals, heap.view);
    if (value == 0)
      continue;
    samples.push_back(functions.Of(callsite));
    weights.push_back(value);
    total += value;
  }
  const bool is_space = heap.view == View::kSpace || heap.view == View::kAllocSpace;
  const Json json = {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
                     {"exporter", "heap_profile"},
                     {"name", ToUtf8(heap.title)},
                     {"shared", {{"frames", FramesOf(functions)}}},
                     {"profiles", Json::array({{{"type", "sampled"},
                                                {"name", ToUtf8(heap.title)},
                                                {"unit", is_space ? "bytes" : "none"},
                                                {"startValue", 0},
                                                {"endValue", total},
                                                {"samples", std::move(samples)},
                                                {"weights", std::move(weights)}}})}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace heapprofd
