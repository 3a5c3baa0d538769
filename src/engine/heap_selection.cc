#include "engine/heap_selection.h"

#include <algorithm>
#include <cstring>

#include "profile/model.h"

namespace heapprofd {
namespace {

void AddRule(const std::string& name, uint64_t interval, HeapRules* rules) {
  HeapRule& rule = rules->rules[rules->count++];
  rule.interval = interval;
  memcpy(rule.name, name.c_str(), std::min(name.size(), kHeapNameSize - 1));
}

Status CheckName(const std::string& name) {
  if (!name.empty() && name.size() < kHeapNameSize)
    return {};
  return Status(StatusCode::kInvalidArgument,
                "cannot use --heaps (heaps, exclude_heaps): the name \"" + name +
                    "\" must have 1 to 63 bytes; separate names by commas");
}

}  // namespace

bool HeapSelection::IsMallocAlone() const {
  return !all && std::all_of(heaps.begin(), heaps.end(), [](const Heap& heap) {
    return heap.name == kMallocHeapName;
  });
}

bool HeapSelection::HasMalloc() const {
  const auto is_malloc = [](const Heap& heap) { return heap.name == kMallocHeapName; };
  if (std::ranges::any_of(heaps, is_malloc))
    return true;
  return std::ranges::count(excluded, kMallocHeapName) == 0 && (all || heaps.empty());
}

Status CheckHeapSelection(const HeapSelection& selection) {
  for (const HeapSelection::Heap& heap : selection.heaps)
    HPD_TRY(CheckName(heap.name));
  for (const std::string& name : selection.excluded)
    HPD_TRY(CheckName(name));
  if (selection.heaps.size() + selection.excluded.size() > kMaxHeapRules)
    return Status(StatusCode::kInvalidArgument,
                  "cannot select heaps: more than " + std::to_string(kMaxHeapRules) +
                      " are named; use --all-heaps and --exclude-heaps");
  return {};
}

void FillHeapRules(const HeapSelection& selection,
                   uint64_t interval_bytes,
                   HeapRules* rules) {
  rules->count = 0;
  for (const HeapSelection::Heap& heap : selection.heaps)
    AddRule(heap.name, heap.interval_bytes != 0 ? heap.interval_bytes : interval_bytes,
            rules);
  for (const std::string& name : selection.excluded)
    AddRule(name, 0, rules);
  if (selection.heaps.empty() && !selection.all)
    AddRule(kMallocHeapName, interval_bytes, rules);
  rules->other_interval = selection.all ? interval_bytes : 0;
}

}  // namespace heapprofd
