#include "config/plain_fields.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "base/status.h"

namespace heapprofd {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using perfetto::protos::HeapprofdConfig;

const FieldDescriptor* FieldNamed(const Message& message, const char* name) {
  const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(name);
  HPD_CHECK(field != nullptr);
  return field;
}

uint64_t NumberIn(const Message& message, const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32
             ? message.GetReflection()->GetUInt32(message, field)
             : message.GetReflection()->GetUInt64(message, field);
}

void SetNumber(Message* message, const FieldDescriptor* field, uint64_t value) {
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32)
    message->GetReflection()->SetUInt32(message, field, static_cast<uint32_t>(value));
  else
    message->GetReflection()->SetUInt64(message, field, value);
}

}  // namespace

void ReadPlainFields(const HeapprofdConfig& from, SessionConfig* to) {
  for (const SwitchField& field : kSwitchFields) {
    if (HeapprofdConfig::GetReflection()->GetBool(from, FieldNamed(from, field.name)))
      field.of(*to) = !field.of(*to);
  }
  for (const NumberField& field : kNumberFields)
    field.of(*to) = NumberIn(from, FieldNamed(from, field.name));
}

void WritePlainFields(SessionConfig from, HeapprofdConfig* to) {
  SessionConfig by_default;
  for (const SwitchField& field : kSwitchFields) {
    if (field.of(from) != field.of(by_default))
      HeapprofdConfig::GetReflection()->SetBool(to, FieldNamed(*to, field.name), true);
  }
  for (const NumberField& field : kNumberFields) {
    if (const uint64_t value = field.of(from); value != 0)
      SetNumber(to, FieldNamed(*to, field.name), value);
  }
}

}  // namespace heapprofd
