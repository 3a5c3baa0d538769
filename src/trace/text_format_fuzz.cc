// Traces that are shown as text, and text that is to become a trace.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "trace/framing.h"
#include "trace/text_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heapprofd;
  static TraceTextFormat format;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::string_view rest = bytes;
  while (const std::optional<std::string_view> packet = TakePacket(&rest)) {
    HPD_CHECK(packet->size() < size);
    static_cast<void>(format.PacketToText(*packet));
  }
  static_cast<void>(format.TraceFromText(bytes));
  return 0;
}
