#include "import/pprof_values.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace heapprofd {
namespace {

using enum PprofFigure;

enum class InOne : uint8_t {
  kAlternative,  // of several in a profile one is taken
  kPart,         // several add up
};

struct KnownValue {
  std::string_view type;  // lower case, with _ between words
  PprofFigure figure;
  InOne in_one = InOne::kAlternative;
  std::string_view default_type = {};  // the row is for profiles with this one only
};

// The names of the writers that are known, with who writes them. Of several alternatives
// in one profile the default type is taken, else the first one here.
// docs/traceconv.md has this table for users.
constexpr KnownValue kKnownValues[] = {
    // google/tcmalloc, profiles of allocations: told from those of live memory, which have
    // the same names, by their default type.
    {"space", kAllocSize, InOne::kAlternative, "objects"},
    {"objects", kAllocCount, InOne::kAlternative, "objects"},
    // Ours, and Android's; google/tcmalloc internal/profile_builder.cc; pprof's reader of
    // gperftools' heap profiles (profile/legacy_profile.go); Node.js (pprof-nodejs).
    {"space", kLiveSize},
    {"objects", kLiveCount},
    // Go (runtime/pprof/protomem.go), Node.js, jemalloc_pprof of Rust, ddprof.
    {"inuse_space", kLiveSize},
    {"inuse_objects", kLiveCount},
    {"alloc_space", kAllocSize},
    {"alloc_objects", kAllocCount},
    // Datadog: libdd-profiling's sample types (Python, Ruby, .NET, PHP, Java).
    {"heap_space", kLiveSize},
    {"heap_live_size", kLiveSize},
    {"heap_live_samples", kLiveCount},
    {"inuse_size", kLiveSize},
    {"alloc_size", kAllocSize},
    {"alloc_samples", kAllocCount},
    // Pyroscope's converter of Java's recordings (og/convert/jfr): a thread's own buffer
    // and what did not fit into it.
    {"alloc_in_new_tlab_bytes", kAllocSize, InOne::kPart},
    {"alloc_outside_tlab_bytes", kAllocSize, InOne::kPart},
    {"alloc_in_new_tlab_objects", kAllocCount, InOne::kPart},
    {"alloc_outside_tlab_objects", kAllocCount, InOne::kPart},
    {"live", kLiveCount},
    // async-profiler's jfrconv (JfrConverter.getValueType): bytes with --total. With
    // --live it writes "allocations", too.
    {"allocations", kAllocSize},
    {"allocations", kAllocCount},
    {"malloc", kAllocSize},
    {"malloc", kAllocCount},
    // google/tcmalloc, profiles of lifetimes: all that began within the profile.
    {"allocated_space", kAllocSize, InOne::kPart},
    {"censored_allocated_space", kAllocSize, InOne::kPart},
    {"allocated_objects", kAllocCount, InOne::kPart},
    {"censored_allocated_objects", kAllocCount, InOne::kPart},
    // Perfetto's traceconv, by its versions (traceconv/pprof_builder.cc).
    {"unreleased_malloc_size", kLiveSize},
    {"unreleased_malloc_count", kLiveCount},
    {"unreleased_size", kLiveSize},
    {"unreleased_count", kLiveCount},
    {"total_malloc_size", kAllocSize},
    {"total_malloc_count", kAllocCount},
    {"total_size", kAllocSize},
    {"total_count", kAllocCount},
    {"total_allocation_size", kAllocSize},
    {"total_allocation_count", kAllocCount},
    // Ours, of --dump-at-max.
    {"max_space", kPeakSize},
    {"max_objects", kPeakCount},
};

bool IsSize(PprofFigure figure) {
  return figure == kLiveSize || figure == kAllocSize || figure == kPeakSize;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Writers differ in what they put between words.
std::string Spelled(std::string_view type) {
  std::string spelled = Lower(type);
  std::replace_if(
      spelled.begin(), spelled.end(), [](char c) { return c == '-' || c == ' '; }, '_');
  return spelled;
}

bool IsCountUnit(std::string_view unit) {
  const std::string name = Lower(unit);
  return name == "count" || name == "objects";
}

// The factor of a value that is this figure; 0: its unit is another.
int64_t FactorOf(PprofFigure figure, std::string_view unit) {
  return IsSize(figure) ? BytesOfUnit(unit) : int64_t{IsCountUnit(unit)};
}

// Returns the row of kKnownValues for a value; nullptr: it is no figure of a heap.
const KnownValue* RowOf(const NamedPprofValue& value, std::string_view default_type) {
  const std::string type = Spelled(value.type);
  for (const KnownValue& known : kKnownValues) {
    if (known.type == type && FactorOf(known.figure, value.unit) != 0 &&
        (known.default_type.empty() || known.default_type == default_type))
      return &known;
  }
  return nullptr;
}

// A value that a figure may be taken from; of several the smallest rank is the best.
struct Candidate {
  size_t value = 0;
  const KnownValue* known = nullptr;
  bool is_default = false;

  auto rank() const { return std::pair(!is_default, known); }
};

std::vector<Candidate> CandidatesFor(PprofFigure figure,
                                     const std::vector<NamedPprofValue>& values,
                                     std::string_view default_type) {
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < values.size(); ++i) {
    const KnownValue* const known = RowOf(values[i], default_type);
    if (known != nullptr && known->figure == figure)
      candidates.push_back(
          {i, known, !default_type.empty() && values[i].type == default_type});
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::rank);
  return candidates;
}

}  // namespace

bool PprofFigures::HasAny() const {
  return std::ranges::any_of(sums,
                             [](const PprofSum& sum) { return !sum.parts.empty(); });
}

PprofFigures ChoosePprofFigures(const std::vector<NamedPprofValue>& values,
                                std::string_view default_type) {
  PprofFigures chosen;
  std::vector<bool> is_used(values.size());
  for (size_t figure = 0; figure < kPprofFigures; ++figure) {
    const auto wanted = static_cast<PprofFigure>(figure);
    const std::vector<Candidate> found = CandidatesFor(wanted, values, default_type);
    for (const Candidate& one : found) {
      if (&one != &found[0] &&
          (found[0].known->in_one != InOne::kPart || one.known->in_one != InOne::kPart))
        continue;
      chosen.sums[figure].parts.push_back(
          {one.value, FactorOf(wanted, values[one.value].unit)});
      is_used[one.value] = true;
    }
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (!is_used[i])
      chosen.unused.emplace_back(values[i].type);
  }
  return chosen;
}

int64_t BytesOfUnit(std::string_view unit) {
  struct Unit {
    std::string_view name;
    int shift;
  };

  // pprof's internal/measurement.
  constexpr Unit kUnits[] = {
      {"b", 0},    {"byte", 0},      {"kb", 10},  {"kbyte", 10},    {"kilobyte", 10},
      {"mb", 20},  {"mbyte", 20},    {"gb", 30},  {"megabyte", 20}, {"gbyte", 30},
      {"tb", 40},  {"gigabyte", 30}, {"pb", 50},  {"tbyte", 40},    {"terabyte", 40},
      {"kib", 10}, {"mib", 20},      {"gib", 30}, {"pbyte", 50},    {"petabyte", 50},
  };
  std::string name = Lower(unit);
  if (name.size() > 2 && name.ends_with('s'))
    name.pop_back();
  for (const Unit& known : kUnits) {
    if (known.name == name)
      return int64_t{1} << known.shift;
  }
  return 0;
}

std::string DescribePprofValues(const std::vector<NamedPprofValue>& values) {
  constexpr size_t kMostNamed = 8;
  std::string text;
  for (size_t i = 0; i < values.size() && i < kMostNamed; ++i)
    text += (text.empty() ? "" : ", ") + Printable(values[i].type) + " in " +
            Printable(values[i].unit);
  return text + (values.size() > kMostNamed ? ", ..." : "");
}

}  // namespace heapprofd
