// The whole profile is read first (import/pprof_profile.h): its strings may come last.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "import/formats.h"
#include "import/pprof_profile.h"
#include "import/pprof_values.h"
#include "profile/estimate.h"
#include "symbolize/demangle.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxProfileBytes = size_t{4} << 30;
constexpr size_t kMaxStack = size_t{1} << 16;  // locations of a sample

// A count and a size of a sample, of one kind.
struct Amount {
  int64_t count = 0;
  int64_t size = 0;
};

class PprofImporter {
 public:
  // All outlive it.
  PprofImporter(const std::string& name,
                const PprofProfile& profile,
                TraceBuilder& builder)
      : name_(name), profile_(profile), builder_(builder) {}

  // kCorrupt when it is no profile, kInvalidArgument when it is one of something else than
  // memory.
  Status Import(ImportReport* report) {
    if (profile_.value_types().empty() || !profile_.has_strings())
      return Status(StatusCode::kCorrupt, "cannot read " + name_ +
                                              ": its format is not known; it looks like "
                                              "a pprof profile, but names no kind of "
                                              "value");
    const std::vector<NamedPprofValue> values = NamedValues();
    figures_ = ChoosePprofFigures(values, profile_.default_type());
    if (!figures_.HasAny())
      return Invalid("cannot read " + name_ + ": it is no profile of memory, but of " +
                     DescribePprofValues(values) + "; go tool pprof shows it");
    for (const PprofLocation& location : profile_.locations())
      AddLocation(location);
    BeginDump();
    for (const std::string_view sample : profile_.samples()) {
      if (!AddSample(sample))
        ++report->bad_records;
    }
    FinishDump(*report);
    AddNotes(report);
    return {};
  }

 private:
  StringId Intern(uint64_t index) { return builder_.Intern(profile_.StringAt(index)); }

  StringId InternOrNull(uint64_t index) {
    return profile_.StringAt(index).empty() ? kNoId : Intern(index);
  }

  std::vector<NamedPprofValue> NamedValues() const {
    std::vector<NamedPprofValue> values;
    for (const PprofValueType& type : profile_.value_types())
      values.push_back({profile_.StringAt(type.type), profile_.StringAt(type.unit)});
    return values;
  }

  bool HasPeak() const {
    return figures_.Has(PprofFigure::kPeakSize) || figures_.Has(PprofFigure::kPeakCount);
  }

  void BeginDump() {
    ImportedDump dump;
    dump.upid = AddNamedProcess(FileName(name_), builder_);
    dump.heap_name = builder_.Intern("pprof");
    dump.ts = profile_.time_ns();
    if (profile_.duration_ns() > 0 && profile_.duration_ns() < profile_.time_ns())
      dump.start_ts = profile_.time_ns() - profile_.duration_ns();
    dump.sampling_interval = SamplingInterval();
    dump.original_sampling_interval = dump.sampling_interval;
    dump.is_peak = HasPeak();
    dump.told = {.live_size = figures_.Has(PprofFigure::kLiveSize),
                 .live_count = figures_.Has(PprofFigure::kLiveCount),
                 .alloc_size = figures_.Has(PprofFigure::kAllocSize),
                 .alloc_count = figures_.Has(PprofFigure::kAllocCount)};
    told_ = dump.told;
    interval_ = dump.sampling_interval;
    dump_ = builder_.dumps().Begin(dump);
  }

  // What is known behind the last sample only.
  void FinishDump(const ImportReport& report) {
    ImportedDump& dump = builder_.trace().dumps[dump_];
    if (has_negative_allocations_)  // a difference: these are no sums
      dump.told.alloc_size = dump.told.alloc_count = false;
    if (HasPeak()) {
      dump.peak_bytes = static_cast<uint64_t>(std::max<int64_t>(peak_bytes_, 0));
      AddPeakLimits(&dump);
      return;
    }
    dump.first_live_row = dump.told.allocated() ? dump.allocation_count : 0;
    for (const auto& [callsite, more] : live_rows_)
      builder_.dumps().AddAllocation(callsite, more.count, more.size);
    if (dump.allocation_count == 0 && report.damage.empty())
      dump.reason = builder_.Intern(
          report.bad_records == 0
              ? "all values of its samples are 0"
              : "none of its samples makes sense (a value for each of its " +
                    std::to_string(profile_.value_types().size()) +
                    " types, and a stack of locations that are there)");
  }

  // Of our own files, which say so in a comment (export/trace_pprof.cc).
  void AddPeakLimits(ImportedDump* dump) const {
    for (const uint64_t comment : profile_.comments()) {
      unsigned long long peak = 0;
      unsigned long long low = 0;
      unsigned long long high = 0;
      const std::string text(profile_.StringAt(comment));
      if (sscanf(text.c_str(), "peak: %llu bytes, 95 %% limits %llu and %llu", &peak,
                 &low, &high) != 3)
        continue;
      dump->peak_bytes = peak;
      dump->peak_low = low;
      dump->peak_high = high;
    }
  }

  void AddNotes(ImportReport* report) const {
    if (!figures_.unused.empty())
      report->notes.push_back("not shown, as no figure of a heap: " + UnusedNames());
    if (exceeding_samples_ > 0)
      report->notes.push_back("more is live than was allocated in " +
                              std::to_string(exceeding_samples_) +
                              " of its samples: each figure is shown as the file has it");
    if (negative_samples_ > 0)
      report->notes.push_back(std::to_string(negative_samples_) +
                              " of its samples are negative, as in a difference of two "
                              "profiles: sums may hide what grew");
  }

  std::string UnusedNames() const {
    constexpr size_t kMostNamed = 12;
    std::string text;
    for (size_t i = 0; i < figures_.unused.size() && i < kMostNamed; ++i)
      text += (text.empty() ? "" : ", ") + Printable(figures_.unused[i]);
    return text + (figures_.unused.size() > kMostNamed ? ", ..." : "");
  }

  // In bytes; that of a profile of something else may be nanoseconds.
  uint64_t SamplingInterval() const {
    const int64_t unit = BytesOfUnit(profile_.StringAt(profile_.period_type().unit));
    const uint64_t period = profile_.period();
    return period <= kMost ? period * static_cast<uint64_t>(unit) : 0;
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

  // A function's name for linkers where the profile has one that can be demangled, else
  // the name that it gives the function.
  StringId NameOf(const PprofLine& line) {
    const PprofFunction* function = profile_.FindFunction(line.function);
    if (function == nullptr)
      return kEmptyString;
    const StringId system_name = Intern(function->system_name);
    if (profile_.StringAt(function->name).empty() ||
        DemangledOf(system_name) != system_name)
      return system_name;
    return Intern(function->name);
  }

  // The name that the profile gives the function, for people.
  StringId SymbolNameOf(const PprofLine& line) {
    const PprofFunction* function = profile_.FindFunction(line.function);
    if (function == nullptr)
      return kEmptyString;
    return DemangledOf(profile_.StringAt(function->name).empty()
                           ? Intern(function->system_name)
                           : Intern(function->name));
  }

  StringId DemangledOf(StringId name) {
    const auto [entry, is_new] = demangled_.try_emplace(name, name);
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
    if (stack_frames_.empty())  // whose memory it is the profile does not say
      stack_frames_.push_back(builder_.InternFrame(kEmptyString, kNoId, 0));
    const uint32_t callsite = builder_.InternWhole(stack_frames_.span());
    if (callsite == kNoId || sample_.values.size() != profile_.value_types().size())
      return false;
    if (HasPeak())
      AddPeak(callsite);
    else
      AddFigures(callsite);
    return true;
  }

  int64_t ValueAt(PprofFigure figure) const {
    int64_t sum = 0;
    for (const PprofSum::Part& part : figures_.Of(figure).parts) {
      const int64_t most = kMost / part.factor;
      const int64_t value =
          std::clamp(sample_.values[part.value], -most, most) * part.factor;
      sum = std::clamp(sum + value, -kMost, kMost);
    }
    return sum;
  }

  Amount Live() const {
    return {ValueAt(PprofFigure::kLiveCount), ValueAt(PprofFigure::kLiveSize)};
  }

  Amount Allocated() const {
    return {ValueAt(PprofFigure::kAllocCount), ValueAt(PprofFigure::kAllocSize)};
  }

  // What was allocated, and what of it was freed. Where more is live than that, the rest
  // is live only.
  void AddFigures(uint32_t callsite) {
    const Amount live = Live();
    const Amount allocated = Allocated();
    CountOdd(live, allocated);
    builder_.dumps().AddAllocation(callsite, allocated.count, allocated.size);
    const Amount change = {told_.live_count ? live.count - allocated.count : 0,
                           told_.live_size ? live.size - allocated.size : 0};
    builder_.dumps().AddAllocation(callsite, std::min<int64_t>(change.count, 0),
                                   std::min<int64_t>(change.size, 0));
    if (change.count > 0 || change.size > 0)
      live_rows_.emplace_back(callsite, Amount{std::max<int64_t>(change.count, 0),
                                               std::max<int64_t>(change.size, 0)});
  }

  void CountOdd(const Amount& live, const Amount& allocated) {
    const bool exceeds =
        (told_.live_count && told_.alloc_count && live.count > allocated.count) ||
        (told_.live_size && told_.alloc_size && live.size > allocated.size);
    const bool has_negative_allocation = allocated.count < 0 || allocated.size < 0;
    has_negative_allocations_ |= has_negative_allocation;
    if (has_negative_allocation || live.count < 0 || live.size < 0)
      ++negative_samples_;
    else if (exceeds)
      ++exceeding_samples_;
  }

  // Rows of the dump are of the peak; what stands beside them is of the end.
  void AddPeak(uint32_t callsite) {
    const int64_t peak_size = ValueAt(PprofFigure::kPeakSize);
    peak_bytes_ = std::min(peak_bytes_ + peak_size, kMost);
    builder_.dumps().AddAllocation(callsite, ValueAt(PprofFigure::kPeakCount), peak_size);
    if (!told_.live() && !told_.allocated())
      return;
    const Amount live = Live();
    const Amount allocated = told_.allocated() ? Allocated() : live;
    const auto errors = [this](const Amount& sum) {
      return EstimateOfSums(static_cast<double>(sum.size), static_cast<double>(sum.count),
                            interval_);
    };
    const Estimate of_live = errors(live);
    const Estimate of_allocated = errors(allocated);
    builder_.dumps().AddCumulative(
        callsite,
        {.alloc_size = allocated.size,
         .alloc_count = allocated.count,
         .free_size = allocated.size - live.size,
         .free_count = allocated.count - live.count},
        {.live_bytes_error = std::sqrt(of_live.bytes_variance),
         .live_count_error = std::sqrt(of_live.count_variance),
         .allocated_bytes_error = std::sqrt(of_allocated.bytes_variance),
         .alloc_count_error = std::sqrt(of_allocated.count_variance)});
  }

  static constexpr int64_t kMost = int64_t{1} << 61;  // sums of a sample
  static constexpr uint64_t kFirstMadeUpPc = uint64_t{1} << 63;

  const std::string& name_;
  const PprofProfile& profile_;
  TraceBuilder& builder_;
  std::unordered_map<uint64_t, uint32_t> frames_;  // location -> frame
  std::unordered_map<StringId, StringId> demangled_;
  PprofSample sample_;
  Column<uint32_t> stack_frames_;  // of sample_, the outermost first
  PprofFigures figures_;
  ToldFigures told_;
  uint64_t interval_ = 0;
  uint32_t dump_ = 0;
  std::vector<std::pair<uint32_t, Amount>>
      live_rows_;  // callsite, beyond its allocations
  int64_t peak_bytes_ = 0;
  size_t exceeding_samples_ = 0;
  size_t negative_samples_ = 0;
  bool has_negative_allocations_ = false;
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
