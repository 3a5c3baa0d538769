#include "trace/interned_tables.h"

#include <array>

#include "base/text.h"
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
  MessageReader reader(message);
  uint64_t iid = 0;
  std::string_view text;
  while (reader.Next()) {
    if (reader.field() == field::kIid)
      iid = reader.Uint();
    else if (reader.field() == field::kStringText)
      text = reader.Bytes();
  }
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
      case field::kIid:
        iid = reader.Uint();
        break;
      case field::kMappingBuildId:
        build_id = reader.Uint();
        break;
      case field::kMappingStartOffset:
        mapping.start_offset = reader.Uint();
        break;
      case field::kMappingStart:
        mapping.start = reader.Uint();
        break;
      case field::kMappingEnd:
        mapping.end = reader.Uint();
        break;
      case field::kMappingLoadBias:
        mapping.load_bias = reader.Uint();
        break;
      case field::kMappingExactOffset:
        mapping.exact_offset = reader.Uint();
        break;
      case field::kMappingPathIds:
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

void InternedTables::AddFrame(Maps& maps, std::string_view message) {
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
      case field::kIid:
        iid = reader.Uint();
        break;
      case field::kFrameFunctionName:
        name_iid = reader.Uint();
        break;
      case field::kFrameMapping:
        mapping_iid = reader.Uint();
        break;
      case field::kFrameRelPc:
        rel_pc = reader.Uint();
        break;
      case field::kFrameSourcePath:
        source_iid = reader.Uint();
        break;
      case field::kFrameLine:
        line = reader.Uint();
        break;
      case field::kFrameKind:
        kind = reader.Uint();
        break;
      case field::kFrameKindText:
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
  Insert(maps.frames, iid, frame);
  if (frame == kNoId)
    return;
  FrameTable& frames = builder_->trace().frames;
  frames.type[frame] = TypeOf(*builder_, kind, kind_text);
  if (source_iid != 0 && frames.symbol_set[frame] == kNoId)
    frames.symbol_set[frame] =
        builder_->AddSymbol(kNoId, name, FindString(maps.source_paths, source_iid),
                            line <= UINT32_MAX ? static_cast<uint32_t>(line) : 0);
}

// NOLINTNEXTLINE(readability-function-size)
void InternedTables::AddCallstack(Maps& maps, std::string_view message) {
  MessageReader reader(message);
  TraceStats& stats = builder_->trace().stats;
  uint64_t iid = 0;
  uint32_t callsite = kNoId;
  size_t depth = 0;
  bool is_valid = true;
  while (reader.Next()) {
    if (reader.field() == field::kIid) {
      iid = reader.Uint();
    } else if (reader.field() == field::kCallstackFrames) {
      reader.Uints([&](uint64_t frame_iid) {
        const uint32_t frame = maps.frames.Find(frame_iid);
        if (frame == kNoId && is_valid)
          stats.Count(StatId::kStackprofileInvalidFrameId);
        is_valid = is_valid && frame != kNoId;
        if (!is_valid)
          return;
        if (depth < last_stack_.size() && last_stack_[depth].first == frame) {
          callsite = last_stack_[depth].second;
        } else {
          last_stack_.resize(depth);
          callsite = builder_->InternCallsite(callsite, frame);
          last_stack_.emplace_back(frame, callsite);
        }
        ++depth;
      });
    }
  }
  if (callsite == kNoId && is_valid)
    stats.Count(StatId::kStackprofileEmptyCallstack);
  if (is_valid)
    Insert(maps.callstacks, iid, callsite);
}

void InternedTables::AddInternedData(std::string_view message) {
  // Inside a packet the order is free: each kind before those that refer to it.
  enum Pass : uint8_t { kStrings, kMappings, kFrames, kCallstacks };

  for (const Pass pass : {kStrings, kMappings, kFrames, kCallstacks}) {
    MessageReader reader(message);
    while (reader.Next()) {
      const uint32_t kind = reader.field();
      if (pass == kStrings) {
        if (kind == field::kInternedFunctionNames)
          AddString(interned_.function_names, reader.Bytes());
        else if (kind == field::kInternedBuildIds)
          AddString(interned_.build_ids, reader.Bytes());
        else if (kind == field::kInternedMappingPaths)
          AddString(interned_.mapping_paths, reader.Bytes());
        else if (kind == field::kInternedSourcePaths)
          AddString(interned_.source_paths, reader.Bytes());
      } else if (pass == kMappings && kind == field::kInternedMappings) {
        AddMapping(interned_, reader.Bytes());
      } else if (pass == kFrames && kind == field::kInternedFrames) {
        AddFrame(interned_, reader.Bytes());
      } else if (pass == kCallstacks && kind == field::kInternedCallstacks) {
        AddCallstack(interned_, reader.Bytes());
      }
    }
  }
}

void InternedTables::AddProfileTables(std::string_view message) {
  for (const uint32_t kind : {field::kProfileStrings, field::kProfileMappings,
                              field::kProfileFrames, field::kProfileCallstacks}) {
    MessageReader reader(message);
    while (reader.Next()) {
      if (reader.field() != kind)
        continue;
      if (kind == field::kProfileStrings)
        AddString(inline_.function_names, reader.Bytes());
      else if (kind == field::kProfileMappings)
        AddMapping(inline_, reader.Bytes());
      else if (kind == field::kProfileFrames)
        AddFrame(inline_, reader.Bytes());
      else
        AddCallstack(inline_, reader.Bytes());
    }
  }
}

void InternedTables::Clear() {
  interned_ = Maps();
}

uint32_t InternedTables::FindCallstack(uint64_t iid) const {
  const uint32_t callsite = inline_.callstacks.Find(iid);
  return callsite != kNoId ? callsite : interned_.callstacks.Find(iid);
}

}  // namespace heapprofd
