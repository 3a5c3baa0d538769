#include "base/string_pool.h"

#include <cstring>
#include <functional>

namespace heapprofd {
namespace {

constexpr size_t kBlockBytes = size_t{256} << 10;

uint32_t HashOf(std::string_view text) {
  const size_t hash = std::hash<std::string_view>()(text);
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

StringPool::StringPool() {
  slots_.resize(1024, 0);
  Intern("");
}

size_t StringPool::SlotOf(std::string_view text, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at] != 0) {
    const Text& other = texts_[slots_[at] - 1];
    if (other.hash == hash && std::string_view(other.data, other.size) == text)
      break;
    at = (at + 1) & mask;
  }
  return at;
}

void StringPool::GrowSlots() {
  const size_t size = slots_.size() * 2;
  slots_ = Column<uint32_t>();
  slots_.resize(size, 0);
  for (size_t id = 0; id < texts_.size(); ++id) {
    size_t at = texts_[id].hash & (size - 1);
    while (slots_[at] != 0)
      at = (at + 1) & (size - 1);
    slots_[at] = static_cast<uint32_t>(id + 1);
  }
}

const char* StringPool::Store(std::string_view text) {
  if (text.size() > kBlockBytes / 4) {  // would waste much of a block
    long_texts_.push_back(std::make_unique<char[]>(text.size()));
    memcpy(long_texts_.back().get(), text.data(), text.size());
    return long_texts_.back().get();
  }
  if (blocks_.empty() || block_left_ < text.size()) {
    blocks_.push_back(std::make_unique<char[]>(kBlockBytes));
    block_left_ = kBlockBytes;
  }
  char* const place = blocks_.back().get() + (kBlockBytes - block_left_);
  if (!text.empty())
    memcpy(place, text.data(), text.size());
  block_left_ -= text.size();
  return place;
}

StringId StringPool::Intern(std::string_view text) {
  text = text.substr(0, kMaxStringBytes);
  const uint32_t hash = HashOf(text);
  size_t slot = SlotOf(text, hash);
  if (slots_[slot] != 0)
    return slots_[slot] - 1;
  if (texts_.size() >= kNone - 1)
    return kEmptyString;
  if (texts_.size() * 3 >= slots_.size() * 2) {
    GrowSlots();
    slot = SlotOf(text, hash);
  }
  texts_.push_back({Store(text), static_cast<uint32_t>(text.size()), hash});
  slots_[slot] = static_cast<uint32_t>(texts_.size());
  return static_cast<StringId>(texts_.size() - 1);
}

StringId StringPool::Find(std::string_view text) const {
  const uint32_t slot = slots_[SlotOf(text, HashOf(text))];
  return slot != 0 ? slot - 1 : kNone;
}

}  // namespace heapprofd
