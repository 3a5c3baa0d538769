// Reads the messages of which a trace has millions: samples, callstacks and what holds
// them. Decodes in place, without copies and without exceptions; for everything else
// there is MessageReader.
//
// Bytes are a hostile file's: nothing behind their end is read, whatever a length says.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

namespace heapprofd {

class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes)
      : at_(reinterpret_cast<const uint8_t*>(bytes.data())), end_(at_ + bytes.size()) {}

  // Goes to the next field. False at the end, and where no further field can be read
  // (is_malformed).
  bool Next() {
    if (at_ == end_)
      return false;
    uint64_t tag = 0;
    if (!TakeVarint(&tag) || (tag >> 3) - 1 >= kMaxNumber)
      return Fail();
    number_ = static_cast<uint32_t>(tag >> 3);
    type_ = static_cast<uint32_t>(tag & 7);
    switch (type_) {
      case kVarint:
        return TakeVarint(&value_) || Fail();
      case kDelimited:
        if (!TakeVarint(&value_) || value_ > static_cast<uint64_t>(end_ - at_))
          return Fail();
        data_ = at_;
        at_ += value_;
        return true;
      case kFixed64:
        return TakeFixed(sizeof(uint64_t)) || Fail();
      case kFixed32:
        return TakeFixed(sizeof(uint32_t)) || Fail();
      default:
        return Fail();
    }
  }

  // Of the current field.
  uint32_t field() const { return number_; }

  // 0 for text and messages.
  uint64_t Uint() const { return type_ == kDelimited ? 0 : value_; }

  bool Bool() const { return Uint() != 0; }

  double Double() const { return type_ == kFixed64 ? std::bit_cast<double>(value_) : 0; }

  // Empty for numbers.
  std::string_view Bytes() const {
    return type_ == kDelimited
               ? std::string_view(reinterpret_cast<const char*>(data_), value_)
               : std::string_view();
  }

  // All numbers of this occurrence of a repeated field, packed or not, and of those that
  // follow it at once.
  template <typename Visit>
  void Uints(Visit visit) {
    if (type_ != kDelimited) {
      visit(value_);
      const uint32_t tag = number_ << 3 | kVarint;
      while (type_ == kVarint && at_ != end_ && *at_ == tag) {
        ++at_;
        if (!TakeVarint(&value_)) {
          Fail();
          return;
        }
        visit(value_);
      }
      return;
    }
    FieldReader packed(Bytes());
    uint64_t value = 0;
    while (packed.at_ != packed.end_) {
      if (!packed.TakeVarint(&value)) {
        is_malformed_ = true;
        return;
      }
      visit(value);
    }
  }

  // Reading ended before the bytes did.
  bool is_malformed() const { return is_malformed_; }

 private:
  enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kDelimited = 2, kFixed32 = 5 };

  static constexpr uint64_t kMaxNumber = (uint64_t{1} << 29) - 1;

  bool Fail() {
    is_malformed_ = true;
    at_ = end_;
    return false;
  }

  bool TakeVarint(uint64_t* value) {
    if (at_ == end_)
      return false;
    if (*at_ < 0x80) {
      *value = *at_++;
      return true;
    }
    if (end_ - at_ >= 2 && at_[1] < 0x80) {
      *value = (at_[0] & 0x7fu) | uint32_t{at_[1]} << 7;
      at_ += 2;
      return true;
    }
    if (end_ - at_ >= 3 && at_[2] < 0x80) {
      *value = (at_[0] & 0x7fu) | (at_[1] & 0x7fu) << 7 | uint32_t{at_[2]} << 14;
      at_ += 3;
      return true;
    }
    return TakeLongVarint(value);
  }

  bool TakeLongVarint(uint64_t* value) {
    constexpr int kBits = 7;
    constexpr int kMaxShift = 63;
    uint64_t result = 0;
    for (int shift = 0; shift <= kMaxShift && at_ != end_; shift += kBits) {
      const uint8_t byte = *at_++;
      result |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) {
        *value = result;
        return true;
      }
    }
    return false;
  }

  bool TakeFixed(size_t size) {
    if (static_cast<size_t>(end_ - at_) < size)
      return false;
    value_ = 0;
    memcpy(&value_, at_, size);
    at_ += size;
    return true;
  }

  const uint8_t* at_;
  const uint8_t* end_;
  const uint8_t* data_ = nullptr;
  uint64_t value_ = 0;  // of numbers; of the others the length
  uint32_t number_ = 0;
  uint32_t type_ = kVarint;
  bool is_malformed_ = false;
};

// `value` for SQL, which has signed numbers only.
inline int64_t Signed(uint64_t value) {
  return static_cast<int64_t>(
      std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
}

}  // namespace heapprofd
