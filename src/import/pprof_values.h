// Decides which value of a pprof profile is which figure of a heap: by the name that its
// writer gives it, its unit and the profile's default type, never by its position.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heapprofd {

enum class PprofFigure : uint8_t {
  kLiveSize,
  kLiveCount,
  kAllocSize,
  kAllocCount,
  kPeakSize,  // live at the moment when most was
  kPeakCount,
};

inline constexpr size_t kPprofFigures = 6;

struct NamedPprofValue {
  std::string_view type;  // "inuse_space"
  std::string_view unit;  // "bytes"
};

// A sum of values of each sample, in bytes or objects.
struct PprofSum {
  struct Part {
    size_t value = 0;    // index in a sample
    int64_t factor = 1;  // to bytes
  };

  std::vector<Part> parts;  // empty: the profile does not give the figure
};

struct PprofFigures {
  std::array<PprofSum, kPprofFigures> sums;
  std::vector<std::string> unused;  // names of values that are no figure of a heap

  const PprofSum& Of(PprofFigure figure) const {
    return sums[static_cast<size_t>(figure)];
  }

  bool Has(PprofFigure figure) const { return !Of(figure).parts.empty(); }

  // False: it is a profile of something else than memory.
  bool HasAny() const;
};

// `default_type`: the type that readers show first; "": the profile names none.
PprofFigures ChoosePprofFigures(const std::vector<NamedPprofValue>& values,
                                std::string_view default_type);

// Returns how many bytes a unit of memory has, as pprof itself counts ("kilobytes": 1024);
// 0: it is no unit of memory.
int64_t BytesOfUnit(std::string_view unit);

// "cpu in nanoseconds, contentions in count": what a profile is of, for messages.
std::string DescribePprofValues(const std::vector<NamedPprofValue>& values);

}  // namespace heapprofd
