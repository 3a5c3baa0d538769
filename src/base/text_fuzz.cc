// Names that others have chosen, on their way to a terminal or a file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.h"
#include "base/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heapprofd;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
  };
  if (std::ranges::any_of(Printable(text), is_control))
    abort();
  if (std::ranges::any_of(PrintableLines(text),
                          [&](char c) { return c != '\n' && is_control(c); }))
    abort();
  if (ToUtf8(ToUtf8(text)) != ToUtf8(text) || HexEncode(text).size() != 2 * size)
    abort();
  FileName(ShellQuoted(std::string(text)));
  return 0;
}
