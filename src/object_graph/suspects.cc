#include "object_graph/suspects.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace heapprofd {
namespace {

constexpr uint8_t kNoSuspect = UINT8_MAX;
static_assert(kMostSuspects < kNoSuspect);

class SuspectSearch {
 public:
  SuspectSearch(const ObjectGraph& graph,
                const DominatorTree& tree,
                const Column<uint64_t>& retained,
                uint64_t least)
      : graph_(graph), tree_(tree), retained_(retained), least_(least) {}

  std::vector<Suspect> Find() {
    AddSingleObjects();
    AddTypes();
    AddParts();
    std::stable_sort(
        suspects_.begin(), suspects_.end(),
        [](const Suspect& a, const Suspect& b) { return a.retained > b.retained; });
    return std::move(suspects_);
  }

 private:
  // Those that there are: a file may have millions of types.
  using PartsByType = std::map<uint32_t, SuspectPart>;

  bool IsLarge(uint32_t object) const { return retained_[object] >= least_; }

  // Of the same type as the one that dominates it.
  bool IsContinuation(uint32_t object) const {
    const uint32_t above = tree_.dominator[object];
    return above != kHeldByRoots && graph_.TypeOf(above) == graph_.TypeOf(object);
  }

  void AddSingleObjects() {
    std::unordered_set<uint32_t> only_ways;  // to another that is large
    for (size_t i = tree_.order.size(); i-- > 0;) {
      const uint32_t object = tree_.order[i];
      if (!IsLarge(object))
        continue;
      const bool is_way = only_ways.contains(object);
      const uint32_t above = tree_.dominator[object];
      if (above != kHeldByRoots && (is_way || !IsContinuation(object)))
        only_ways.insert(above);
      if (!is_way && !IsContinuation(object) && suspects_.size() < kMostSuspects)
        suspects_.push_back({object, 1, retained_[object], {}});
    }
  }

  // Of objects that no other one holds alone.
  void AddTypes() {
    std::vector<Suspect> of_type(graph_.types().size());
    for (const uint32_t object : tree_.order) {
      if (tree_.dominator[object] != kHeldByRoots || IsLarge(object))
        continue;
      Suspect& suspect = of_type[graph_.TypeOf(object)];
      ++suspect.count;
      suspect.retained += retained_[object];
      if (suspect.object == kNoObject || retained_[object] > retained_[suspect.object])
        suspect.object = object;
    }
    group_of_type_.resize(of_type.size(), kNoSuspect);
    for (size_t type = 0; type < of_type.size(); ++type) {
      if (of_type[type].retained < least_ || of_type[type].count == 0 ||
          suspects_.size() == kMostSuspects)
        continue;
      group_of_type_[type] = static_cast<uint8_t>(suspects_.size());
      suspects_.push_back(of_type[type]);
    }
  }

  // Suspects do not retain each other, so that each object belongs to one at most.
  void AddParts() {
    Column<uint8_t> suspect_of;
    suspect_of.ReserveForRandomAccess(graph_.object_count());
    suspect_of.resize(graph_.object_count(), kNoSuspect);
    for (size_t i = 0; i < suspects_.size(); ++i) {
      if (suspects_[i].count == 1)
        suspect_of[suspects_[i].object] = static_cast<uint8_t>(i);
    }
    std::vector<PartsByType> parts(suspects_.size());
    for (const uint32_t object : tree_.order) {
      uint8_t& suspect = suspect_of[object];
      const uint32_t above = tree_.dominator[object];
      if (suspect == kNoSuspect)
        suspect = above != kHeldByRoots ? suspect_of[above]
                  : IsLarge(object)     ? kNoSuspect
                                        : group_of_type_[graph_.TypeOf(object)];
      if (suspect == kNoSuspect)
        continue;
      SuspectPart& part = parts[suspect][graph_.TypeOf(object)];
      ++part.objects;
      part.bytes += graph_.SizeOf(object);
    }
    for (size_t i = 0; i < suspects_.size(); ++i)
      suspects_[i].parts = Sorted(parts[i]);
  }

  static std::vector<SuspectPart> Sorted(const PartsByType& by_type) {
    std::vector<SuspectPart> parts;
    parts.reserve(by_type.size());
    for (const auto& [type, part] : by_type)
      parts.push_back({type, part.objects, part.bytes});
    std::stable_sort(
        parts.begin(), parts.end(),
        [](const SuspectPart& a, const SuspectPart& b) { return a.bytes > b.bytes; });
    return parts;
  }

  const ObjectGraph& graph_;
  const DominatorTree& tree_;
  const Column<uint64_t>& retained_;
  const uint64_t least_;
  std::vector<Suspect> suspects_;
  std::vector<uint8_t> group_of_type_;  // place in suspects_
};

}  // namespace

std::vector<Suspect> FindSuspects(const ObjectGraph& graph,
                                  const DominatorTree& tree,
                                  const Column<uint64_t>& retained,
                                  uint64_t least) {
  return SuspectSearch(graph, tree, retained, least).Find();
}

std::vector<std::vector<uint32_t>> WaysDown(const ObjectGraph& graph,
                                            const DominatorTree& tree,
                                            const Column<uint64_t>& retained,
                                            const std::vector<uint32_t>& objects) {
  std::vector<std::vector<uint32_t>> ways;
  std::unordered_map<uint32_t, size_t> way_to;  // by its last object
  for (const uint32_t object : objects) {
    way_to.emplace(object, ways.size());
    ways.push_back({object});
  }
  for (const uint32_t object : tree.order) {
    const uint32_t above = tree.dominator[object];
    if (above == kHeldByRoots || retained[object] <= retained[above] / 2 ||
        graph.TypeOf(object) == graph.TypeOf(above))
      continue;
    const auto found = way_to.find(above);
    if (found == way_to.end() || ways[found->second].size() >= kLongestWay)
      continue;
    const size_t way = found->second;
    way_to.erase(found);
    // A way ends where another one begins: they would be the same from there.
    if (way_to.emplace(object, way).second)
      ways[way].push_back(object);
  }
  return ways;
}

}  // namespace heapprofd
