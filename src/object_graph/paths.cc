#include "object_graph/paths.h"

#include <algorithm>
#include <unordered_map>

namespace heapprofd {
namespace {

constexpr uint32_t kNotSeen = UINT32_MAX;
constexpr uint32_t kRootItself = UINT32_MAX - 1;

// The nearest ways from the roots to all objects, breadth first.
class NearestWays {
 public:
  explicit NearestWays(const ObjectGraph& graph) : graph_(graph) {
    above_.ReserveForRandomAccess(graph.object_count());
    above_.resize(graph.object_count(), kNotSeen);
    for (const GraphRoot& root : graph.roots())
      Reach(root.object, kRootItself);
  }

  // Until there is nothing left or `is_enough` says so.
  template <typename IsEnough>
  void Find(IsEnough is_enough) {
    for (size_t i = 0; i < queue_.size() && !is_enough(); ++i) {
      const uint32_t owner = queue_[i];
      graph_.ForEachReference(owner,
                              [this, owner](uint32_t target) { Reach(target, owner); });
      if (const uint32_t type = graph_.TypeObjectOf(owner); type != kNoObject)
        Reach(type, owner);
    }
  }

  // kRootItself: none, and a root holds it; kNotSeen: nothing does, so far.
  uint32_t Above(uint32_t object) const { return above_[object]; }

  // Each behind that above it.
  const Column<uint32_t>& order() const { return queue_; }

 private:
  void Reach(uint32_t target, uint32_t from) {
    if (above_[target] != kNotSeen)
      return;
    above_[target] = from;
    queue_.push_back(target);
  }

  const ObjectGraph& graph_;
  Column<uint32_t> above_;
  Column<uint32_t> queue_;
};

ObjectPath PathTo(const NearestWays& ways, uint32_t object) {
  if (ways.Above(object) == kNotSeen)
    return {};
  ObjectPath path = {object};
  while (ways.Above(path.back()) != kRootItself)
    path.push_back(ways.Above(path.back()));
  std::reverse(path.begin(), path.end());
  return path;
}

// Puts steps of one group below one step together.
class WayMerger {
 public:
  // Below `above`, an index; where there is no room, that.
  uint32_t StepTo(uint32_t above, uint32_t group) {
    if (above != MergedWay::kTop && ways_[above].group == group)
      return above;
    const uint64_t key = uint64_t{above} << 32 | group;
    const auto found = known_.find(key);
    if (found != known_.end())
      return found->second;
    if (above != MergedWay::kTop && ways_.size() >= kMostMergedWays)
      return above;
    const auto way = static_cast<uint32_t>(ways_.size());
    known_.emplace(key, way);
    ways_.push_back({.above = above, .group = group});
    return way;
  }

  MergedWay& At(uint32_t way) { return ways_[way]; }

  std::vector<MergedWay> Take() { return std::move(ways_); }

 private:
  std::vector<MergedWay> ways_;
  std::unordered_map<uint64_t, uint32_t> known_;  // by the step above and the group
};

}  // namespace

std::vector<ObjectPath> NearestPaths(const ObjectGraph& graph,
                                     const std::vector<uint32_t>& objects) {
  NearestWays ways(graph);
  size_t found = 0;  // of `objects`, from the first one on
  ways.Find([&] {
    while (found < objects.size() && ways.Above(objects[found]) != kNotSeen)
      ++found;
    return found == objects.size();
  });
  std::vector<ObjectPath> paths;
  paths.reserve(objects.size());
  for (const uint32_t object : objects)
    paths.push_back(PathTo(ways, object));
  return paths;
}

std::vector<MergedWay> MergeNearestPaths(
    const ObjectGraph& graph,
    const std::function<bool(uint32_t object)>& is_wanted,
    const std::function<uint32_t(uint32_t object)>& group_of) {
  NearestWays ways(graph);
  ways.Find([] { return false; });
  const Column<uint32_t>& order = ways.order();
  std::vector<bool> is_way(graph.object_count());  // or wanted itself
  for (size_t i = order.size(); i-- > 0;) {
    const uint32_t object = order[i];
    is_way[object] = is_way[object] || is_wanted(object);
    if (is_way[object] && ways.Above(object) != kRootItself)
      is_way[ways.Above(object)] = true;
  }
  WayMerger merger;
  Column<uint32_t> step;  // by object, of those that are on a way
  step.ReserveForRandomAccess(graph.object_count());
  step.resize(graph.object_count(), MergedWay::kTop);
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t object = order[i];
    if (!is_way[object])
      continue;
    const uint32_t above = ways.Above(object);
    step[object] = merger.StepTo(above == kRootItself ? MergedWay::kTop : step[above],
                                 group_of(object));
    if (!is_wanted(object))
      continue;
    MergedWay& way = merger.At(step[object]);
    ++way.objects;
    way.bytes += graph.SizeOf(object);
  }
  std::vector<MergedWay> merged = merger.Take();
  for (size_t i = merged.size(); i-- > 0;) {
    if (merged[i].above == MergedWay::kTop)
      continue;
    merged[merged[i].above].objects += merged[i].objects;
    merged[merged[i].above].bytes += merged[i].bytes;
  }
  return merged;
}

}  // namespace heapprofd
