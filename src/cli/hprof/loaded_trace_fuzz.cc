// Hostile traces with heap graphs: whatever refers to what, the views get a graph that
// holds together, and what they ask about its objects is answered.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/hprof/examined_dump.h"
#include "import/perfetto/trace_reader.h"
#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

constexpr uint32_t kFuzzedObjects = 200;  // that are asked about
constexpr size_t kFuzzedValues = 50;

void CheckObject(const Examined& examined, uint32_t object) {
  const LoadedHeap& heap = *examined.heap;
  const uint32_t found = heap.FindHandle(heap.HandleOf(object));
  HPD_CHECK(found == object || heap.ObjectName(object).starts_with("[native] "));
  nlohmann::json row;
  heap.Identify(object, &row);
  HPD_CHECK(row.size() == 1);
  const FieldValues values = heap.ValuesOf(object, kFuzzedValues, kFuzzedValues);
  HPD_CHECK(values.values.size() == std::min<uint64_t>(values.count, kFuzzedValues));
  for (const FieldValue& value : values.values)
    HPD_CHECK(value.object == kNoObject || value.object < heap.graph().object_count());
}

void CheckPaths(const Examined& examined, const std::vector<uint32_t>& objects) {
  const std::vector<HoldingPath> paths = HoldingPaths(examined, objects);
  for (size_t i = 0; i < paths.size(); ++i) {
    const bool is_held = examined.retention.DominatorOf(objects[i]) != kUnreachable;
    HPD_CHECK(paths[i].steps.empty() != is_held && paths[i].root.empty() != is_held);
    HPD_CHECK(!is_held || paths[i].steps.back().object == objects[i]);
  }
}

void CheckClasses(const LoadedHeap& heap) {
  const std::vector<ClassObject> classes = heap.ClassObjects();
  HPD_CHECK(std::ranges::is_sorted(classes, {}, &ClassObject::object));
  for (const ClassObject& described : classes) {
    HPD_CHECK(!described.name.empty());
    HPD_CHECK(described.object < heap.graph().object_count());
  }
  for (const LoadedClass& loaded : heap.Classes()) {
    HPD_CHECK(loaded.type == LoadedClass::kNoType ||
              loaded.type < heap.graph().types().size());
    HPD_CHECK(loaded.loader.object == kNoObject ||
              loaded.loader.object < heap.graph().object_count());
  }
}

void CheckHeap(OpenedDump& opened) {
  const Result<Examined> examined = Examine(&opened);
  HPD_CHECK(examined.ok());
  const LoadedHeap& heap = *examined.value().heap;
  std::vector<uint32_t> objects;
  for (uint32_t i = 0; i < std::min(heap.graph().object_count(), kFuzzedObjects); ++i) {
    objects.push_back(i);
    CheckObject(examined.value(), i);
  }
  CheckPaths(examined.value(), objects);
  CheckClasses(heap);
}

}  // namespace
}  // namespace heapprofd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heapprofd;  // NOLINT
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  OpenedDump opened{"fuzz", nullptr, std::make_unique<GraphOfTrace>()};
  TraceBuilder builder(&opened.trace->tables);
  builder.DeferDecoding();
  MemorySource source(bytes);
  static_cast<void>(ReadTrace(source, "fuzz", builder));
  const size_t graphs = opened.trace->tables.heap_graph.graphs.size();
  for (uint32_t graph = 0; graph < std::min<size_t>(graphs, 4); ++graph) {
    opened.trace->graph = graph;
    for (const hprof::Holding holding :
         {hprof::Holding::kStrong, hprof::Holding::kSoft, hprof::Holding::kWeak}) {
      opened.holding = holding;
      CheckHeap(opened);
    }
  }
  return 0;
}
