#include "trace/interned_ids.h"

#include "trace/fields.h"
#include "trace/limits.h"
#include "trace/module_symbols.h"

namespace heapprofd {

namespace {

using protozero::pbf_writer;

}  // namespace

uint64_t InternedIds::String(uint32_t kind, std::string_view text, InternedBatch& batch) {
  if (text.empty())
    return 0;
  text = BoundedText(text);
  const auto [entry, is_new] =
      strings_.try_emplace(std::to_string(kind) + ":" + std::string(text), next_);
  if (is_new) {
    ++next_;
    pbf_writer writer(batch.writer(), kind);
    writer.add_uint64(field::InternedString::kIid, entry->second);
    writer.add_bytes(field::InternedString::kStr, text.data(), text.size());
  }
  return entry->second;
}

uint64_t InternedIds::MappingOf(const TargetProfile& profile,
                                MappingId id,
                                OfTarget& target,
                                InternedBatch& batch) {
  if (id == kNoId)
    return 0;
  uint64_t& iid = target.mappings[id];
  if (iid != 0)
    return iid;
  const Mapping& mapping = profile.mappings[id];
  const uint64_t build_id =
      String(field::InternedData::kBuildIds, mapping.build_id, batch);
  std::vector<uint64_t> path;
  for (const std::string_view component : PathComponents(BoundedText(mapping.path)))
    path.push_back(String(field::InternedData::kMappingPaths, component, batch));
  iid = next_++;
  pbf_writer writer(batch.writer(), field::InternedData::kMappings);
  writer.add_uint64(field::Mapping::kIid, iid);
  writer.add_uint64(field::Mapping::kBuildId, build_id);
  writer.add_uint64(field::Mapping::kStartOffset, mapping.start_offset);
  writer.add_uint64(field::Mapping::kStart, mapping.start);
  writer.add_uint64(field::Mapping::kEnd, mapping.end);
  writer.add_uint64(field::Mapping::kLoadBias, mapping.load_bias);
  for (const uint64_t component : path)
    writer.add_uint64(field::Mapping::kPathStringIds, component);
  writer.add_uint64(field::Mapping::kExactOffset, mapping.exact_offset);
  return iid;
}

// By its name readers tell label frames from functions.
uint64_t InternedIds::LabelMapping(InternedBatch& batch) {
  if (label_mapping_ != 0)
    return label_mapping_;
  const uint64_t path =
      String(field::InternedData::kMappingPaths, kLabelMappingName, batch);
  label_mapping_ = next_++;
  pbf_writer writer(batch.writer(), field::InternedData::kMappings);
  writer.add_uint64(field::Mapping::kIid, label_mapping_);
  writer.add_uint64(field::Mapping::kBuildId, 0);
  writer.add_uint64(field::Mapping::kPathStringIds, path);
  return label_mapping_;
}

uint64_t InternedIds::FrameOf(const TargetProfile& profile,
                              FrameId id,
                              OfTarget& target,
                              InternedBatch& batch) {
  uint64_t& iid = target.frames[id];
  if (iid != 0)
    return iid;
  const Frame& frame = profile.frames[id];
  const uint64_t mapping = frame.is_label
                               ? LabelMapping(batch)
                               : MappingOf(profile, frame.mapping, target, batch);
  uint64_t name = 0;
  if (!frame.lines.empty()) {
    const SourceLine& outermost = frame.lines.back();
    name =
        String(field::InternedData::kFunctionNames,
               outermost.system_name.empty() ? outermost.function : outermost.system_name,
               batch);
  }
  iid = next_frame_++;
  pbf_writer writer(batch.writer(), field::InternedData::kFrames);
  writer.add_uint64(field::Frame::kIid, iid);
  writer.add_uint64(field::Frame::kFunctionNameId, name);
  writer.add_uint64(field::Frame::kMappingId, mapping);
  writer.add_uint64(field::Frame::kRelPc, frame.rel_pc);
  return iid;
}

}  // namespace heapprofd
