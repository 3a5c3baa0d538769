#include "engine/target/target_text.h"

#include <cstring>

#include "base/utf8.h"

namespace heapprofd {

std::string TextFromTarget(const char* bytes, size_t size) {
  std::string text(bytes, strnlen(bytes, size - 1));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      c = '_';
  }
  return ToUtf8(text);
}

}  // namespace heapprofd
