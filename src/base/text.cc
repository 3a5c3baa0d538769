#include "base/text.h"

namespace heapprofd {

std::string HexEncode(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

namespace {

// Replaces control characters but `kept`.
std::string WithoutControls(std::string_view text, unsigned char kept) {
  std::string printable(text);
  for (size_t i = 0; i < printable.size(); ++i) {
    const auto byte = static_cast<unsigned char>(printable[i]);
    // In UTF-8, U+0080 to U+009F are control characters, too.
    const bool is_c1 = byte >= 0x80 && byte < 0xa0 && i > 0 && text[i - 1] == '\xc2';
    if ((byte < 0x20 && byte != kept) || byte == 0x7f || is_c1)
      printable[i] = '?';
  }
  return printable;
}

}  // namespace

std::string Printable(std::string_view text) {
  return WithoutControls(text, '?');
}

std::string PrintableLines(std::string_view text) {
  return WithoutControls(text, '\n');
}

}  // namespace heapprofd
