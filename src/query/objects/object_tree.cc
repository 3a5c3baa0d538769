#include "query/objects/object_tree.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "object_graph/dominators.h"

namespace heapprofd {
namespace {

constexpr uint32_t kObjectsPerCancelCheck = 1 << 14;

// Objects that `owner` holds, in order, each once.
void CollectHeld(const ImportedTrace& trace,
                 const ImportedHeapGraph& graph,
                 uint32_t owner,
                 std::vector<uint32_t>* held) {
  const HeapGraphTables& tables = trace.heap_graph;
  held->clear();
  const uint32_t first = tables.objects.first_reference[owner];
  const uint32_t count = first == kNoId ? 0 : tables.objects.reference_count[owner];
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t owned = tables.references.owned[first + i];
    if (owned != kNoId && owned >= graph.first_object &&
        owned - graph.first_object < graph.object_count &&
        !IsWeakReference(trace, owner, first + i))
      held->push_back(owned);
  }
  std::ranges::sort(*held);
  held->erase(std::unique(held->begin(), held->end()), held->end());
}

std::vector<uint32_t> SortedRoots(const ImportedTrace& trace,
                                  const ImportedHeapGraph& graph) {
  const HeapGraphTables& tables = trace.heap_graph;
  std::vector<uint32_t> roots;
  for (uint32_t i = 0; i < graph.object_count; ++i) {
    if (tables.objects.root_type[graph.first_object + i] != HeapRootType::kNone)
      roots.push_back(graph.first_object + i);
  }
  // Classes are fewer than objects, and their names may be long.
  std::map<std::string_view, std::vector<uint32_t>> by_name;
  std::map<uint32_t, std::vector<uint32_t>*> by_class;
  for (const uint32_t object : roots) {
    std::vector<uint32_t>*& same = by_class[tables.objects.type[object]];
    if (same == nullptr)
      same = &by_name[trace.Text(tables.classes[tables.objects.type[object]].name)];
    same->push_back(object);
  }
  roots.clear();
  for (const auto& [name, objects] : by_name)
    roots.insert(roots.end(), objects.begin(), objects.end());
  return roots;
}

}  // namespace

bool IsReferent(const ImportedTrace& trace, uint32_t reference) {
  return trace.Text(trace.heap_graph.references.field_name[reference]) == kReferentField;
}

bool IsWeakReference(const ImportedTrace& trace, uint32_t owner, uint32_t reference) {
  const HeapGraphTables& tables = trace.heap_graph;
  const HeapClassKind kind = tables.classes[tables.objects.type[owner]].kind;
  return (kind == HeapClassKind::kWeakReference ||
          kind == HeapClassKind::kFinalizerReference ||
          kind == HeapClassKind::kPhantomReference) &&
         IsReferent(trace, reference);
}

Result<ObjectTree> ShortestPathTree(const ImportedTrace& trace,
                                    uint32_t graph,
                                    const CancelFlag& cancelled) {
  const ImportedHeapGraph& row = trace.heap_graph.graphs[graph];
  std::vector<bool> is_reached(row.object_count, false);
  ObjectTree tree;
  tree.parent.resize(row.object_count, kNoId);
  const auto reach = [&](uint32_t object, uint32_t parent) {
    if (is_reached[object - row.first_object])
      return;
    is_reached[object - row.first_object] = true;
    tree.parent[object - row.first_object] = parent;
    tree.order.push_back(object);
  };
  for (const uint32_t root : SortedRoots(trace, row))
    reach(root, kNoId);
  std::vector<uint32_t> held;
  for (size_t next = 0; next < tree.order.size(); ++next) {
    if (next % kObjectsPerCancelCheck == 0 && cancelled)
      return WasCancelled();
    const uint32_t owner = tree.order[next];
    CollectHeld(trace, row, owner, &held);
    for (const uint32_t object : held)
      reach(object, owner);
  }
  return tree;
}

Result<ObjectTree> DominatorObjectTree(const ImportedTrace& trace,
                                       uint32_t graph,
                                       const CancelFlag& cancelled) {
  const ImportedHeapGraph& row = trace.heap_graph.graphs[graph];
  ObjectGraph references(row.object_count);
  references.AddType("");  // types are not asked for
  std::vector<uint32_t> held;
  for (uint32_t i = 0; i < row.object_count; ++i) {
    if (trace.heap_graph.objects.root_type[row.first_object + i] != HeapRootType::kNone)
      references.AddRoot(i, 0);
    CollectHeld(trace, row, row.first_object + i, &held);
    for (const uint32_t object : held)
      references.AddReference(object - row.first_object);
    references.EndReferences(i);
  }
  HPD_TRY_ASSIGN(const DominatorTree dominators, FindDominators(references, cancelled));
  ObjectTree tree;
  tree.parent.resize(row.object_count, kNoId);
  for (const uint32_t object : dominators.order) {
    const uint32_t dominator = dominators.dominator[object];
    tree.order.push_back(row.first_object + object);
    if (dominator != kHeldByRoots)
      tree.parent[object] = row.first_object + dominator;
  }
  return tree;
}

}  // namespace heapprofd
