#include "base/utf8.h"

#include <algorithm>
#include <cstdint>

namespace heapprofd {
namespace {

// Length of the well-formed sequence at the start of `text`, 0 when there is none:
// neither overlong forms nor surrogates nor anything above U+10FFFF.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80)
    return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length)
    return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
  }
  const uint8_t second = byte(1);
  const bool is_bad = (lead == 0xe0 && second < 0xa0) ||
                      (lead == 0xed && second > 0x9f) ||
                      (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
  return is_bad ? 0 : length;
}

}  // namespace

std::string ToUtf8(std::string_view text) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    result.append(length > 0 ? text.substr(0, length) : kReplacement);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return result;
}

std::string_view CutUtf8(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes)
    return text;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return text.substr(0, end);
}

}  // namespace heapprofd
