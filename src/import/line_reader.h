// Text files line by line, of any size, with bounded memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "import/perfetto/byte_source.h"

namespace heapprofd {

class LineReader {
 public:
  // `source` must outlive this.
  explicit LineReader(ByteSource* source) : source_(source) {}

  // The next line without its end; false at the end of the file. What a line has beyond
  // kMaxLineBytes is left out. The view ends with the next call.
  Result<bool> Next(std::string_view* line);

  uint64_t bytes() const { return bytes_; }

  static constexpr size_t kMaxLineBytes = size_t{1} << 20;

 private:
  Result<bool> Fill();

  ByteSource* source_;
  std::string buffer_;
  size_t begin_ = 0;
  uint64_t bytes_ = 0;
  bool is_skipping_ = false;  // the rest of a line that is too long
};

}  // namespace heapprofd
