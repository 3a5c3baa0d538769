#include "export/pprof.h"

#include <algorithm>

#include "base/text.h"
#include "export/formats.h"
#include "export/gzip.h"
#include "export/pprof_message.h"
#include "export/view.h"
#include "profile/estimate.h"
#include "profile/figures.h"

namespace heapprofd {
namespace {

class PprofEncoder {
 public:
  PprofEncoder(const TargetProfile& profile, const HeapDump& dump)
      : profile_(profile),
        dump_(dump),
        location_written_(profile.frames.size()),
        mapping_written_(profile.mappings.size() + 1) {}

  std::string Encode(const PprofOptions& options) {
    AddSampleTypes(options.has_maximum);
    WriteProgramMapping();
    WriteSamples(options.has_maximum);
    PprofMessage::Header header{.time_unix_ns = options.time_unix_ns,
                                .duration_ns = DurationNs(),
                                .sampling_interval = dump_.sampling_interval,
                                .default_sample_type = default_type_,
                                .comments = options.comments};
    if (profile_.quality.samples > 0)  // the file tells of it
      header.comments.push_back(QualityComment(profile_.quality));
    message_.Finish(header);
    return std::move(bytes_);
  }

 private:
  struct ViewType {
    View view;
    const char* name;
    const char* unit;
  };

  static constexpr ViewType kViewTypes[] = {
      {View::kAllocObjects, "alloc_objects", "count"},
      {View::kAllocSpace, "alloc_space", "bytes"},
      {View::kObjects, "objects", "count"},
      {View::kSpace, "space", "bytes"},
  };

  void AddSampleTypes(bool has_maximum) {
    for (const ViewType& type : kViewTypes) {
      if (!IsTold(dump_.told, type.view))
        continue;
      message_.AddSampleType(type.name, type.unit);
      views_.push_back(type.view);
      if (type.view != View::kObjects || default_type_.empty())
        default_type_ = type.name;  // space, else alloc_space, else a count
    }
    if (!has_maximum)
      return;
    message_.AddSampleType("max_objects", "count");
    message_.AddSampleType("max_space", "bytes");
    default_type_ = "max_space";
  }

  // 0: files that are no recordings may not tell when it began.
  uint64_t DurationNs() const {
    const uint64_t start_ns = profile_.process.start_ns;
    return start_ns == 0 ? 0 : dump_.end_ns - std::min(dump_.end_ns, start_ns);
  }

  // Readers take the first mapping for the program.
  void WriteProgramMapping() {
    for (size_t i = 0; i < profile_.mappings.size(); ++i) {
      if (profile_.mappings[i].path == profile_.process.executable) {
        MappingOf(static_cast<MappingId>(i));
        return;
      }
    }
  }

  void WriteSamples(bool has_maximum) {
    for (const auto& [id, totals] : dump_.callsites) {
      const auto peak = dump_.peak.find(id);
      WriteSample(id, totals,
                  has_maximum && peak != dump_.peak.end() ? peak->second : Estimate(),
                  has_maximum);
    }
    if (!has_maximum)
      return;
    for (const auto& [id, peak] : dump_.peak) {
      if (dump_.callsites.find(id) == dump_.callsites.end())
        WriteSample(id, {}, peak, has_maximum);
    }
  }

  void WriteSample(CallsiteId id,
                   const CallsiteTotals& totals,
                   const Estimate& peak,
                   bool has_maximum) {
    locations_.clear();
    labels_.clear();
    for (CallsiteId at = id; at != kNoId; at = profile_.callsites[at].parent) {
      const FrameId frame = profile_.callsites[at].frame;
      if (profile_.frames[frame].is_label)
        labels_.push_back(LabelOf(profile_.frames[frame]));
      else
        locations_.push_back(LocationOf(frame));
    }
    values_.clear();
    for (const View view : views_)
      values_.push_back(ValueOf(totals, view));
    if (has_maximum) {
      values_.push_back(RoundedFigure(peak.count));
      values_.push_back(RoundedFigure(peak.bytes));
    }
    message_.AddSample(locations_, values_, labels_);
  }

  // Key and text of a label frame.
  static PprofMessage::Label LabelOf(const Frame& frame) {
    const std::string_view text = frame.lines[0].function;
    const size_t equals = std::min(text.find('='), text.size());
    return {.key = text.substr(0, equals),
            .text = text.substr(std::min(equals + 1, text.size()))};
  }

  uint64_t LocationOf(FrameId id) {
    const uint64_t location_id = uint64_t{id} + 1;
    if (location_written_[id])
      return location_id;
    location_written_[id] = true;
    const Frame& frame = profile_.frames[id];
    std::vector<PprofMessage::Line> lines;
    for (const SourceLine& line : frame.lines) {
      const std::string_view system_name =
          line.system_name.empty() ? line.function : line.system_name;
      lines.push_back(
          {message_.InternFunction(line.function, system_name, line.file), line.line});
    }
    message_.AddLocation(location_id, MappingOf(frame.mapping), AddressOf(frame), lines);
    return location_id;
  }

  uint64_t AddressOf(const Frame& frame) const {
    if (frame.mapping == kNoId)
      return frame.rel_pc;
    return frame.rel_pc - profile_.mappings[frame.mapping].ToRelPc(0);
  }

  // Every location needs a mapping: the last id is for frames that belong to none.
  uint64_t MappingOf(MappingId id) {
    const size_t index = id == kNoId ? profile_.mappings.size() : id;
    const uint64_t mapping_id = index + 1;
    if (mapping_written_[index])
      return mapping_id;
    mapping_written_[index] = true;
    Mapping none;
    none.path = "[unknown]";
    const Mapping& source = id == kNoId ? none : profile_.mappings[id];
    const std::string build_id = HexEncode(source.build_id);
    message_.AddMapping({.id = mapping_id,
                         .start = source.start,
                         .end = source.end,
                         .file_offset = source.exact_offset,
                         .path = source.path.empty() ? "[anonymous]" : source.path,
                         .build_id = build_id,
                         .features = FeaturesOf(id)});
    return mapping_id;
  }

  PprofMessage::Features FeaturesOf(MappingId id) {
    if (features_.empty()) {
      features_.resize(profile_.mappings.size() + 1);
      for (const Frame& frame : profile_.frames) {
        PprofMessage::Features& features =
            features_[frame.mapping == kNoId ? profile_.mappings.size() : frame.mapping];
        features.functions |= !frame.lines.empty();
        features.inlines |= frame.lines.size() > 1;
        for (const SourceLine& line : frame.lines) {
          features.files |= !line.file.empty();
          features.lines |= line.line != 0;
        }
      }
    }
    return features_[id == kNoId ? profile_.mappings.size() : id];
  }

  const TargetProfile& profile_;
  const HeapDump& dump_;
  std::string bytes_;
  PprofMessage message_{[this](std::string_view piece) { bytes_ += piece; }};
  std::vector<bool> location_written_;
  std::vector<bool> mapping_written_;
  std::vector<PprofMessage::Features> features_;
  std::vector<View> views_;  // that are written, in the order of values
  std::string default_type_;
  std::vector<uint64_t> locations_;  // of the current sample
  std::vector<PprofMessage::Label> labels_;
  std::vector<int64_t> values_;
};

}  // namespace

std::string QualityComment(const Quality& quality) {
  std::string text = "quality:";
  for (const Figure& figure : kFigures) {
    const uint64_t value = quality.*figure.value;
    if (value != 0 || figure.value == &Quality::samples)
      text += std::string(" ") + figure.name + "=" + std::to_string(value);
  }
  return text;
}

std::string PeakComment(const BoundedBytes& peak) {
  return "peak: " + std::to_string(RoundedFigure(peak.bytes)) + " bytes, 95 % limits " +
         std::to_string(RoundedFigure(peak.low)) + " and " +
         std::to_string(RoundedFigure(peak.high));
}

std::string EncodePprofFile(const ExportedHeap& heap) {
  return Gzip(EncodePprof(heap.profile, heap.dump, heap.about));
}

std::string EncodePprof(const TargetProfile& profile,
                        const HeapDump& dump,
                        const PprofOptions& options) {
  return PprofEncoder(profile, dump).Encode(options);
}

}  // namespace heapprofd
