#include "import/perfetto/interned_tables.h"

#include <array>

#include "base/text.h"
#include "trace/field_reader.h"
#include "trace/fields.h"
#include "trace/message_reader.h"

namespace heapprofd {
namespace {

constexpr size_t kBreakpadIdSize = 33;
constexpr size_t kMaxMappingName = size_t{64} << 10;  // bytes

// SQL names of Frame.Kind; kNoId for what has none.
StringId TypeOf(TraceBuilder& builder, uint64_t kind, std::string_view text) {
  constexpr std::array<std::string_view, 7> kNames = {
      "", "native", "kernel", "interpreted", "jit", "gc", "runtime"};
  if (!text.empty())
    return builder.Intern(text);
  return kind > 0 && kind < kNames.size() ? builder.Intern(kNames[kind]) : kNoId;
}

int DigitOf(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

std::string BuildIdText(std::string_view raw) {
  return raw.size() == kBreakpadIdSize ? std::string(raw) : HexEncode(raw);
}

std::string BuildIdBytes(std::string_view text) {
  std::string raw;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    const int high = DigitOf(text[i]);
    const int low = DigitOf(text[i + 1]);
    if (high < 0 || low < 0)
      return std::string(text);
    raw += static_cast<char>(high * 16 + low);
  }
  return text.size() % 2 == 0 ? raw : std::string(text);
}

std::string MappingName(std::string_view path) {
  std::string name;
  name.reserve(path.size() + 1);
  bool at_separator = true;
  for (const char c : path) {
    if (c != '/') {
      if (at_separator)
        name += '/';
      name += c;
    }
    at_separator = c == '/';
  }
  return name;
}

void InternedTables::Insert(IidMap& map, uint64_t iid, uint32_t row) {
  if (row != kNoId && !map.Insert(iid, row))
    builder_->trace().stats.Count(StatId::kInternedDataDuplicateId);
}

StringId InternedTables::FindString(const IidMap& map, uint64_t iid) {
  const StringId id = map.Find(iid);
  if (id != kNoId)
    return id;
  if (iid != 0)  // 0 is "" whether it was written or not
    builder_->trace().stats.Count(StatId::kStackprofileInvalidStringId);
  return kEmptyString;
}

void InternedTables::AddString(IidMap& map, std::string_view message) {
  FieldReader reader(message);
  uint64_t iid = 0;
  std::string_view text;
  while (reader.Next()) {
    if (reader.field() == field::InternedString::kIid)
      iid = reader.Uint();
    else if (reader.field() == field::InternedString::kStr)
      text = reader.Bytes();
  }
  if (reader.is_malformed())
    return CountMalformed();
  Insert(map, iid, builder_->Intern(text));
}

void InternedTables::AddMapping(Maps& maps, std::string_view message) {
  const IidMap& paths = &maps == &inline_ ? maps.function_names : maps.mapping_paths;
  const IidMap& build_ids = &maps == &inline_ ? maps.function_names : maps.build_ids;
  MessageReader reader(message);
  ImportedMapping mapping;
  uint64_t iid = 0;
  uint64_t build_id = 0;
  std::string& path = scratch_;
  path.clear();
  while (reader.Next()) {
    switch (reader.field()) {
      case field::Mapping::kIid:
        iid = reader.Uint();
        break;
      case field::Mapping::kBuildId:
        build_id = reader.Uint();
        break;
      case field::Mapping::kStartOffset:
        mapping.start_offset = reader.Uint();
        break;
      case field::Mapping::kStart:
        mapping.start = reader.Uint();
        break;
      case field::Mapping::kEnd:
        mapping.end = reader.Uint();
        break;
      case field::Mapping::kLoadBias:
        mapping.load_bias = reader.Uint();
        break;
      case field::Mapping::kExactOffset:
        mapping.exact_offset = reader.Uint();
        break;
      case field::Mapping::kPathStringIds:
        reader.Uints([&](uint64_t id) {
          const std::string_view part = builder_->trace().Text(FindString(paths, id));
          if (path.size() + part.size() < kMaxMappingName)
            path.append("/").append(part);
        });
        break;
      default:
        break;
    }
  }
  mapping.name = builder_->Intern(MappingName(path));
  mapping.build_id = builder_->Intern(
      BuildIdText(builder_->trace().Text(FindString(build_ids, build_id))));
  Insert(maps.mappings, iid, builder_->InternMapping(mapping));
}

void InternedTables::AddFrame(Maps& maps, std::string_view message, StackStep* step) {
  MessageReader reader(message);
  uint64_t iid = 0;
  uint64_t name_iid = 0;
  uint64_t mapping_iid = 0;
  uint64_t rel_pc = 0;
  uint64_t source_iid = 0;
  uint64_t line = 0;
  uint64_t kind = 0;
  std::string_view kind_text;
  while (reader.Next()) {
    switch (reader.field()) {
      case field::Frame::kIid:
        iid = reader.Uint();
        break;
      case field::Frame::kFunctionNameId:
        name_iid = reader.Uint();
        break;
      case field::Frame::kMappingId:
        mapping_iid = reader.Uint();
        break;
      case field::Frame::kRelPc:
        rel_pc = reader.Uint();
        break;
      case field::Frame::kSourcePathIid:
        source_iid = reader.Uint();
        break;
      case field::Frame::kLineNumber:
        line = reader.Uint();
        break;
      case field::Frame::kKind:
        kind = reader.Uint();
        break;
      case field::Frame::kKindStr:
        kind_text = reader.Bytes();
        break;
      default:
        break;
    }
  }
  const uint32_t mapping = maps.mappings.Find(mapping_iid);
  if (mapping == kNoId && mapping_iid != 0) {
    builder_->trace().stats.Count(StatId::kStackprofileInvalidMappingId);
    return;
  }
  const StringId name = FindString(maps.function_names, name_iid);
  const uint32_t frame = builder_->InternFrame(name, mapping, rel_pc);
  if (frame == kNoId)
    return;
  step->frames.push_back({iid, frame});
  FrameTable& frames = builder_->trace().frames;
  frames.type[frame] = TypeOf(*builder_, kind, kind_text);
  if (source_iid != 0 && frames.symbol_set[frame] == kNoId)
    frames.symbol_set[frame] =
        builder_->AddSymbol(kNoId, name, FindString(maps.source_paths, source_iid),
                            line <= UINT32_MAX ? static_cast<uint32_t>(line) : 0);
}

void InternedTables::CountMalformed() {
  builder_->trace().stats.Count(StatId::kStackprofileParserError);
}

StackStep InternedTables::AddInternedData(std::string_view message) {
  // Inside a packet the order is free: each kind waits for those that it refers to.
  mappings_.clear();
  frames_.clear();
  StackStep step;
  FieldReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::InternedData::kFunctionNames:
        AddString(interned_.function_names, reader.Bytes());
        break;
      case field::InternedData::kBuildIds:
        AddString(interned_.build_ids, reader.Bytes());
        break;
      case field::InternedData::kMappingPaths:
        AddString(interned_.mapping_paths, reader.Bytes());
        break;
      case field::InternedData::kSourcePaths:
        AddString(interned_.source_paths, reader.Bytes());
        break;
      case field::InternedData::kMappings:
        mappings_.push_back(reader.Bytes());
        break;
      case field::InternedData::kFrames:
        frames_.push_back(reader.Bytes());
        break;
      case field::InternedData::kCallstacks:
        if (step.message.empty())
          step.message = message;
        break;
      default:
        break;
    }
  }
  for (const std::string_view mapping : mappings_)
    AddMapping(interned_, mapping);
  for (const std::string_view frame : frames_)
    AddFrame(interned_, frame, &step);
  if (reader.is_malformed())
    CountMalformed();
  return step;
}

StackStep InternedTables::AddProfileTables(std::string_view message) {
  StackStep step;
  step.is_interned_data = false;
  for (const uint32_t kind :
       {field::ProfilePacket::kStrings, field::ProfilePacket::kMappings,
        field::ProfilePacket::kFrames}) {
    MessageReader reader(message);
    while (reader.Next()) {
      if (reader.field() == field::ProfilePacket::kCallstacks && step.message.empty())
        step.message = message;
      if (reader.field() != kind)
        continue;
      if (kind == field::ProfilePacket::kStrings)
        AddString(inline_.function_names, reader.Bytes());
      else if (kind == field::ProfilePacket::kMappings)
        AddMapping(inline_, reader.Bytes());
      else
        AddFrame(inline_, reader.Bytes(), &step);
    }
  }
  return step;
}

void InternedTables::Clear() {
  interned_ = Maps();
}

Mapping MappingOfProfile(const ImportedTrace& trace, const ImportedMapping& mapping) {
  const std::string_view name = trace.Text(mapping.name);
  Mapping restored;
  restored.start = mapping.start;
  restored.end = mapping.end;
  restored.exact_offset = mapping.exact_offset;
  restored.start_offset = mapping.start_offset;
  restored.load_bias = mapping.load_bias;
  restored.path = std::string(name.starts_with("/[") ? name.substr(1) : name);
  restored.build_id = BuildIdBytes(trace.Text(mapping.build_id));
  return restored;
}

}  // namespace heapprofd
