// The whole profile is read first: its strings may come last.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include <protozero/exception.hpp>

#include "base/text.h"
#include "import/formats.h"
#include "trace/message_reader.h"
#include "trace/pprof_fields.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxProfileBytes = size_t{4} << 30;
constexpr size_t kMaxStack = size_t{1} << 16;  // locations of a sample
constexpr size_t kNoFigure = SIZE_MAX;

using ProfileField = pprof_field::Profile;

struct PprofFunction {
  uint64_t name = 0;
  uint64_t system_name = 0;
  uint64_t file = 0;
};

struct PprofLine {
  uint64_t function = 0;
  uint64_t line = 0;
};

struct PprofMapping {
  uint64_t start = 0;
  uint64_t limit = 0;
  uint64_t offset = 0;
  uint64_t file = 0;
  uint64_t build_id = 0;
};

struct PprofLocation {
  uint64_t id = 0;
  uint64_t mapping = 0;
  uint64_t address = 0;
  std::vector<PprofLine> lines;
};

struct ValueType {
  uint64_t type = 0;
  uint64_t unit = 0;
};

// Which value of a sample is which figure of ours.
struct Figures {
  size_t alloc_count = kNoFigure;
  size_t alloc_size = kNoFigure;
  size_t live_count = kNoFigure;
  size_t live_size = kNoFigure;
};

class PprofImporter {
 public:
  PprofImporter(const std::string& name, TraceBuilder& builder)
      : name_(name), builder_(builder) {}

  // The views in it must live until Finish().
  void ReadProfile(std::string_view bytes) {
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
        case ProfileField::kPeriod:
          period_ = profile.Uint();
          break;
        default:
          break;
      }
    }
  }

  // kCorrupt when it is no profile.
  Status Finish(ImportReport* report) {
    if (value_types_.empty() || strings_.empty())
      return Status(StatusCode::kCorrupt, "cannot read " + name_ +
                                              ": its format is not known; it looks like "
                                              "a pprof profile, but names no kind of "
                                              "value");
    ChooseFigures();
    for (const PprofLocation& location : locations_)
      AddLocation(location);
    BeginDump();
    for (const std::string_view sample : samples_) {
      try {
        AddSample(sample, report);
      } catch (const protozero::exception&) {
        ++report->bad_records;
      }
    }
    return {};
  }

 private:
  static ValueType ReadValueType(std::string_view bytes) {
    ValueType type;
    MessageReader message(bytes);
    while (message.Next()) {
      if (message.field() == pprof_field::ValueType::kType)
        type.type = message.Uint();
      else if (message.field() == pprof_field::ValueType::kUnit)
        type.unit = message.Uint();
    }
    return type;
  }

  void ReadMapping(std::string_view bytes) {
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

  void ReadLocation(std::string_view bytes) {
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

  static PprofLine ReadLine(std::string_view bytes) {
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

  void ReadFunction(std::string_view bytes) {
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

  std::string_view StringAt(uint64_t index) const {
    return index < strings_.size() ? strings_[index] : std::string_view();
  }

  StringId Intern(uint64_t index) { return builder_.Intern(StringAt(index)); }

  StringId InternOrNull(uint64_t index) {
    return StringAt(index).empty() ? kNoId : Intern(index);
  }

  // "alloc_space" and "Total malloc size" say what was ever allocated, "space",
  // "inuse_space" and "Unreleased malloc size" what is live. A profile of something else
  // has its last value, which pprof shows by default, as its live size.
  void ChooseFigures() {
    for (size_t i = 0; i < value_types_.size(); ++i) {
      const std::string_view type = StringAt(value_types_[i].type);
      const bool is_bytes = StringAt(value_types_[i].unit) == "bytes";
      const bool is_count = StringAt(value_types_[i].unit) == "count";
      const bool is_total = type.starts_with("alloc_") || type.starts_with("Total ");
      if (is_bytes)
        (is_total ? figures_.alloc_size : figures_.live_size) = i;
      else if (is_count)
        (is_total ? figures_.alloc_count : figures_.live_count) = i;
    }
    if (figures_.alloc_size == kNoFigure && figures_.live_size == kNoFigure &&
        figures_.alloc_count == kNoFigure && figures_.live_count == kNoFigure)
      figures_.live_size = value_types_.size() - 1;
  }

  void BeginDump() {
    ImportedDump dump;
    dump.upid = AddNamedProcess(FileName(name_), builder_);
    dump.heap_name = builder_.Intern("pprof");
    dump.ts = time_ns_;
    if (duration_ns_ > 0 && duration_ns_ <= time_ns_)
      dump.start_ts = time_ns_ - duration_ns_;
    dump.sampling_interval = period_;
    dump.original_sampling_interval = period_;
    builder_.dumps().Begin(dump);
  }

  uint32_t MappingOf(const PprofLocation& location, uint64_t* rel_pc) {
    *rel_pc = location.address;
    const auto found = mappings_.find(location.mapping);
    if (found == mappings_.end())
      return kNoId;
    const PprofMapping& mapping = found->second;
    if (location.address >= mapping.start && location.address < mapping.limit)
      *rel_pc = location.address - mapping.start + mapping.offset;
    ImportedMapping row;
    row.name = Intern(mapping.file);
    row.build_id = Intern(mapping.build_id);
    row.start = mapping.start;
    row.end = mapping.limit;
    row.exact_offset = mapping.offset;
    return builder_.InternMapping(row);
  }

  // A function's name for linkers when the profile has it: demangling is up to queries.
  StringId NameOf(const PprofLine& line) {
    const auto function = functions_.find(line.function);
    if (function == functions_.end())
      return kEmptyString;
    const std::string_view system_name = StringAt(function->second.system_name);
    return system_name.starts_with("_") ? builder_.Intern(system_name)
                                        : Intern(function->second.name);
  }

  StringId FileOf(const PprofLine& line) {
    const auto function = functions_.find(line.function);
    return function == functions_.end() ? kNoId : InternOrNull(function->second.file);
  }

  void AddLocation(const PprofLocation& location) {
    uint64_t rel_pc = 0;
    const uint32_t mapping = MappingOf(location, &rel_pc);
    const StringId name =
        location.lines.empty() ? kEmptyString : NameOf(location.lines.back());
    uint32_t frame = builder_.InternFrame(name, mapping, rel_pc);
    // Profiles without addresses have several lines of one function: each is a frame.
    if (frame != kNoId && !location.lines.empty() &&
        builder_.trace().frames.symbol_set[frame] != kNoId && !HasLines(frame, location))
      frame = builder_.InternFrame(name, mapping, kFirstMadeUpPc + location.id);
    frames_[location.id] = frame;
    if (frame == kNoId || location.lines.empty() ||
        builder_.trace().frames.symbol_set[frame] != kNoId)
      return;
    uint32_t set = kNoId;
    for (const PprofLine& line : location.lines)
      set = builder_.AddSymbol(
          set, NameOf(line), FileOf(line),
          static_cast<uint32_t>(std::min<uint64_t>(line.line, UINT32_MAX)));
    builder_.trace().frames.symbol_set[frame] = set;
  }

  bool HasLines(uint32_t frame, const PprofLocation& location) {
    const SymbolTable& symbols = builder_.trace().symbols;
    const uint32_t set = builder_.trace().frames.symbol_set[frame];
    if (symbols.EndOf(set) - set != location.lines.size())
      return false;
    for (size_t i = 0; i < location.lines.size(); ++i) {
      if (symbols.name[set + i] != NameOf(location.lines[i]) ||
          symbols.source_file[set + i] != FileOf(location.lines[i]) ||
          symbols.line[set + i] != location.lines[i].line)
        return false;
    }
    return true;
  }

  void AddSample(std::string_view bytes, ImportReport* report) {
    stack_.clear();
    values_.clear();
    MessageReader message(bytes);
    while (message.Next()) {
      if (message.field() == pprof_field::Sample::kLocationId)
        message.Uints([this](uint64_t id) { stack_.push_back(id); });
      else if (message.field() == pprof_field::Sample::kValue)
        message.Uints(
            [this](uint64_t value) { values_.push_back(static_cast<int64_t>(value)); });
    }
    if (stack_.size() > kMaxStack) {
      ++report->bad_records;
      return;
    }
    stack_frames_.clear();
    for (size_t i = stack_.size(); i-- > 0;) {
      const auto frame = frames_.find(stack_[i]);
      if (frame == frames_.end() || frame->second == kNoId) {
        ++report->bad_records;
        return;
      }
      stack_frames_.push_back(frame->second);
    }
    const uint32_t callsite = builder_.InternWhole(stack_frames_.span());
    if (callsite == kNoId || values_.size() != value_types_.size()) {
      ++report->bad_records;
      return;
    }
    AddFigures(callsite);
  }

  int64_t ValueAt(size_t figure) const {
    constexpr int64_t kMax = int64_t{1} << 62;
    return figure == kNoFigure ? 0 : std::clamp(values_[figure], -kMax, kMax);
  }

  // What was allocated, and what of it was freed. Without the former the live figures are
  // all there is.
  void AddFigures(uint32_t callsite) {
    const bool has_total =
        figures_.alloc_size != kNoFigure || figures_.alloc_count != kNoFigure;
    const bool has_live =
        figures_.live_size != kNoFigure || figures_.live_count != kNoFigure;
    const int64_t live_count = ValueAt(figures_.live_count);
    const int64_t live_size = ValueAt(figures_.live_size);
    if (!has_total) {
      builder_.dumps().AddAllocation(callsite, live_count, live_size);
      return;
    }
    const int64_t count = ValueAt(figures_.alloc_count);
    const int64_t size = ValueAt(figures_.alloc_size);
    builder_.dumps().AddAllocation(callsite, count, size);
    if (has_live)
      builder_.dumps().AddAllocation(callsite, std::min<int64_t>(live_count - count, 0),
                                     std::min<int64_t>(live_size - size, 0));
  }

  static constexpr uint64_t kFirstMadeUpPc = uint64_t{1} << 63;

  const std::string& name_;
  TraceBuilder& builder_;
  std::vector<std::string_view> strings_;
  std::vector<ValueType> value_types_;
  std::vector<std::string_view> samples_;
  std::vector<PprofLocation> locations_;
  std::unordered_map<uint64_t, PprofMapping> mappings_;
  std::unordered_map<uint64_t, PprofFunction> functions_;
  std::unordered_map<uint64_t, uint32_t> frames_;  // location -> frame
  std::vector<uint64_t> stack_;
  Column<uint32_t> stack_frames_;  // of stack_, the outermost first
  std::vector<int64_t> values_;
  Figures figures_;
  int64_t time_ns_ = 0;
  int64_t duration_ns_ = 0;
  uint64_t period_ = 0;
};

// All bytes of the source; a damaged one gives those before the damage.
Result<std::string> ReadAll(ByteSource& source,
                            const std::string& name,
                            ImportReport* report) {
  std::string bytes;
  std::vector<char> block(size_t{1} << 20);
  while (true) {
    Result<size_t> count = source.Read(block);
    if (!count.ok() && count.status().code() != StatusCode::kCorrupt)
      return std::move(count).status();
    if (!count.ok())
      report->damage = count.status().message();
    if (!count.ok() || count.value() == 0)
      return bytes;
    bytes.append(block.data(), count.value());
    if (bytes.size() > kMaxProfileBytes)
      return Status(StatusCode::kInvalidArgument,
                    "cannot read " + name + ": a profile of more than 4 GiB");
  }
}

}  // namespace

Result<ImportReport> ImportPprof(ByteSource& source,
                                 const std::string& name,
                                 TraceBuilder& builder) {
  ImportReport report;
  HPD_TRY_ASSIGN(const std::string bytes, ReadAll(source, name, &report));
  report.bytes = bytes.size();
  PprofImporter importer(name, builder);
  try {
    importer.ReadProfile(bytes);
  } catch (const protozero::exception&) {
    report.damage = "what follows is no field of a profile";
  }
  HPD_TRY(importer.Finish(&report));
  return report;
}

}  // namespace heapprofd
