// Heads of requests come from whoever connects.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "web/request_rules.h"

// Lines: method, target, host, origin.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::array<std::string_view, 4> lines;
  for (std::string_view& line : lines) {
    line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() == rest.size() ? rest.size() : line.size() + 1);
  }
  const auto admitted = heapprofd::Admit(
      {.method = lines[0], .target = lines[1], .host = lines[2], .origin = lines[3]},
      "0123");
  if (std::holds_alternative<heapprofd::WebRequest>(admitted) &&
      (!lines[1].starts_with("/0123/") ||
       (!lines[2].starts_with("127.0.0.1") && !lines[2].starts_with("localhost"))))
    abort();
  return 0;
}
