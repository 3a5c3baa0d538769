#include "trace/text_format.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

// The compiled schema, placed by schema.S.
extern "C" {
extern const char hpd_trace_schema_begin[];
extern const char hpd_trace_schema_end[];
}

namespace heapprofd {
namespace {

namespace pb = google::protobuf;

class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty())
      text_ = "line " + std::to_string(line + 1) + ", column " +
              std::to_string(column + 1) + ": " + message;
  }

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

struct TraceTextFormat::Schema {
  pb::DescriptorPool pool;
  pb::DynamicMessageFactory factory;
  const pb::Message* trace = nullptr;  // prototypes
  const pb::Message* packet = nullptr;
  pb::TextFormat::Printer printer;
};

TraceTextFormat::TraceTextFormat() : schema_(std::make_unique<Schema>()) {
  pb::FileDescriptorSet files;
  HPD_CHECK(files.ParseFromArray(
      hpd_trace_schema_begin,
      static_cast<int>(hpd_trace_schema_end - hpd_trace_schema_begin)));
  for (const pb::FileDescriptorProto& file : files.file())
    HPD_CHECK(schema_->pool.BuildFile(file) != nullptr);
  const auto prototype = [&](const char* name) {
    const pb::Descriptor* const descriptor = schema_->pool.FindMessageTypeByName(name);
    HPD_CHECK(descriptor != nullptr);
    return schema_->factory.GetPrototype(descriptor);
  };
  schema_->trace = prototype("perfetto.protos.Trace");
  schema_->packet = prototype("perfetto.protos.TracePacket");
  schema_->printer.SetInitialIndentLevel(1);
}

TraceTextFormat::~TraceTextFormat() = default;

std::optional<std::string> TraceTextFormat::PacketToText(std::string_view packet) {
  const std::unique_ptr<pb::Message> message(schema_->packet->New());
  std::string text;
  if (packet.size() > INT32_MAX ||
      !message->ParsePartialFromArray(packet.data(), static_cast<int>(packet.size())) ||
      !schema_->printer.PrintToString(*message, &text))
    return std::nullopt;
  return "packet {\n" + text + "}\n";
}

Result<std::string> TraceTextFormat::TraceFromText(std::string_view text) {
  const std::unique_ptr<pb::Message> message(schema_->trace->New());
  FirstError error;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(std::string(text), message.get()))
    return Status(StatusCode::kInvalidArgument,
                  "cannot read trace text: " + error.text());
  return message->SerializePartialAsString();
}

}  // namespace heapprofd
