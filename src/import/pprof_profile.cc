#include "import/pprof_profile.h"

#include <utility>

#include <protozero/exception.hpp>

#include "trace/message_reader.h"
#include "trace/pprof_fields.h"

namespace heapprofd {
namespace {

using ProfileField = pprof_field::Profile;

PprofValueType ReadValueType(std::string_view bytes) {
  PprofValueType type;
  MessageReader message(bytes);
  while (message.Next()) {
    if (message.field() == pprof_field::ValueType::kType)
      type.type = message.Uint();
    else if (message.field() == pprof_field::ValueType::kUnit)
      type.unit = message.Uint();
  }
  return type;
}

PprofLine ReadLine(std::string_view bytes) {
  PprofLine line;
  MessageReader message(bytes);
  while (message.Next()) {
    if (message.field() == pprof_field::Line::kFunctionId)
      line.function = message.Uint();
    else if (message.field() == pprof_field::Line::kLine)
      line.line = message.Uint();
  }
  return line;
}

}  // namespace

bool PprofProfile::Read(std::string_view bytes) {
  try {
    ReadFields(bytes);
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

void PprofProfile::ReadFields(std::string_view bytes) {
  MessageReader profile(bytes);
  while (profile.Next()) {
    switch (profile.field()) {
      case ProfileField::kSampleType:
        value_types_.push_back(ReadValueType(profile.Bytes()));
        break;
      case ProfileField::kSample:
        samples_.push_back(profile.Bytes());
        break;
      case ProfileField::kMapping:
        ReadMapping(profile.Bytes());
        break;
      case ProfileField::kLocation:
        ReadLocation(profile.Bytes());
        break;
      case ProfileField::kFunction:
        ReadFunction(profile.Bytes());
        break;
      case ProfileField::kStringTable:
        strings_.push_back(profile.Bytes());
        break;
      case ProfileField::kTimeNanos:
        time_ns_ = profile.Int();
        break;
      case ProfileField::kDurationNanos:
        duration_ns_ = profile.Int();
        break;
      case ProfileField::kPeriodType:
        period_type_ = ReadValueType(profile.Bytes());
        break;
      case ProfileField::kPeriod:
        period_ = profile.Uint();
        break;
      case ProfileField::kDefaultSampleType:
        default_type_ = profile.Uint();
        break;
      case ProfileField::kComment:
        profile.Uints([this](uint64_t text) { comments_.push_back(text); });
        break;
      default:
        break;
    }
  }
}

void PprofProfile::ReadMapping(std::string_view bytes) {
  PprofMapping mapping;
  uint64_t id = 0;
  MessageReader message(bytes);
  while (message.Next()) {
    switch (message.field()) {
      case pprof_field::Mapping::kId:
        id = message.Uint();
        break;
      case pprof_field::Mapping::kMemoryStart:
        mapping.start = message.Uint();
        break;
      case pprof_field::Mapping::kMemoryLimit:
        mapping.limit = message.Uint();
        break;
      case pprof_field::Mapping::kFileOffset:
        mapping.offset = message.Uint();
        break;
      case pprof_field::Mapping::kFilename:
        mapping.file = message.Uint();
        break;
      case pprof_field::Mapping::kBuildId:
        mapping.build_id = message.Uint();
        break;
      default:
        break;
    }
  }
  mappings_[id] = mapping;
}

void PprofProfile::ReadLocation(std::string_view bytes) {
  PprofLocation location;
  MessageReader message(bytes);
  while (message.Next()) {
    switch (message.field()) {
      case pprof_field::Location::kId:
        location.id = message.Uint();
        break;
      case pprof_field::Location::kMappingId:
        location.mapping = message.Uint();
        break;
      case pprof_field::Location::kAddress:
        location.address = message.Uint();
        break;
      case pprof_field::Location::kLine:
        location.lines.push_back(ReadLine(message.Bytes()));
        break;
      default:
        break;
    }
  }
  locations_.push_back(std::move(location));
}

void PprofProfile::ReadFunction(std::string_view bytes) {
  PprofFunction function;
  uint64_t id = 0;
  MessageReader message(bytes);
  while (message.Next()) {
    switch (message.field()) {
      case pprof_field::Function::kId:
        id = message.Uint();
        break;
      case pprof_field::Function::kName:
        function.name = message.Uint();
        break;
      case pprof_field::Function::kSystemName:
        function.system_name = message.Uint();
        break;
      case pprof_field::Function::kFilename:
        function.file = message.Uint();
        break;
      default:
        break;
    }
  }
  functions_[id] = function;
}

const PprofMapping* PprofProfile::FindMapping(uint64_t id) const {
  const auto found = mappings_.find(id);
  return found != mappings_.end() ? &found->second : nullptr;
}

const PprofFunction* PprofProfile::FindFunction(uint64_t id) const {
  const auto found = functions_.find(id);
  return found != functions_.end() ? &found->second : nullptr;
}

bool PprofProfile::ReadSample(std::string_view bytes, PprofSample* sample) {
  sample->locations.clear();
  sample->values.clear();
  try {
    MessageReader message(bytes);
    while (message.Next()) {
      if (message.field() == pprof_field::Sample::kLocationId)
        message.Uints([sample](uint64_t id) { sample->locations.push_back(id); });
      else if (message.field() == pprof_field::Sample::kValue)
        message.Uints([sample](uint64_t value) {
          sample->values.push_back(static_cast<int64_t>(value));
        });
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

}  // namespace heapprofd
