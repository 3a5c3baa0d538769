#include "object_graph/suspects.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace heapprofd {
namespace {

constexpr uint8_t kNoSuspect = UINT8_MAX;
constexpr uint8_t kNotAsked = UINT8_MAX - 1;
static_assert(kMostSuspects < kNotAsked);

class SuspectSearch {
 public:
  SuspectSearch(const ObjectGraph& graph, const Retention& retention, uint64_t least)
      : graph_(graph), retention_(retention), least_(least) {}

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

  bool IsLarge(uint32_t object) const { return retention_.RetainedBy(object) >= least_; }

  // Of the same type as the one that dominates it.
  bool IsContinuation(uint32_t object) const {
    const uint32_t above = retention_.DominatorOf(object);
    return above < graph_.object_count() && graph_.TypeOf(above) == graph_.TypeOf(object);
  }

  void AddSingleObjects() {
    std::vector<uint32_t> first_ones;        // large, of their type on the way down
    std::unordered_set<uint32_t> only_ways;  // to another of these
    for (uint32_t object = 0; object < graph_.object_count(); ++object) {
      if (!IsLarge(object) || IsContinuation(object))
        continue;
      first_ones.push_back(object);
      for (uint32_t above = retention_.DominatorOf(object);
           above < graph_.object_count() && only_ways.insert(above).second;)
        above = retention_.DominatorOf(above);
    }
    for (const uint32_t object : first_ones) {
      if (!only_ways.contains(object) && suspects_.size() < kMostSuspects)
        suspects_.push_back({object, 1, retention_.RetainedBy(object), {}});
    }
  }

  // Of objects that no other one holds alone.
  void AddTypes() {
    std::vector<Suspect> of_type(graph_.types().size());
    for (uint32_t object = 0; object < graph_.object_count(); ++object) {
      if (retention_.DominatorOf(object) != kHeldByRoots || IsLarge(object))
        continue;
      Suspect& suspect = of_type[graph_.TypeOf(object)];
      const uint64_t retained = retention_.RetainedBy(object);
      ++suspect.count;
      suspect.retained += retained;
      if (suspect.object == kNoObject || retained > retention_.RetainedBy(suspect.object))
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
    suspect_of_.ReserveForRandomAccess(graph_.object_count());
    suspect_of_.resize(graph_.object_count(), kNotAsked);
    for (size_t i = 0; i < suspects_.size(); ++i) {
      if (suspects_[i].count == 1)
        suspect_of_[suspects_[i].object] = static_cast<uint8_t>(i);
    }
    std::vector<PartsByType> parts(suspects_.size());
    for (uint32_t object = 0; object < graph_.object_count(); ++object) {
      if (retention_.DominatorOf(object) == kUnreachable)
        continue;
      const uint8_t suspect = SuspectOf(object);
      if (suspect == kNoSuspect)
        continue;
      SuspectPart& part = parts[suspect][graph_.TypeOf(object)];
      ++part.objects;
      part.bytes += graph_.SizeOf(object);
    }
    for (size_t i = 0; i < suspects_.size(); ++i)
      suspects_[i].parts = Sorted(parts[i]);
  }

  // What retains it, or is it. All on the way up get the same answer.
  uint8_t SuspectOf(uint32_t object) {
    way_.clear();
    uint32_t at = object;
    for (; at < graph_.object_count() && suspect_of_[at] == kNotAsked;
         at = retention_.DominatorOf(at)) {
      suspect_of_[at] = kNoSuspect;  // for now: a file may claim circles
      way_.push_back(at);
    }
    uint8_t suspect = kNoSuspect;
    if (at < graph_.object_count())
      suspect = suspect_of_[at];
    else if (at == kHeldByRoots && !IsLarge(way_.back()))
      suspect = group_of_type_[graph_.TypeOf(way_.back())];
    for (const uint32_t below : way_)
      suspect_of_[below] = suspect;
    return suspect;
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
  const Retention& retention_;
  const uint64_t least_;
  std::vector<Suspect> suspects_;
  std::vector<uint8_t> group_of_type_;  // place in suspects_
  Column<uint8_t> suspect_of_;          // by object
  std::vector<uint32_t> way_;
};

}  // namespace

std::vector<Suspect> FindSuspects(const ObjectGraph& graph,
                                  const Retention& retention,
                                  uint64_t least) {
  return SuspectSearch(graph, retention, least).Find();
}

std::vector<std::vector<uint32_t>> WaysDown(const ObjectGraph& graph,
                                            const Retention& retention,
                                            const std::vector<uint32_t>& objects) {
  std::vector<std::vector<uint32_t>> ways;
  std::unordered_map<uint32_t, size_t> way_to;     // by its last object
  std::vector<bool> is_end(graph.object_count());  // tells most objects at once
  for (const uint32_t object : objects) {
    way_to.emplace(object, ways.size());
    is_end[object] = true;
    ways.push_back({object});
  }
  bool has_grown = !ways.empty();
  for (size_t length = 1; has_grown && length < kLongestWay; ++length) {
    has_grown = false;
    for (uint32_t object = 0; object < graph.object_count(); ++object) {
      const uint32_t above = retention.DominatorOf(object);
      if (above >= graph.object_count() || !is_end[above])
        continue;
      const auto found = way_to.find(above);
      if (found == way_to.end() || ways[found->second].size() != length ||
          retention.RetainedBy(object) <= retention.RetainedBy(above) / 2 ||
          graph.TypeOf(object) == graph.TypeOf(above))
        continue;
      const size_t way = found->second;
      way_to.erase(found);
      // A way ends where another one begins: they would be the same from there.
      if (way_to.emplace(object, way).second) {
        ways[way].push_back(object);
        is_end[object] = true;
        has_grown = true;
      }
    }
  }
  return ways;
}

}  // namespace heapprofd
