#include "hprof/class_table.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "base/random_seed.h"
#include "base/row_index.h"

namespace heapprofd::hprof {
namespace {

std::vector<uint32_t>::const_iterator FirstRepeated(const std::vector<uint32_t>& rows) {
  std::unordered_set<uint32_t> seen;
  seen.reserve(rows.size());
  return std::find_if(rows.begin(), rows.end(),
                      [&seen](uint32_t row) { return !seen.insert(row).second; });
}

}  // namespace

uint64_t ArrayFigures::Bytes(bool are_references, const ObjectLayout& layout) const {
  const auto* const header = std::find(std::begin(kArrayHeaders), std::end(kArrayHeaders),
                                       layout.array_header_bytes);
  const auto at = static_cast<size_t>(header - std::begin(kArrayHeaders));
  return are_references && layout.reference_bytes == 8 ? wide[at] : narrow[at];
}

// Row 0 is what has no class. Ids are chosen by whoever made the file: the secret is not.
ClassTable::ClassTable() : slots_(4096), secret_(RandomSeed()) {
  Search(0);
}

size_t ClassTable::SlotOf(uint64_t id) const {
  const size_t mask = slots_.size() - 1;
  size_t at = Mix(id ^ secret_) & mask;
  while (slots_[at] != 0 && classes_[slots_[at] - 1].id != id)
    at = (at + 1) & mask;
  return at;
}

uint32_t ClassTable::Search(uint64_t id) {
  size_t slot = SlotOf(id);
  if (slots_[slot] == 0) {
    if (classes_.size() * 2 >= slots_.size()) {
      Grow();
      slot = SlotOf(id);
    }
    classes_.emplace_back().id = id;
    slots_[slot] = static_cast<uint32_t>(classes_.size());
  }
  last_id_ = id;
  last_row_ = slots_[slot] - 1;
  return last_row_;
}

void ClassTable::Grow() {
  slots_.assign(slots_.size() * 4, 0);
  for (uint32_t row = 0; row < classes_.size(); ++row)
    slots_[SlotOf(classes_[row].id)] = row + 1;
}

uint32_t ClassTable::Find(uint64_t id) const {
  const size_t slot = SlotOf(id);
  return slots_[slot] - 1;
}

std::vector<uint32_t> ClassTable::Ancestry(uint32_t row) const {
  std::vector<uint32_t> rows;
  while (row != UINT32_MAX && rows.size() < kMaxDepth) {
    rows.push_back(row);
    row = classes_[row].super == 0 ? UINT32_MAX : Find(classes_[row].super);
  }
  if (rows.size() == kMaxDepth)  // what ends before has no circle in it
    rows.erase(FirstRepeated(rows), rows.end());
  return rows;
}

uint64_t ClassTable::InstanceBytes(uint32_t row, const ObjectLayout& layout) const {
  if (layout.sizes_are_dumped && classes_[row].dumped_bytes != 0)
    return classes_[row].dumped_bytes;
  return Padded(UnpaddedBytes(row, layout), layout.alignment);
}

uint64_t ClassTable::UnpaddedBytes(uint32_t row, const ObjectLayout& layout) const {
  uint64_t bytes = layout.object_header_bytes;
  const std::vector<uint32_t> rows = Ancestry(row);
  for (auto at = rows.rbegin(); at != rows.rend(); ++at) {
    const HeapClass& type = classes_[*at];
    bytes += OwnBytes(type, layout);
    if (type.is_contended)
      bytes = Padded(bytes, 8);
  }
  return bytes;
}

uint64_t ClassTable::ClassObjectBytes(uint32_t row,
                                      uint32_t class_class,
                                      const ObjectLayout& layout) const {
  const uint64_t statics =
      classes_[row].static_other_bytes +
      uint64_t{classes_[row].static_references} * layout.reference_bytes;
  return Padded(UnpaddedBytes(class_class, layout) + statics, layout.alignment);
}

}  // namespace heapprofd::hprof
