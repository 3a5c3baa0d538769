// Text of a virtual machine or of the kernel, line by line.
#pragma once

#include <algorithm>
#include <string_view>

namespace heapprofd {

// Removes the first line from `*text`, and gives it without its end.
inline std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

}  // namespace heapprofd
