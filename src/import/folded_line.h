// A line of folded stacks, "main;f;g 4096", as flamegraph.pl, inferno and speedscope read
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace heapprofd {

struct FoldedLine {
  std::string_view stack;
  int64_t value = 0;
  double fraction = 0;  // some files have one; of the value's sign
};

// Returns nullopt for a line without a number at its end.
std::optional<FoldedLine> ParseFoldedLine(std::string_view line);

// True for lines between stacks that say nothing of them: empty ones, and notes behind # or
// //, which some tools write ("# duration: 200").
bool IsFoldedComment(std::string_view line);

}  // namespace heapprofd
