// The bytes of a report's data: columns of numbers, which compress far better than rows.
// src/report/page/data.js reads them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/byte_reader.h"

namespace heapprofd {

// A text with its length (bytes, uint32) in front.
inline void AppendBlock(std::string_view bytes, std::string& out) {
  AppendNumber(static_cast<uint32_t>(bytes.size()), out);
  out += bytes;
}

// Numbers of seven bits a byte, the lowest first; the highest bit: more follow. Without
// any byte when all are 0.
class NumberColumnWriter {
 public:
  bool operator==(const NumberColumnWriter&) const = default;

  void Add(uint64_t value) {
    is_zero_ = is_zero_ && value == 0;
    for (; value >= 0x80; value >>= 7)
      bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  // Small numbers of either sign are short: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
  void AddSigned(int64_t value) {
    Add((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }

  void AppendTo(std::string& out) const {
    AppendBlock(is_zero_ ? std::string_view() : bytes_, out);
  }

 private:
  std::string bytes_;
  bool is_zero_ = true;
};

}  // namespace heapprofd
