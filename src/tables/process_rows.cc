#include "tables/process_rows.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace heapprofd {
namespace {

// All rows, those with a lesser key first, else in their order.
template <typename KeyOf>
std::vector<uint32_t> SortedBy(const KeyOf& key_of, size_t count) {
  std::vector<uint32_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0);
  std::ranges::stable_sort(rows, std::less<>(), key_of);
  return rows;
}

template <typename KeyOf, typename Key>
std::span<const uint32_t> RowsWith(const std::vector<uint32_t>& sorted,
                                   const KeyOf& key_of,
                                   const Key& key) {
  return {std::ranges::lower_bound(sorted, key, std::less<>(), key_of),
          std::ranges::upper_bound(sorted, key, std::less<>(), key_of)};
}

}  // namespace

ProcessRows::ProcessRows(const ImportedTrace& trace) : trace_(trace) {
  const auto& dumps = trace.dumps;
  const auto heap_of = [&dumps](uint32_t row) {
    return std::pair(dumps[row].upid, dumps[row].heap_name);
  };
  dumps_ = SortedBy(heap_of, dumps.size());
  const auto& counters = trace.counters;
  counters_ =
      SortedBy([&counters](uint32_t row) { return counters[row].upid; }, counters.size());
  const auto& children = trace.unsampled_children;
  children_ =
      SortedBy([&children](uint32_t row) { return children[row].upid; }, children.size());
}

std::span<const uint32_t> ProcessRows::DumpsOf(uint32_t upid) const {
  return RowsWith(
      dumps_, [this](uint32_t row) { return trace_.dumps[row].upid; }, upid);
}

std::span<const uint32_t> ProcessRows::DumpsOf(uint32_t upid, StringId heap) const {
  const auto heap_of = [this](uint32_t row) {
    return std::pair(trace_.dumps[row].upid, trace_.dumps[row].heap_name);
  };
  return RowsWith(dumps_, heap_of, std::pair(upid, heap));
}

std::span<const uint32_t> ProcessRows::CountersOf(uint32_t upid) const {
  return RowsWith(
      counters_, [this](uint32_t row) { return trace_.counters[row].upid; }, upid);
}

const ForkedChildren* ProcessRows::ChildrenOf(uint32_t upid) const {
  const std::span<const uint32_t> rows = RowsWith(
      children_, [this](uint32_t row) { return trace_.unsampled_children[row].upid; },
      upid);
  return rows.empty() ? nullptr : &trace_.unsampled_children[rows.back()].counts;
}

}  // namespace heapprofd
