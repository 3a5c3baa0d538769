// What may be leaks, with the report's meanings (src/report/page/leaks.js): stacks whose
// memory grows from dump to dump, or is never freed.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/inspect/comparison.h"
#include "cli/inspect/opened_file.h"
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

struct SuspectStack {
  Evidence evidence = Evidence::kNone;
  std::vector<StackFunction> stack;  // the holder first
  std::vector<double> series;        // live bytes by dump
  double live = 0;                   // at the last one
  double error = 0;                  // half of its 95 % interval
  double allocated = 0;

  double growth() const { return live - series.front(); }
};

struct Leaks {
  std::vector<SuspectStack> stacks;  // those with the strongest evidence first
  size_t dumps = 0;                  // looked at
  double live = 0;                   // of the whole heap
  bool tells_frees = false;

  // Of the stacks.
  double held() const;
};

Leaks FindLeaks(OpenedFile& file, const ChosenHeap& heap);

}  // namespace heapprofd
