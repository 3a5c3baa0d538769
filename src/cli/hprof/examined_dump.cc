#include "cli/hprof/examined_dump.h"

#include <atomic>
#include <charconv>
#include <utility>

#include "object_graph/paths.h"

namespace heapprofd {

using hprof::HeapGraph;

namespace {

std::string RootOf(const HeapGraph& heap, uint32_t object) {
  for (const GraphRoot& root : heap.graph.roots()) {
    if (root.object == object)
      return hprof::RootName(heap.roots[root.kind].tag);
  }
  return "";
}

}  // namespace

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

std::string ObjectName(const HeapGraph& heap,
                       const hprof::DumpFile& file,
                       uint32_t object) {
  const std::string name = NameOf(heap, object);
  const uint64_t id = heap.ids.IdOf(object);
  return name == hprof::kClassClass && file.HasName(id) ? "class " + file.ClassName(id)
                                                        : name;
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

std::vector<HoldingPath> HoldingPaths(const OpenedDump& opened,
                                      const Examined& examined,
                                      const std::vector<uint32_t>& objects) {
  const HeapGraph& heap = examined.heap;
  const std::vector<ObjectPath> paths = NearestPaths(heap.graph, objects);
  std::vector<hprof::NamedReference> references;
  for (const ObjectPath& path : paths) {
    for (size_t i = 1; i < path.size(); ++i)
      references.push_back({heap.ids.IdOf(path[i - 1]), heap.ids.IdOf(path[i]), ""});
  }
  NameReferences(opened.file, *opened.dump, heap.census, &references);
  std::vector<HoldingPath> result;
  auto reference = references.begin();
  for (const ObjectPath& path : paths) {
    HoldingPath& holding = result.emplace_back();
    holding.root = path.empty() ? "" : RootOf(heap, path.front());
    for (size_t i = 0; i < path.size(); ++i)
      holding.steps.push_back({path[i], i == 0 ? "" : std::move((reference++)->name)});
  }
  return result;
}

}  // namespace heapprofd
