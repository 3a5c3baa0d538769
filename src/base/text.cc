#include "base/text.h"

#include <cstdint>

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

// One character of UTF-8 at the begin of `text`; length 0: there is none.
struct Character {
  uint32_t code = 0;
  size_t length = 0;
};

Character FirstCharacter(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80)
    return {first, 1};
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length)
    return {};
  uint32_t code = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80)
      return {};
    code = (code << 6) | (byte & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    return {};
  return {code, length};
}

// What moves the cursor, or shows text in another order or place than it is in.
bool SteersDisplay(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
         (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
         (code >= 0xfff9 && code <= 0xfffb) || (code >= 0xe0000 && code <= 0xe007f);
}

// '?' for each character that is not to be shown, and for each byte that is none.
std::string WithoutControls(std::string_view text, unsigned char kept) {
  std::string printable;
  printable.reserve(text.size());
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    const size_t length = character.length == 0 ? 1 : character.length;
    if (character.length == 0 ||
        (SteersDisplay(character.code) && character.code != kept))
      printable += '?';
    else
      printable += text.substr(0, length);
    text.remove_prefix(length);
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

std::string ShellQuoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace heapprofd
