// Stacks that are not to be told as leaks, in the format of LeakSanitizer's suppressions:
// lines "leak:PATTERN", and "#" for comments.
// (https://github.com/google/sanitizers/wiki/AddressSanitizerLeakSanitizer#suppressions)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/results/top_list.h"

namespace heapprofd {

struct Suppression {
  std::string pattern;
  // What it has suppressed.
  size_t stacks = 0;
  double bytes = 0;
};

// `name`: of the file, for errors.
Result<std::vector<Suppression>> ParseSuppressions(std::string_view text,
                                                   const std::string& name);

// kInvalidArgument when it cannot be read.
Result<std::vector<Suppression>> ReadSuppressions(const std::string& path);

// Whether the text has a part that the pattern describes: "*" stands for any text, "^" at
// the begin and "$" at the end for those of the text.
bool MatchesPattern(std::string_view pattern, std::string_view text);

// Asks each function once: there are few, on many stacks.
class Suppressor {
 public:
  // `suppressions` outlive it.
  explicit Suppressor(std::vector<Suppression>* suppressions)
      : suppressions_(*suppressions) {}

  // The first one that describes a function, source file or module of the stack, counted
  // there; nullptr: none does. `stack`: rows of `functions`, of which others may be added
  // behind those that were there before.
  const Suppression* Suppress(std::span<const uint32_t> stack,
                              const std::vector<StackFunction>& functions,
                              double bytes);

 private:
  size_t FirstOf(const StackFunction& function) const;

  std::vector<Suppression>& suppressions_;
  std::vector<size_t> known_;  // by row: its index, or how many there are
};

}  // namespace heapprofd
