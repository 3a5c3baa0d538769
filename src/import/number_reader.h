// The hexadecimal numbers of a line of text, with spaces between them.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace heapprofd {

class NumberReader {
 public:
  explicit NumberReader(std::string_view text) : text_(text) {}

  // nullopt: what comes next is none.
  std::optional<uint64_t> Next() {
    while (text_.starts_with(' '))
      text_.remove_prefix(1);
    uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(text_.data(), text_.data() + text_.size(), value, 16);
    if (error != std::errc() || text_.empty())
      return std::nullopt;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return value;
  }

  // What is behind the last one.
  std::string_view rest() const { return text_; }

 private:
  std::string_view text_;
};

}  // namespace heapprofd
