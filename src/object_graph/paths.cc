#include "object_graph/paths.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace heapprofd {
namespace {

// The nearest ways from the roots to all objects, breadth first; or as a file has them.
class NearestWays {
 public:
  explicit NearestWays(const ObjectGraph& graph) : graph_(graph) {
    if (graph.kept() != nullptr)
      return;
    above_.ReserveForRandomAccess(graph.object_count());
    above_.resize(graph.object_count(), kUnreachable);
    for (const GraphRoot& root : graph.roots())
      Reach(root.object, kHeldByRoots);
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

  // kHeldByRoots: none, and a root holds it; kUnreachable: nothing does, so far.
  uint32_t Above(uint32_t object) const {
    return graph_.kept() == nullptr ? above_[object] : graph_.kept()->Above(object);
  }

  Column<uint32_t> Take() { return std::move(above_); }

 private:
  void Reach(uint32_t target, uint32_t from) {
    if (above_[target] != kUnreachable)
      return;
    above_[target] = from;
    queue_.push_back(target);
  }

  const ObjectGraph& graph_;
  Column<uint32_t> above_;
  Column<uint32_t> queue_;
};

// A file may claim circles: no way has more objects than there are.
ObjectPath PathTo(const ObjectGraph& graph, const NearestWays& ways, uint32_t object) {
  if (ways.Above(object) == kUnreachable)
    return {};
  ObjectPath path = {object};
  for (uint32_t above = ways.Above(object);
       above < graph.object_count() && path.size() < graph.object_count();
       above = ways.Above(above))
    path.push_back(above);
  std::reverse(path.begin(), path.end());
  return path;
}

// Whether an object is wanted, or on a way to one that is.
std::vector<bool> WaysToWanted(const ObjectGraph& graph,
                               const NearestWays& ways,
                               const std::function<bool(uint32_t object)>& is_wanted) {
  std::vector<bool> is_way(graph.object_count());
  for (uint32_t object = 0; object < graph.object_count(); ++object) {
    if (ways.Above(object) == kUnreachable || !is_wanted(object))
      continue;
    for (uint32_t at = object; at < graph.object_count() && !is_way[at];
         at = ways.Above(at))
      is_way[at] = true;
  }
  return is_way;
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
    if (above != MergedWay::kTop && ways_.size() >= kMostMergedWays) {
      is_whole_ = false;
      return above;
    }
    const auto way = static_cast<uint32_t>(ways_.size());
    known_.emplace(key, way);
    ways_.push_back({.above = above, .group = group});
    return way;
  }

  MergedWay& At(uint32_t way) { return ways_[way]; }

  MergedWays Take() { return {std::move(ways_), is_whole_}; }

 private:
  bool is_whole_ = true;
  std::vector<MergedWay> ways_;
  std::unordered_map<uint64_t, uint32_t> known_;  // by the step above and the group
};

// A step for each object that is on a way.
class StepsOfObjects {
 public:
  StepsOfObjects(const ObjectGraph& graph,
                 const NearestWays& ways,
                 const std::function<uint32_t(uint32_t object)>& group_of)
      : graph_(graph), ways_(ways), group_of_(group_of) {
    step_.ReserveForRandomAccess(graph.object_count());
    step_.resize(graph.object_count(), MergedWay::kTop);
  }

  MergedWay& Of(uint32_t object) {
    way_.clear();
    uint32_t at = object;
    for (; at < graph_.object_count() && step_[at] == MergedWay::kTop &&
           way_.size() < graph_.object_count();
         at = ways_.Above(at))
      way_.push_back(at);
    uint32_t step = at < graph_.object_count() ? step_[at] : MergedWay::kTop;
    for (; !way_.empty(); way_.pop_back()) {
      step = merger_.StepTo(step, group_of_(way_.back()));
      step_[way_.back()] = step;
    }
    return merger_.At(step);
  }

  MergedWays Take() { return merger_.Take(); }

 private:
  const ObjectGraph& graph_;
  const NearestWays& ways_;
  const std::function<uint32_t(uint32_t object)>& group_of_;
  WayMerger merger_;
  Column<uint32_t> step_;  // kTop: it has none yet
  std::vector<uint32_t> way_;
};

}  // namespace

std::vector<ObjectPath> NearestPaths(const ObjectGraph& graph,
                                     const std::vector<uint32_t>& objects) {
  NearestWays ways(graph);
  size_t found = 0;  // of `objects`, from the first one on
  ways.Find([&] {
    while (found < objects.size() && ways.Above(objects[found]) != kUnreachable)
      ++found;
    return found == objects.size();
  });
  std::vector<ObjectPath> paths;
  paths.reserve(objects.size());
  for (const uint32_t object : objects)
    paths.push_back(PathTo(graph, ways, object));
  return paths;
}

Column<uint32_t> NearestAbove(const ObjectGraph& graph) {
  NearestWays ways(graph);
  ways.Find([] { return false; });
  return ways.Take();
}

MergedWays MergeNearestPaths(const ObjectGraph& graph,
                             const std::function<bool(uint32_t object)>& is_wanted,
                             const std::function<uint32_t(uint32_t object)>& group_of) {
  NearestWays ways(graph);
  ways.Find([] { return false; });
  const std::vector<bool> is_way = WaysToWanted(graph, ways, is_wanted);
  StepsOfObjects steps(graph, ways, group_of);
  for (uint32_t object = 0; object < graph.object_count(); ++object) {
    if (!is_way[object] || !is_wanted(object))
      continue;
    MergedWay& way = steps.Of(object);
    ++way.objects;
    way.bytes += graph.SizeOf(object);
  }
  MergedWays merged = steps.Take();
  for (size_t i = merged.ways.size(); i-- > 0;) {
    const MergedWay& way = merged.ways[i];
    if (way.above == MergedWay::kTop)
      continue;
    merged.ways[way.above].objects += way.objects;
    merged.ways[way.above].bytes += way.bytes;
  }
  return merged;
}

}  // namespace heapprofd
