// What may be leaks, with the report's meanings (src/report/page/leaks.js): stacks whose
// memory grows from dump to dump, or is never freed; and of other stacks, which the report
// does not tell, call sites of which nothing is freed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/inspect/comparison.h"
#include "cli/inspect/opened_file.h"
#include "cli/inspect/suppressions.h"
#include "cli/results/top_list.h"

namespace heapprofd {

// The strongest first.
enum class Evidence : uint8_t {
  kGrowsNothingFreed,
  kGrows,
  kNothingFreed,
  kNone,
};

const char* EvidenceName(Evidence evidence);

// Of live bytes by dump, and what was allocated up to the last one. `tells_frees`: the
// heap has freed something.
Evidence EvidenceOf(const std::vector<double>& series,
                    double allocated,
                    bool tells_frees);

inline constexpr size_t kLeastDumps = 3;  // that growth can be seen in

// Live bytes of a stack by their age: [i]: at least 2^i ns and less than twice that.
using BytesByAge = std::array<double, 64>;

// Of blocks that are younger than `ns`; those of an age are taken to have come evenly.
double YoungerBytes(const BytesByAge& ages, double ns);

// ns; half of the bytes are older. nullopt: there are none.
std::optional<double> MedianAge(const BytesByAge& ages);

// What is not to be shown.
struct LeakFilter {
  uint32_t newest_percent = 0;  // allocated in the last part of the recording's time
  std::vector<Suppression> suppressions = {};
};

struct SuspectStack {
  Evidence evidence = Evidence::kNone;
  std::vector<uint32_t> stack;  // rows of Leaks::functions, the holder first
  std::string
      place;  // of the holder's call, where others of these functions free; else ""
  std::vector<double> series;  // live bytes by dump
  double live = 0;             // at the last one
  double error = 0;            // half of its 95 % interval
  double allocated = 0;
  double too_new = 0;                   // of the live bytes, by LeakFilter
  std::optional<double> median_age_ns;  // of what is live

  double growth() const { return live - series.front(); }

  // Live bytes that are told.
  double settled() const { return live - too_new; }
};

struct Leaks {
  std::vector<SuspectStack> stacks;  // those with the strongest evidence first
  std::vector<StackFunction> functions;
  size_t dumps = 0;  // looked at
  double live = 0;   // of the whole heap
  bool tells_frees = false;
  bool tells_ages = false;
  double left_out = 0;  // live bytes of stacks, too new to be told

  // Of the stacks.
  double held() const;
};

// `filter` counts what it suppresses.
Leaks FindLeaks(OpenedFile& file, const ChosenHeap& heap, LeakFilter* filter);

}  // namespace heapprofd
