#include "export/pprof_message.h"

#include <array>
#include <utility>

#include "base/utf8.h"
#include "trace/pprof_fields.h"

namespace heapprofd {
namespace {

using protozero::pbf_writer;

// Functions that every stack ends in, so that "top" would show nothing else. pprof
// removes them together with what they call.
constexpr char kDropFrames[] =
    "malloc|calloc|realloc|reallocarray|free|posix_memalign|aligned_alloc|memalign|"
    "valloc|pvalloc|mallocx|rallocx|xallocx|"
    "operator new|operator new\\[\\]|operator delete|operator delete\\[\\]|"
    "AHeapProfile_reportAllocation|AHeapProfile_reportSample|"
    "__libc_malloc|__libc_calloc|__libc_realloc|__libc_memalign";

constexpr unsigned kLengthDelimited = 2;  // wire type
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr size_t kMaxVarint = 10;  // bytes

// Returns the end of what it writes.
char* WriteVarint(uint64_t value, char* at) {
  for (; value >= 0x80; value >>= 7)
    *at++ = static_cast<char>(value | 0x80);
  *at++ = static_cast<char>(value);
  return at;
}

void AppendBytes(uint32_t field, std::string_view bytes, std::string& output) {
  std::array<char, 2 * kMaxVarint> head;
  char* end = WriteVarint(field << 3 | kLengthDelimited, head.data());
  end = WriteVarint(bytes.size(), end);
  output.append(head.data(), end);
  output.append(bytes);
}

}  // namespace

PprofMessage::PprofMessage(PprofOutput output)
    : output_(std::move(output)), writer_(pending_) {}

void PprofMessage::Flush() {
  output_(pending_);
  pending_.clear();
}

void PprofMessage::AddSampleType(std::string_view type, std::string_view unit) {
  pbf_writer value(writer_, pprof_field::Profile::kSampleType);
  value.add_int64(pprof_field::ValueType::kType, strings_.Intern(type));
  value.add_int64(pprof_field::ValueType::kUnit, strings_.Intern(unit));
}

void PprofMessage::AddMapping(const Mapping& source) {
  const StringId path = strings_.Intern(source.path);
  const StringId build_id = strings_.Intern(source.build_id);
  pbf_writer mapping(writer_, pprof_field::Profile::kMapping);
  mapping.add_uint64(pprof_field::Mapping::kId, source.id);
  mapping.add_uint64(pprof_field::Mapping::kMemoryStart, source.start);
  mapping.add_uint64(pprof_field::Mapping::kMemoryLimit, source.end);
  mapping.add_uint64(pprof_field::Mapping::kFileOffset, source.file_offset);
  mapping.add_int64(pprof_field::Mapping::kFilename, path);
  mapping.add_int64(pprof_field::Mapping::kBuildId, build_id);
  mapping.add_bool(pprof_field::Mapping::kHasFunctions, source.features.functions);
  mapping.add_bool(pprof_field::Mapping::kHasFilenames, source.features.files);
  mapping.add_bool(pprof_field::Mapping::kHasLineNumbers, source.features.lines);
  mapping.add_bool(pprof_field::Mapping::kHasInlineFrames, source.features.inlines);
}

uint64_t PprofMessage::InternFunction(std::string_view name,
                                      std::string_view system_name,
                                      std::string_view file) {
  const Function key = {.name = strings_.Intern(name),
                        .system_name = strings_.Intern(system_name),
                        .file = strings_.Intern(file)};
  function_index_.Prepare([this](uint32_t row) { return HashOf(functions_[row]); });
  uint32_t& row = function_index_.Find(
      HashOf(key), [&](uint32_t other) { return functions_[other] == key; });
  if (row != RowIndex::kNone)
    return uint64_t{row} + 1;
  row = static_cast<uint32_t>(functions_.size());
  functions_.push_back(key);
  function_index_.CountAdded();
  const uint64_t id = functions_.size();
  pbf_writer function(writer_, pprof_field::Profile::kFunction);
  function.add_uint64(pprof_field::Function::kId, id);
  function.add_int64(pprof_field::Function::kName, key.name);
  function.add_int64(pprof_field::Function::kSystemName, key.system_name);
  function.add_int64(pprof_field::Function::kFilename, key.file);
  return id;
}

void PprofMessage::AddLocation(uint64_t id,
                               uint64_t mapping,
                               uint64_t address,
                               std::span<const Line> lines) {
  pbf_writer location(writer_, pprof_field::Profile::kLocation);
  location.add_uint64(pprof_field::Location::kId, id);
  location.add_uint64(pprof_field::Location::kMappingId, mapping);
  location.add_uint64(pprof_field::Location::kAddress, address);
  for (const Line& source : lines) {
    pbf_writer line(location, pprof_field::Location::kLine);
    line.add_uint64(pprof_field::Line::kFunctionId, source.function);
    line.add_int64(pprof_field::Line::kLine, source.line);
  }
}

// By hand: profiles have millions of numbers here, and little else.
void PprofMessage::AddSample(std::span<const uint64_t> locations,
                             std::span<const int64_t> values,
                             std::span<const Label> labels) {
  const size_t most = (locations.size() + values.size()) * kMaxVarint;
  if (packed_.size() < most)
    packed_.resize(most);
  char* const begin = packed_.data();
  char* at = begin;
  for (const uint64_t location : locations)
    at = WriteVarint(location, at);
  char* const values_begin = at;
  for (const int64_t value : values)
    at = WriteVarint(static_cast<uint64_t>(value), at);
  sample_.clear();
  if (!locations.empty())
    AppendBytes(pprof_field::Sample::kLocationId, {begin, values_begin}, sample_);
  AppendBytes(pprof_field::Sample::kValue, {values_begin, at}, sample_);
  for (const auto& [key, text] : labels) {
    const StringId key_id = strings_.Intern(key);
    const StringId text_id = strings_.Intern(text);
    pbf_writer sample(sample_);
    pbf_writer label(sample, pprof_field::Sample::kLabel);
    label.add_int64(pprof_field::Label::kKey, key_id);
    label.add_int64(pprof_field::Label::kStr, text_id);
  }
  AppendBytes(pprof_field::Profile::kSample, sample_, pending_);
  if (pending_.size() >= kPieceBytes)
    Flush();
}

void PprofMessage::Finish(const Header& header) {
  writer_.add_int64(pprof_field::Profile::kDropFrames, strings_.Intern(kDropFrames));
  writer_.add_int64(pprof_field::Profile::kTimeNanos,
                    static_cast<int64_t>(header.time_unix_ns));
  writer_.add_int64(pprof_field::Profile::kDurationNanos,
                    static_cast<int64_t>(header.duration_ns));
  {
    const StringId type = strings_.Intern("space");
    const StringId unit = strings_.Intern("bytes");
    pbf_writer period_type(writer_, pprof_field::Profile::kPeriodType);
    period_type.add_int64(pprof_field::ValueType::kType, type);
    period_type.add_int64(pprof_field::ValueType::kUnit, unit);
  }
  writer_.add_int64(pprof_field::Profile::kPeriod,
                    static_cast<int64_t>(header.sampling_interval));
  for (const std::string& comment : header.comments)
    writer_.add_int64(pprof_field::Profile::kComment, strings_.Intern(comment));
  writer_.add_int64(pprof_field::Profile::kDefaultSampleType,
                    strings_.Intern(header.default_sample_type));
  for (StringId id = 0; id < strings_.size(); ++id)
    writer_.add_string(pprof_field::Profile::kStringTable, ToUtf8(strings_.Get(id)));
  Flush();
}

}  // namespace heapprofd
