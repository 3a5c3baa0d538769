// The whole profile is read first (import/pprof_profile.h): its strings may come last.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "import/formats.h"
#include "import/pprof_profile.h"
#include "symbolize/demangle.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxProfileBytes = size_t{4} << 30;
constexpr size_t kMaxStack = size_t{1} << 16;  // locations of a sample
constexpr size_t kNoFigure = SIZE_MAX;

// Which value of a sample is which figure of ours.
struct Figures {
  size_t alloc_count = kNoFigure;
  size_t alloc_size = kNoFigure;
  size_t live_count = kNoFigure;
  size_t live_size = kNoFigure;
};

class PprofImporter {
 public:
  // All outlive it.
  PprofImporter(const std::string& name,
                const PprofProfile& profile,
                TraceBuilder& builder)
      : name_(name), profile_(profile), builder_(builder) {}

  // kCorrupt when it is no profile.
  Status Import(ImportReport* report) {
    if (profile_.value_types().empty() || !profile_.has_strings())
      return Status(StatusCode::kCorrupt, "cannot read " + name_ +
                                              ": its format is not known; it looks like "
                                              "a pprof profile, but names no kind of "
                                              "value");
    ChooseFigures();
    for (const PprofLocation& location : profile_.locations())
      AddLocation(location);
    BeginDump();
    for (const std::string_view sample : profile_.samples()) {
      if (!AddSample(sample))
        ++report->bad_records;
    }
    return {};
  }

 private:
  StringId Intern(uint64_t index) { return builder_.Intern(profile_.StringAt(index)); }

  StringId InternOrNull(uint64_t index) {
    return profile_.StringAt(index).empty() ? kNoId : Intern(index);
  }

  // "alloc_space" and "Total malloc size" say what was ever allocated, "space",
  // "inuse_space" and "Unreleased malloc size" what is live. A profile of something else
  // has its last value, which pprof shows by default, as its live size.
  void ChooseFigures() {
    const std::vector<PprofValueType>& types = profile_.value_types();
    for (size_t i = 0; i < types.size(); ++i) {
      const std::string_view type = profile_.StringAt(types[i].type);
      const bool is_bytes = profile_.StringAt(types[i].unit) == "bytes";
      const bool is_count = profile_.StringAt(types[i].unit) == "count";
      const bool is_total = type.starts_with("alloc_") || type.starts_with("Total ");
      if (is_bytes)
        (is_total ? figures_.alloc_size : figures_.live_size) = i;
      else if (is_count)
        (is_total ? figures_.alloc_count : figures_.live_count) = i;
    }
    if (figures_.alloc_size == kNoFigure && figures_.live_size == kNoFigure &&
        figures_.alloc_count == kNoFigure)
      figures_.live_size = types.size() - 1;
  }

  void BeginDump() {
    ImportedDump dump;
    dump.upid = AddNamedProcess(FileName(name_), builder_);
    dump.heap_name = builder_.Intern("pprof");
    dump.ts = profile_.time_ns();
    if (profile_.duration_ns() > 0 && profile_.duration_ns() <= profile_.time_ns())
      dump.start_ts = profile_.time_ns() - profile_.duration_ns();
    dump.sampling_interval = SamplingInterval();
    dump.original_sampling_interval = dump.sampling_interval;
    dump.tells_allocated = HasTotal();
    builder_.dumps().Begin(dump);
  }

  // That of a profile of something else may be nanoseconds.
  uint64_t SamplingInterval() const {
    const std::string_view unit = profile_.StringAt(profile_.period_type().unit);
    return unit.empty() || unit == "bytes" ? profile_.period() : 0;
  }

  uint32_t MappingOf(const PprofLocation& location, uint64_t* rel_pc) {
    *rel_pc = location.address;
    const PprofMapping* found = profile_.FindMapping(location.mapping);
    if (found == nullptr)
      return kNoId;
    const PprofMapping& mapping = *found;
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

  // A function's name for linkers when the profile has it.
  StringId NameOf(const PprofLine& line) {
    const PprofFunction* function = profile_.FindFunction(line.function);
    if (function == nullptr)
      return kEmptyString;
    const std::string_view system_name = profile_.StringAt(function->system_name);
    return system_name.starts_with("_") ? builder_.Intern(system_name)
                                        : Intern(function->name);
  }

  // That name for people, with its parameters, as symbols of traces are; `name` of the
  // profile may be without.
  StringId SymbolNameOf(const PprofLine& line) {
    const StringId name = NameOf(line);
    const auto [entry, is_new] = symbol_names_.try_emplace(name, name);
    if (is_new)
      entry->second = builder_.Intern(Demangle(builder_.trace().Text(name)));
    return entry->second;
  }

  StringId FileOf(const PprofLine& line) {
    const PprofFunction* function = profile_.FindFunction(line.function);
    return function == nullptr ? kNoId : InternOrNull(function->file);
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
          set, SymbolNameOf(line), FileOf(line),
          static_cast<uint32_t>(std::min<uint64_t>(line.line, UINT32_MAX)));
    builder_.trace().frames.symbol_set[frame] = set;
  }

  bool HasLines(uint32_t frame, const PprofLocation& location) {
    const SymbolTable& symbols = builder_.trace().symbols;
    const uint32_t set = builder_.trace().frames.symbol_set[frame];
    if (symbols.EndOf(set) - set != location.lines.size())
      return false;
    for (size_t i = 0; i < location.lines.size(); ++i) {
      if (symbols.name[set + i] != SymbolNameOf(location.lines[i]) ||
          symbols.source_file[set + i] != FileOf(location.lines[i]) ||
          symbols.line[set + i] != location.lines[i].line)
        return false;
    }
    return true;
  }

  // False: it is damaged, or refers to what is not there.
  bool AddSample(std::string_view bytes) {
    if (!PprofProfile::ReadSample(bytes, &sample_) ||
        sample_.locations.size() > kMaxStack)
      return false;
    stack_frames_.clear();
    for (size_t i = sample_.locations.size(); i-- > 0;) {
      const auto frame = frames_.find(sample_.locations[i]);
      if (frame == frames_.end() || frame->second == kNoId)
        return false;
      stack_frames_.push_back(frame->second);
    }
    const uint32_t callsite = builder_.InternWhole(stack_frames_.span());
    if (callsite == kNoId || sample_.values.size() != profile_.value_types().size())
      return false;
    AddFigures(callsite);
    return true;
  }

  bool HasTotal() const {
    return figures_.alloc_size != kNoFigure || figures_.alloc_count != kNoFigure;
  }

  int64_t ValueAt(size_t figure) const {
    constexpr int64_t kMax = int64_t{1} << 62;
    return figure == kNoFigure ? 0 : std::clamp(sample_.values[figure], -kMax, kMax);
  }

  // What was allocated, and what of it was freed. Without the former the live figures are
  // all there is.
  void AddFigures(uint32_t callsite) {
    const bool has_live =
        figures_.live_size != kNoFigure || figures_.live_count != kNoFigure;
    const int64_t live_count = ValueAt(figures_.live_count);
    const int64_t live_size = ValueAt(figures_.live_size);
    if (!HasTotal()) {
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
  const PprofProfile& profile_;
  TraceBuilder& builder_;
  std::unordered_map<uint64_t, uint32_t> frames_;  // location -> frame
  std::unordered_map<StringId, StringId>
      symbol_names_;  // name of a function -> for people
  PprofSample sample_;
  Column<uint32_t> stack_frames_;  // of sample_, the outermost first
  Figures figures_;
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
  PprofProfile profile;
  if (!profile.Read(bytes))
    report.damage = "what follows is no field of a profile";
  HPD_TRY(PprofImporter(name, profile, builder).Import(&report));
  return report;
}

}  // namespace heapprofd
