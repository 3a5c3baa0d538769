// The format is text; each line begins with a letter, numbers are hexadecimal:
//   v VERSION FORMAT          s [LENGTH] TEXT           (string 1, 2, ...)
//   X COMMAND LINE            i IP MODULE [FUNCTION FILE LINE]...   (address 1, 2, ...)
//   I PAGE_SIZE PAGES         t IP PARENT               (stack 1, 2, ...; parent 0: none)
//   c MILLISECONDS            a SIZE STACK              (allocation 0, 1, ...)
//   R RESIDENT_PAGES          + ALLOCATION    - ALLOCATION
// Functions of an address: the innermost inlined one first. LENGTH is there from format 3
// on. Facts: recordings of heaptrack 1.4.
#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.h"
#include "import/formats.h"
#include "import/heaptrack_strings.h"
#include "import/line_reader.h"
#include "import/number_reader.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxRows = size_t{1} << 28;  // of one kind, against hostile files
constexpr uint64_t kSizedStrings = 3;         // file format
constexpr uint64_t kNewestFormat = 3;         // of files whose meaning is known

// What was allocated at one stack, and what of it was live at the peak numbered `peak`.
struct StackTotals {
  int64_t alloc_count = 0;
  int64_t alloc_size = 0;
  int64_t free_count = 0;
  int64_t free_size = 0;
  uint64_t peak = 0;
  int64_t peak_count = 0;
  int64_t peak_size = 0;

  // What is live here has not changed since the latest peak: it is what was live then.
  void KeepPeak(uint64_t latest) {
    if (peak == latest)
      return;
    peak = latest;
    peak_count = alloc_count - free_count;
    peak_size = alloc_size - free_size;
  }
};

struct AllocationKind {
  int64_t size = 0;
  uint32_t stack = 0;
};

class HeaptrackImporter {
 public:
  HeaptrackImporter(const std::string& name, TraceBuilder& builder)
      : builder_(builder),
        upid_(AddNamedProcess(FileName(name), builder)),
        strings_(&builder) {
    frames_.push_back(kNoId);
    callsites_.push_back(kNoId);
    totals_.emplace_back();
  }

  // kCorrupt for a recording that has not been interpreted.
  Status AddLine(std::string_view line, bool* is_bad) {
    *is_bad = false;
    if (strings_.is_open()) {
      strings_.Continue(line);
      return {};
    }
    if (line.size() < 2 || line[1] != ' ')
      return {};
    NumberReader numbers(line.substr(2));
    switch (line[0]) {
      case 'v':
        return SetVersion(numbers, is_bad);
      case 'X':
        SetCommand(line.substr(2));
        break;
      case 'I':
        page_size_ = numbers.Next().value_or(page_size_);
        break;
      case 's':
        *is_bad = !strings_.Add(line.substr(2));
        break;
      case 'i':
        *is_bad = !AddAddress(numbers);
        break;
      case 't':
        *is_bad = !AddStack(numbers);
        break;
      case 'a':
        *is_bad = !AddKind(numbers);
        break;
      case '+':
        return Count(numbers, +1, is_bad);
      case '-':
        return Count(numbers, -1, is_bad);
      case 'c':
        now_ms_ = std::min<uint64_t>(numbers.Next().value_or(now_ms_), kMaxMs);
        break;
      case 'R':
        AddResident(numbers);
        break;
      default:
        break;
    }
    return {};
  }

  void Finish() {
    ImportedDump dump;
    dump.upid = upid_;
    dump.heap_name = builder_.Intern("libc.malloc");
    dump.ts = Now();
    dump.start_ts = 0;
    dump.from_startup = true;
    dump.sampling_interval = 1;
    dump.original_sampling_interval = 1;
    dump.peak_bytes = static_cast<uint64_t>(peak_);
    if (peak_ > 0)
      dump.peak_ts = peak_ts_;
    for (const StackTotals& totals : totals_) {
      dump.exact_alloc_calls += static_cast<uint64_t>(totals.alloc_count);
      dump.exact_alloc_bytes += static_cast<uint64_t>(totals.alloc_size);
    }
    builder_.dumps().Begin(dump);
    for (size_t stack = 1; stack < totals_.size(); ++stack) {
      if (callsites_[stack] == kNoId)
        continue;
      StackTotals& totals = totals_[stack];
      totals.KeepPeak(peaks_);
      if (totals.alloc_count > 0)
        builder_.dumps().AddEstimate(
            callsites_[stack],
            {.peak_bytes = totals.peak_size, .peak_count = totals.peak_count});
      builder_.dumps().AddAllocation(callsites_[stack], totals.alloc_count,
                                     totals.alloc_size);
      builder_.dumps().AddAllocation(callsites_[stack], -totals.free_count,
                                     -totals.free_size);
    }
  }

 private:
  static constexpr uint64_t kMaxMs = uint64_t{1} << 40;
  static constexpr int64_t kMaxTotal = int64_t{1} << 60;

  int64_t Now() const { return static_cast<int64_t>(now_ms_) * 1'000'000; }

  Status SetVersion(NumberReader& numbers, bool* is_bad) {
    *is_bad = !numbers.Next();
    const uint64_t format = numbers.Next().value_or(0);
    strings_.set_have_lengths(format >= kSizedStrings);
    if (format <= kNewestFormat)
      return {};
    return Status(StatusCode::kCorrupt,
                  "it is a recording of a newer heaptrack (file format " +
                      std::to_string(format) + "); its heaptrack_print shows it");
  }

  void SetCommand(std::string_view command) {
    ImportedProcess& process = builder_.trace().processes[upid_];
    process.cmdline = builder_.Intern(command);
    process.name = builder_.Intern(command.substr(0, command.find(' ')));
  }

  bool AddAddress(NumberReader& numbers) {
    if (frames_.size() >= kMaxRows)
      return false;
    const std::optional<uint64_t> address = numbers.Next();
    const std::optional<uint64_t> module = numbers.Next();
    ImportedMapping mapping;
    mapping.name = strings_.At(module);
    const std::optional<uint64_t> function = numbers.Next();
    const uint32_t frame = builder_.InternFrame(
        strings_.At(function), builder_.InternMapping(mapping), address.value_or(0));
    frames_.push_back(frame);
    if (function && frame != kNoId && builder_.trace().frames.symbol_set[frame] == kNoId)
      AddFunctions(frame, *function, numbers);
    return address && module;
  }

  void AddFunctions(uint32_t frame, uint64_t first_function, NumberReader& numbers) {
    std::optional<uint64_t> function = first_function;
    uint32_t set = kNoId;
    while (function) {
      const StringId file = strings_.At(numbers.Next());
      const uint64_t line = numbers.Next().value_or(0);
      set = builder_.AddSymbol(
          set, strings_.At(function), file == kEmptyString ? kNoId : file,
          static_cast<uint32_t>(std::min<uint64_t>(line, UINT32_MAX)));
      function = numbers.Next();
    }
    builder_.trace().frames.symbol_set[frame] = set;
  }

  bool AddStack(NumberReader& numbers) {
    if (callsites_.size() >= kMaxRows)
      return false;
    const std::optional<uint64_t> address = numbers.Next();
    const std::optional<uint64_t> parent = numbers.Next();
    const bool is_good = address && parent && *address < frames_.size() &&
                         frames_[*address] != kNoId && *parent < callsites_.size();
    callsites_.push_back(
        is_good ? builder_.InternCallsite(callsites_[*parent], frames_[*address])
                : kNoId);
    totals_.emplace_back();
    return is_good;
  }

  bool AddKind(NumberReader& numbers) {
    if (kinds_.size() >= kMaxRows)
      return false;
    const std::optional<uint64_t> size = numbers.Next();
    const std::optional<uint64_t> stack = numbers.Next();
    const bool is_good = size && stack && *stack < totals_.size();
    kinds_.push_back(is_good ? AllocationKind{static_cast<int64_t>(
                                                  std::min<uint64_t>(*size, kMaxTotal)),
                                              static_cast<uint32_t>(*stack)}
                             : AllocationKind{});
    return is_good;
  }

  Status Count(NumberReader& numbers, int sign, bool* is_bad) {
    const std::optional<uint64_t> index = numbers.Next();
    if (sign > 0 && numbers.Next())
      return Status(StatusCode::kCorrupt,
                    frames_.size() > 1
                        ? "it is a recording of the first heaptrack (file format 0); "
                          "heaptrack_print "
                          "shows it"
                        : "it is a raw recording; run heaptrack --interpret on it first");
    *is_bad = !index || *index >= kinds_.size();
    if (*is_bad)
      return {};
    const AllocationKind& kind = kinds_[*index];
    StackTotals& totals = totals_[kind.stack];
    int64_t& size = sign > 0 ? totals.alloc_size : totals.free_size;
    if (size > kMaxTotal)
      return {};
    totals.KeepPeak(peaks_);
    size += kind.size;
    ++(sign > 0 ? totals.alloc_count : totals.free_count);
    UpdatePeak(sign > 0 ? kind.size : -kind.size);
    return {};
  }

  void UpdatePeak(int64_t change) {
    if (std::abs(live_) > kMaxTotal)
      return;
    live_ += change;
    if (live_ > peak_) {
      peak_ = live_;
      peak_ts_ = Now();
      ++peaks_;
    }
  }

  void AddResident(NumberReader& numbers) {
    const std::optional<uint64_t> pages = numbers.Next();
    if (!pages || *pages > kMaxMs || page_size_ > kMaxPageSize)
      return;
    builder_.trace().counters.push_back({Now(), upid_, builder_.Intern("mem.rss"),
                                         static_cast<int64_t>(*pages * page_size_)});
  }

  static constexpr uint64_t kMaxPageSize = 1 << 22;

  TraceBuilder& builder_;
  uint32_t upid_;
  uint64_t page_size_ = 4096;
  uint64_t now_ms_ = 0;
  int64_t live_ = 0;  // bytes, now
  int64_t peak_ = 0;
  int64_t peak_ts_ = 0;
  uint64_t peaks_ = 0;  // how often there was a new one
  HeaptrackStrings strings_;
  std::vector<uint32_t> frames_;     // address -> frame
  std::vector<uint32_t> callsites_;  // stack -> callsite
  std::vector<StackTotals> totals_;  // by stack
  std::vector<AllocationKind> kinds_;
};

}  // namespace

Result<ImportReport> ImportHeaptrack(ByteSource& source,
                                     const std::string& name,
                                     TraceBuilder& builder) {
  // Its stacks are a tree; whole ones could need any multiple of the file's size.
  builder.UseCallsites();
  ImportReport report;
  LineReader lines(&source);
  HeaptrackImporter importer(name, builder);
  std::string_view line;
  while (true) {
    Result<bool> is_line = lines.Next(&line);
    if (!is_line.ok())
      report.damage = is_line.status().message();
    if (!is_line.ok() || !is_line.value())
      break;
    bool is_bad = false;
    Status status = importer.AddLine(line, &is_bad);
    if (!status.ok())
      return std::move(status).WithContext("cannot read " + name);
    report.bad_records += is_bad ? 1 : 0;
  }
  importer.Finish();
  report.bytes = lines.bytes();
  return report;
}

}  // namespace heapprofd
