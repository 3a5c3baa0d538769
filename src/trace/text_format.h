// Traces as protobuf text and back, by the schema in proto/trace.proto, which is built
// in. Text is what people read and what tests are written in.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace heapprofd {

class TraceTextFormat {
 public:
  TraceTextFormat();
  ~TraceTextFormat();

  // "packet {\n  timestamp: 5\n}\n". Fields that the schema does not know are shown by
  // number. Nothing: these bytes are no TracePacket.
  std::optional<std::string> PacketToText(std::string_view packet);

  // A serialized Trace from text with `packet { ... }` entries. kInvalidArgument with
  // line and column: the text does not follow the schema.
  Result<std::string> TraceFromText(std::string_view text);

 private:
  struct Schema;

  std::unique_ptr<Schema> schema_;
};

}  // namespace heapprofd
