// Hostile dumps: whatever is in them, the graph holds together and sizes add up.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "hprof/convert.h"
#include "hprof/direct_buffers.h"
#include "hprof/find_objects.h"
#include "hprof/graph_contents.h"
#include "hprof/graph_tables.h"
#include "hprof/histogram.h"
#include "hprof/load_graph.h"
#include "hprof/object_values.h"
#include "hprof/strings/duplicate_strings.h"
#include "hprof/strings/string_texts.h"
#include "hprof/threads.h"
#include "object_graph/dominators.h"
#include "object_graph/paths.h"
#include "object_graph/suspects.h"

namespace heapprofd::hprof {
namespace {

// Of the first objects.
void CheckContents(const DumpFile& file, const HeapDump& dump, const HeapGraph& heap) {
  constexpr uint32_t kObjects = 10;
  constexpr size_t kMost = 20;
  std::vector<uint64_t> ids;
  for (uint32_t object = 0; object < std::min(kObjects, heap.graph.object_count());
       ++object) {
    ids.push_back(heap.ids.IdOf(object));
    const std::optional<ObjectValues> values =
        ValuesOf(file, dump, heap.census.classes, ids.back(), kMost);
    HPD_CHECK(!values ||
              values->values.size() <= std::min<uint64_t>(values->count, kMost));
  }
  HPD_CHECK(FindTexts(file, dump, heap.census.classes, ids, kMost).size() <= ids.size());
  for (const char* condition : {"a=1", "value~a", "value="}) {
    uint64_t used = 0;
    const Result<FoundObjects> found =
        FindObjects(file, dump, heap.census, {"*", {ParseCondition(condition).value()}},
                    [&used](const FoundObject& object) {
                      ++used;
                      for (const StringBytes& text : object.texts)
                        HPD_CHECK(TextOf(text, kMost).size() <= 3 * kMost);
                    });
    HPD_CHECK(!found.ok() || found.value().count == used);
  }
  uint64_t last = 0;
  for (const DirectBuffer& buffer : DirectBuffersOf(file, dump, heap)) {
    HPD_CHECK(buffer.object < heap.graph.object_count() && buffer.address > last);
    last = buffer.address;
  }
}

void CheckGraph(const DumpFile& file, const HeapDump& dump) {
  Result<HeapGraph> loaded = LoadGraph(file, dump);
  HPD_CHECK(loaded.ok());
  const HeapGraph& heap = loaded.value();
  Result<DominatorTree> found = FindDominators(heap.graph, std::atomic<bool>(false));
  HPD_CHECK(found.ok());
  const DominatorTree& tree = found.value();
  const Column<uint64_t> retained = RetainedSizes(heap.graph, tree);
  const Result<Retention> kept = FindRetention(heap.graph, std::atomic<bool>(false));
  HPD_CHECK(kept.ok());
  const Retention& retention = kept.value();
  std::vector<NamedReference> references;
  uint64_t reachable = 0;
  uint64_t held_by_roots = 0;
  for (const uint32_t object : tree.order) {
    reachable += heap.graph.SizeOf(object);
    held_by_roots += tree.dominator[object] == kHeldByRoots ? retained[object] : 0;
    HPD_CHECK(heap.ids.Find(heap.ids.IdOf(object)) == object);
    heap.graph.ForEachReference(object, [&](uint32_t target) {
      HPD_CHECK(tree.dominator[target] != kUnreachable);
      if (references.size() < 10)
        references.push_back({heap.ids.IdOf(object), heap.ids.IdOf(target), ""});
    });
  }
  HPD_CHECK(reachable == held_by_roots);
  for (const Suspect& suspect : FindSuspects(heap.graph, retention, reachable / 10 + 1)) {
    uint64_t bytes = 0;
    for (const SuspectPart& part : suspect.parts)
      bytes += part.bytes;
    HPD_CHECK(bytes == suspect.retained);
  }
  if (!tree.order.empty())
    HPD_CHECK(!NearestPaths(heap.graph, {tree.order[tree.order.size() - 1]})[0].empty());
  NameReferences(file, dump, heap.census, &references);
  for (const HeapThread& thread : ThreadsOf(file, dump, heap)) {
    HPD_CHECK(thread.object < heap.graph.object_count());
    for (const ThreadFrame& frame : thread.frames)
      HPD_CHECK(!file.names().DescribeFrame(frame.id).empty());
  }
  for (const GraphRoot& root : heap.graph.roots())
    HPD_CHECK(RootName(heap.roots[root.kind].tag) != nullptr);
  CheckContents(file, dump, heap);
}

// All that SQL could ask for.
void CheckValues(ObjectContents& contents, uint32_t object_count) {
  HPD_CHECK(contents.Load().ok());
  uint64_t fields = 0;
  for (uint32_t object = 0; object < object_count; ++object) {
    const uint64_t end = contents.FirstFieldOf(object + 1);
    for (; fields < end; ++fields) {
      HPD_CHECK(contents.OwnerOf(fields) == object);
      HPD_CHECK(NameOf(contents.TypeOf(fields)) != nullptr);
      static_cast<void>(contents.NameOf(fields));
      static_cast<void>(contents.ValueOf(fields));
    }
    static_cast<void>(contents.TextOf(object));
    const std::optional<NumberArray> array = contents.ArrayOf(object);
    const uint64_t bytes = array && array->has_data
                               ? uint64_t{array->length} * heapprofd::BytesOf(array->type)
                               : 0;
    HPD_CHECK(contents.DataOf(object).size() == bytes);
  }
  HPD_CHECK(fields == contents.field_count());
}

}  // namespace
}  // namespace heapprofd::hprof

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heapprofd;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const bool app_heap_only : {false, true})
    static_cast<void>(hprof::Convert(bytes, "fuzz", {app_heap_only},
                                     [](std::string_view) { return Status(); }));
  Result<hprof::DumpFile> file = hprof::DumpFile::Read(bytes, "fuzz");
  if (!file.ok())
    return 0;
  for (const hprof::HeapDump& dump : file.value().dumps()) {
    const hprof::HeapCensus census = TakeCensus(file.value(), dump);
    MakeHistogram(file.value(), census);
    const hprof::DuplicateStrings strings =
        FindDuplicateStrings(file.value(), dump, census, SIZE_MAX);
    HPD_CHECK(strings.wasted <= strings.bytes);
    hprof::CheckGraph(file.value(), dump);
  }
  ImportedTrace trace;
  TraceBuilder builder(&trace);
  std::vector<std::string> notes;
  const auto kept = std::make_shared<const hprof::KeptDump>(
      hprof::KeptDump{std::nullopt, std::move(file).value()});
  hprof::GraphSource source;
  hprof::GraphContentsList contents;
  source.kept = kept;
  source.contents = &contents;
  if (!hprof::AddGraphs(kept->file, source, &builder, &notes).ok())
    return 0;
  HPD_CHECK(contents.size() == trace.heap_graph.graphs.size());
  for (size_t i = 0; i < contents.size(); ++i)
    hprof::CheckValues(*contents[i], trace.heap_graph.graphs[i].object_count);
  return 0;
}
