// Reads numbers and strings from bytes that somebody else wrote. A read past the end
// yields zeros and marks the reader as failed, so that a record can be read as a whole
// and checked once.
//
// Numbers are little-endian and need no alignment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace heapprofd {

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  // False once anything was read that is not there.
  bool ok() const { return ok_; }

  size_t left() const { return bytes_.size(); }

  template <typename T>
  T Read() {
    T value{};
    if (const std::string_view bytes = ReadBytes(sizeof(T)); ok_)
      memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  // A view into the input.
  std::string_view ReadBytes(uint64_t size) {
    if (!ok_ || size > bytes_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view result = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return result;
  }

  // Up to and without the next zero byte, which must be there.
  std::string_view ReadCString() {
    const size_t size = bytes_.find('\0');
    if (size == std::string_view::npos) {
      ok_ = false;
      return {};
    }
    const std::string_view result = ReadBytes(size);
    ReadBytes(1);
    return result;
  }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

// The other direction: appends the bytes of a number.
template <typename T>
void AppendNumber(T value, std::string& bytes) {
  const size_t size = bytes.size();
  bytes.resize(size + sizeof(T));
  memcpy(bytes.data() + size, &value, sizeof(T));
}

}  // namespace heapprofd
