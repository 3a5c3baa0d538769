#include "object_graph/paths.h"

#include <algorithm>

namespace heapprofd {
namespace {

constexpr uint32_t kNotSeen = UINT32_MAX;
constexpr uint32_t kRootItself = UINT32_MAX - 1;

ObjectPath PathTo(const Column<uint32_t>& above, uint32_t object) {
  if (above[object] == kNotSeen)
    return {};
  ObjectPath path = {object};
  while (above[path.back()] != kRootItself)
    path.push_back(above[path.back()]);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

std::vector<ObjectPath> NearestPaths(const ObjectGraph& graph,
                                     const std::vector<uint32_t>& objects) {
  Column<uint32_t> above;
  above.ReserveForRandomAccess(graph.object_count());
  above.resize(graph.object_count(), kNotSeen);
  Column<uint32_t> queue;
  const auto reach = [&](uint32_t target, uint32_t from) {
    if (above[target] != kNotSeen)
      return;
    above[target] = from;
    queue.push_back(target);
  };
  for (const GraphRoot& root : graph.roots())
    reach(root.object, kRootItself);
  size_t found = 0;  // of `objects`, from the first one on
  for (size_t i = 0; i < queue.size(); ++i) {
    while (found < objects.size() && above[objects[found]] != kNotSeen)
      ++found;
    if (found == objects.size())
      break;
    const uint32_t owner = queue[i];
    graph.ForEachReference(owner, [&](uint32_t target) { reach(target, owner); });
    if (const uint32_t type = graph.TypeObjectOf(owner); type != kNoObject)
      reach(type, owner);
  }
  std::vector<ObjectPath> paths;
  paths.reserve(objects.size());
  for (const uint32_t object : objects)
    paths.push_back(PathTo(above, object));
  return paths;
}

}  // namespace heapprofd
