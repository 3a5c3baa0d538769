#include "cli/hprof/examined_dump.h"

#include <atomic>
#include <utility>

#include "object_graph/paths.h"
#include "profile/java_classes.h"

namespace heapprofd {

namespace {

// Of a dump that was cut: HotSpot writes roots behind the objects.
constexpr char kNoRoots[] =
    "no root could be read: who holds what cannot be told, as if all were garbage; "
    "histogram, object, find and strings need no roots";

std::string RootOf(const LoadedHeap& heap, uint32_t object) {
  for (const GraphRoot& root : heap.graph().roots()) {
    if (root.object == object)
      return heap.RootName(root.kind);
  }
  return "";
}

// "C" in "class C" and in "java.lang.Class<C>"; empty: it is neither.
std::string ClassNamedIn(const std::string& text) {
  constexpr std::string_view kWord = "class ";
  return text.starts_with(kWord) ? text.substr(kWord.size())
                                 : std::string(DescribedClass(text));
}

// Of two objects that which retains more; `found` may be none.
uint32_t LargerOf(const Examined& examined, uint32_t found, uint32_t other) {
  return found == kNoObject || examined.retention.RetainedBy(other) >
                                   examined.retention.RetainedBy(found)
             ? other
             : found;
}

}  // namespace

Result<Examined> Examine(OpenedDump* opened) {
  HPD_TRY_ASSIGN(std::unique_ptr<LoadedHeap> heap, LoadHeap(opened));
  if (heap->graph().roots().empty() && heap->graph().object_count() > 0)
    opened->notes.emplace_back(kNoRoots);
  const std::atomic<bool> cancelled = false;
  HPD_TRY_ASSIGN(Retention retention, FindRetention(heap->graph(), cancelled));
  return Examined{std::move(heap), std::move(retention)};
}

std::string NameOf(const LoadedHeap& heap, uint32_t object) {
  return heap.graph().types()[heap.graph().TypeOf(object)].name;
}

std::vector<bool> TypesNamed(const ObjectGraph& graph, const std::string& name) {
  std::vector<bool> named;
  named.reserve(graph.types().size());
  for (const ObjectType& type : graph.types())
    named.push_back(type.name == name);
  return named;
}

Result<uint32_t> FindObject(const Examined& examined, const std::string& text) {
  const LoadedHeap& heap = *examined.heap;
  uint32_t found = heap.FindHandle(text);
  if (const std::string name = ClassNamedIn(text); !name.empty()) {
    for (const ClassObject& described : heap.ClassObjects()) {
      if (described.name == name)
        found = LargerOf(examined, found, described.object);
    }
  }
  if (found == kNoObject) {  // classes without a name are listed by their address
    const std::vector<bool> is_meant = TypesNamed(heap.graph(), text);
    for (uint32_t object = 0; object < heap.graph().object_count(); ++object) {
      if (is_meant[heap.graph().TypeOf(object)])
        found = LargerOf(examined, found, object);
    }
  }
  if (found == kNoObject)
    return Status(StatusCode::kNotFound,
                  "cannot find " + text +
                      " in the dump: no object has this address or class; heap_profile "
                      "hprof histogram --top 0 lists the classes");
  return found;
}

std::vector<HoldingPath> HoldingPaths(const Examined& examined,
                                      const std::vector<uint32_t>& objects) {
  return NameSteps(examined, NearestPaths(examined.heap->graph(), objects));
}

std::vector<HoldingPath> NameSteps(const Examined& examined,
                                   const std::vector<std::vector<uint32_t>>& ways) {
  std::vector<NamedStep> steps;
  for (const std::vector<uint32_t>& way : ways) {
    for (size_t i = 1; i < way.size(); ++i)
      steps.push_back({way[i - 1], way[i]});
  }
  examined.heap->NameSteps(&steps);
  std::vector<HoldingPath> result;
  auto step = steps.begin();
  for (const std::vector<uint32_t>& way : ways) {
    HoldingPath& holding = result.emplace_back();
    holding.root = way.empty() ? "" : RootOf(*examined.heap, way.front());
    for (size_t i = 0; i < way.size(); ++i)
      holding.steps.push_back({way[i], i == 0 ? "" : std::move((step++)->name)});
  }
  return result;
}

}  // namespace heapprofd
