#include "export/pprof.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>

#include <protozero/pbf_writer.hpp>

#include "base/scoped_fd.h"
#include "base/text.h"
#include "export/utf8.h"
#include "export/view.h"

namespace heapprofd {
namespace {

using protozero::pbf_writer;

// Field numbers of perftools.profiles; see proto/pprof.proto.
namespace profile_field {
enum : uint32_t {
  kSampleType = 1,
  kSample = 2,
  kMapping = 3,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kDropFrames = 7,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kPeriodType = 11,
  kPeriod = 12,
  kComment = 13,
  kDefaultSampleType = 14,
};
}  // namespace profile_field

// Functions that every stack ends in, so that "top" would show nothing else. pprof
// removes them together with what they call.
constexpr char kDropFrames[] =
    "malloc|calloc|realloc|reallocarray|free|posix_memalign|aligned_alloc|memalign|"
    "valloc|pvalloc|"
    "operator new|operator new\\[\\]|operator delete|operator delete\\[\\]|"
    "__libc_malloc|__libc_calloc|__libc_realloc|__libc_memalign";

class StringTable {
 public:
  StringTable() { Intern(""); }

  int64_t Intern(const std::string& text) {
    const auto [entry, is_new] =
        ids_.try_emplace(text, static_cast<int64_t>(strings_.size()));
    if (is_new)
      strings_.push_back(ToUtf8(text));
    return entry->second;
  }

  const std::vector<std::string>& strings() const { return strings_; }

 private:
  std::unordered_map<std::string, int64_t> ids_;
  std::vector<std::string> strings_;
};

class PprofEncoder {
 public:
  PprofEncoder(const TargetProfile& profile, const HeapDump& dump)
      : profile_(profile),
        dump_(dump),
        writer_(output_),
        location_written_(profile.frames.size()),
        mapping_written_(profile.mappings.size() + 1) {}

  std::string Encode(const PprofOptions& options) {
    for (const auto& [type, unit] :
         {std::pair("alloc_objects", "count"), std::pair("alloc_space", "bytes"),
          std::pair("objects", "count"), std::pair("space", "bytes")})
      WriteValueType(profile_field::kSampleType, type, unit);
    if (options.with_maximum) {
      WriteValueType(profile_field::kSampleType, "max_objects", "count");
      WriteValueType(profile_field::kSampleType, "max_space", "bytes");
    }
    WriteProgramMapping();
    WriteSamples(options.with_maximum);
    writer_.add_int64(profile_field::kDropFrames, strings_.Intern(kDropFrames));
    writer_.add_int64(profile_field::kTimeNanos,
                      static_cast<int64_t>(options.time_unix_ns));
    writer_.add_int64(
        profile_field::kDurationNanos,
        static_cast<int64_t>(dump_.end_ns -
                             std::min(dump_.end_ns, profile_.process.start_ns)));
    WriteValueType(profile_field::kPeriodType, "space", "bytes");
    writer_.add_int64(profile_field::kPeriod,
                      static_cast<int64_t>(dump_.sampling_interval));
    for (const std::string& comment : options.comments)
      writer_.add_int64(profile_field::kComment, strings_.Intern(comment));
    writer_.add_int64(profile_field::kComment, strings_.Intern(QualityComment()));
    writer_.add_int64(profile_field::kDefaultSampleType,
                      strings_.Intern(options.with_maximum ? "max_space" : "space"));
    for (const std::string& text : strings_.strings())
      writer_.add_string(profile_field::kStringTable, text);
    return std::move(output_);
  }

 private:
  void WriteValueType(uint32_t field, const char* type, const char* unit) {
    pbf_writer value(writer_, field);
    value.add_int64(1, strings_.Intern(type));
    value.add_int64(2, strings_.Intern(unit));
  }

  std::string QualityComment() const {
    const Quality& quality = profile_.quality;
    return "quality: " + std::to_string(quality.samples) + " samples, " +
           std::to_string(quality.lost_records) + " lost records, " +
           std::to_string(quality.truncated_stacks) + " truncated stacks, " +
           std::to_string(quality.unwind_errors) + " unwind errors, " +
           std::to_string(quality.agreed_samples) + " of " +
           std::to_string(quality.checked_samples) + " checked stacks agreed";
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

  void WriteSamples(bool with_maximum) {
    std::vector<CallsiteId> ids;
    for (const auto& [id, totals] : dump_.callsites)
      ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    for (const CallsiteId id : ids) {
      std::vector<uint64_t> locations;
      std::vector<std::pair<int64_t, int64_t>> labels;
      for (CallsiteId at = id; at != kNoId; at = profile_.callsites[at].parent) {
        const FrameId frame = profile_.callsites[at].frame;
        if (profile_.frames[frame].is_label)
          labels.push_back(LabelOf(profile_.frames[frame]));
        else
          locations.push_back(LocationOf(frame));
      }
      const CallsiteTotals& totals = dump_.callsites.at(id);
      std::vector<int64_t> values = {
          ValueOf(totals, View::kAllocObjects), ValueOf(totals, View::kAllocSpace),
          ValueOf(totals, View::kObjects), ValueOf(totals, View::kSpace)};
      if (with_maximum) {
        const auto peak = dump_.peak.find(id);
        const Estimate at_max = peak != dump_.peak.end() ? peak->second : Estimate();
        values.push_back(RoundedValue(at_max.count));
        values.push_back(RoundedValue(at_max.bytes));
      }
      pbf_writer sample(writer_, profile_field::kSample);
      sample.add_packed_uint64(1, locations.begin(), locations.end());
      sample.add_packed_int64(2, std::begin(values), std::end(values));
      for (const auto& [key, value] : labels) {
        pbf_writer label(sample, 3);
        label.add_int64(1, key);
        label.add_int64(2, value);
      }
    }
  }

  // Key and text of a label frame, in the string table.
  std::pair<int64_t, int64_t> LabelOf(const Frame& frame) {
    const std::string& text = frame.lines[0].function;
    const size_t equals = text.find('=');
    return {strings_.Intern(text.substr(0, equals)),
            strings_.Intern(equals != std::string::npos ? text.substr(equals + 1) : "")};
  }

  uint64_t LocationOf(FrameId id) {
    const uint64_t location_id = uint64_t{id} + 1;
    if (location_written_[id])
      return location_id;
    location_written_[id] = true;
    const Frame& frame = profile_.frames[id];
    const uint64_t mapping_id = MappingOf(frame.mapping);
    std::vector<std::pair<uint64_t, int64_t>> lines;
    for (const SourceLine& line : frame.lines)
      lines.emplace_back(FunctionOf(line), line.line);
    pbf_writer location(writer_, profile_field::kLocation);
    location.add_uint64(1, location_id);
    location.add_uint64(2, mapping_id);
    location.add_uint64(3, AddressOf(frame));
    for (const auto& [function, number] : lines) {
      pbf_writer line(location, 4);
      line.add_uint64(1, function);
      line.add_int64(2, number);
    }
    return location_id;
  }

  uint64_t AddressOf(const Frame& frame) const {
    if (frame.mapping == kNoId)
      return frame.rel_pc;
    return frame.rel_pc - profile_.mappings[frame.mapping].ToRelPc(0);
  }

  // Every location needs a mapping: readers drop locations without one. The last id is
  // for frames that belong to none.
  uint64_t MappingOf(MappingId id) {
    const size_t index = id == kNoId ? profile_.mappings.size() : id;
    const uint64_t mapping_id = index + 1;
    if (mapping_written_[index])
      return mapping_id;
    mapping_written_[index] = true;
    Mapping none;
    none.path = "[unknown]";
    const Mapping& source = id == kNoId ? none : profile_.mappings[id];
    const Features features = FeaturesOf(id);
    const int64_t path =
        strings_.Intern(source.path.empty() ? "[anonymous]" : source.path);
    const int64_t build_id = strings_.Intern(HexEncode(source.build_id));
    pbf_writer mapping(writer_, profile_field::kMapping);
    mapping.add_uint64(1, mapping_id);
    mapping.add_uint64(2, source.start);
    mapping.add_uint64(3, source.end);
    mapping.add_uint64(4, source.exact_offset);
    mapping.add_int64(5, path);
    mapping.add_int64(6, build_id);
    mapping.add_bool(7, features.functions);
    mapping.add_bool(8, features.files);
    mapping.add_bool(9, features.lines);
    mapping.add_bool(10, features.inlines);
    return mapping_id;
  }

  struct Features {
    bool functions = false;
    bool files = false;
    bool lines = false;
    bool inlines = false;
  };

  Features FeaturesOf(MappingId id) {
    if (features_.empty()) {
      features_.resize(profile_.mappings.size() + 1);
      for (const Frame& frame : profile_.frames) {
        Features& features =
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

  uint64_t FunctionOf(const SourceLine& line) {
    const std::string key = line.function + '\0' + line.system_name + '\0' + line.file;
    const auto [entry, is_new] = functions_.try_emplace(key, functions_.size() + 1);
    if (!is_new)
      return entry->second;
    const int64_t name = strings_.Intern(line.function);
    const int64_t system_name =
        strings_.Intern(line.system_name.empty() ? line.function : line.system_name);
    const int64_t file = strings_.Intern(line.file);
    pbf_writer function(writer_, profile_field::kFunction);
    function.add_uint64(1, entry->second);
    function.add_int64(2, name);
    function.add_int64(3, system_name);
    function.add_int64(4, file);
    return entry->second;
  }

  const TargetProfile& profile_;
  const HeapDump& dump_;
  std::string output_;
  pbf_writer writer_;
  StringTable strings_;
  std::unordered_map<std::string, uint64_t> functions_;
  std::vector<bool> location_written_;
  std::vector<bool> mapping_written_;
  std::vector<Features> features_;
};

Status WriteAll(int fd,
                const std::string& path,
                const std::vector<unsigned char>& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = write(fd, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return Status::FromErrno("cannot write " + path, errno);
    done += static_cast<size_t>(written);
  }
  return {};
}

std::vector<unsigned char> Gzip(const std::string& bytes) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;  // 16: gzip header instead of zlib's
  HPD_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8,
                         Z_DEFAULT_STRATEGY) == Z_OK);
  std::vector<unsigned char> compressed(deflateBound(&stream, bytes.size()) + 32);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = compressed.data();
  stream.avail_out = static_cast<uInt>(compressed.size());
  HPD_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  return compressed;
}

}  // namespace

std::string EncodePprof(const TargetProfile& profile,
                        const HeapDump& dump,
                        const PprofOptions& options) {
  return PprofEncoder(profile, dump).Encode(options);
}

Status WriteGzipFile(const std::string& path, const std::string& bytes) {
  if (bytes.size() > UINT32_MAX / 2)
    return Status(StatusCode::kUnavailable,
                  "cannot write " + path + ": the profile is larger than 2 GiB");
  const std::string temporary = path + ".tmp";
  ScopedFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid())
    return Status::FromErrno("cannot create " + temporary, errno);
  Status status = WriteAll(fd.get(), path, Gzip(bytes));
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0)
    status = Status::FromErrno("cannot rename " + temporary, errno);
  if (!status.ok())
    unlink(temporary.c_str());
  return status;
}

}  // namespace heapprofd
