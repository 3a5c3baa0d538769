#include "import/line_reader.h"

namespace heapprofd {

Result<bool> LineReader::Fill() {
  constexpr size_t kStep = size_t{64} << 10;
  buffer_.erase(0, begin_);
  begin_ = 0;
  const size_t old_size = buffer_.size();
  buffer_.resize(old_size + kStep);
  Result<size_t> count = source_->Read(std::span(buffer_).subspan(old_size));
  buffer_.resize(old_size + (count.ok() ? count.value() : 0));
  if (!count.ok())
    return std::move(count).status();
  bytes_ += count.value();
  return count.value() > 0;
}

Result<bool> LineReader::Next(std::string_view* line) {
  size_t searched = 0;  // bytes behind begin_ that hold no line's end
  while (true) {
    const size_t end = buffer_.find('\n', begin_ + searched);
    if (end != std::string::npos) {
      *line = std::string_view(buffer_).substr(begin_, end - begin_);
      begin_ = end + 1;
      if (is_skipping_) {
        is_skipping_ = false;
        searched = 0;
        continue;
      }
      return true;
    }
    searched = buffer_.size() - begin_;
    if (searched > kMaxLineBytes && !is_skipping_) {
      *line = std::string_view(buffer_).substr(begin_, kMaxLineBytes);
      begin_ = buffer_.size();
      is_skipping_ = true;
      return true;
    }
    if (is_skipping_) {
      begin_ = buffer_.size();
      searched = 0;
    }
    HPD_TRY_ASSIGN(const bool is_more, Fill());
    if (is_more)
      continue;
    if (searched == 0)
      return false;
    *line = std::string_view(buffer_).substr(begin_);
    begin_ = buffer_.size();
    return true;
  }
}

}  // namespace heapprofd
