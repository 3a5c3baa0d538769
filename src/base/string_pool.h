// All text of a trace or profile, each distinct text once. Ids are dense, and 0 is "";
// texts stay at their place, so views live as long as the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/column.h"

namespace heapprofd {

using StringId = uint32_t;

inline constexpr StringId kEmptyString = 0;

class StringPool {
 public:
  static constexpr StringId kNone = UINT32_MAX;

  StringPool();

  // Texts longer than kMaxStringBytes are cut.
  StringId Intern(std::string_view text);

  // kNone and other numbers without a text give "".
  std::string_view Get(StringId id) const {
    return id < texts_.size() ? std::string_view(texts_[id].data, texts_[id].size)
                              : std::string_view();
  }

  // The text's id, or kNone.
  StringId Find(std::string_view text) const;

  size_t size() const { return texts_.size(); }

 private:
  struct Text {
    const char* data;
    uint32_t size;
    uint32_t hash;
  };

  size_t SlotOf(std::string_view text, uint32_t hash) const;
  void GrowSlots();
  const char* Store(std::string_view text);

  Column<Text> texts_;
  Column<uint32_t> slots_;  // open addressing: id + 1, or 0
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::vector<std::unique_ptr<char[]>> long_texts_;
  size_t block_left_ = 0;
};

// A longer one is no name.
inline constexpr size_t kMaxStringBytes = size_t{16} << 20;

}  // namespace heapprofd
