#include "import/folded_line.h"

#include <charconv>
#include <cmath>

namespace heapprofd {
namespace {

constexpr double kMostWithFraction = 9e15;  // whole numbers are exact up to there

}  // namespace

std::optional<FoldedLine> ParseFoldedLine(std::string_view line) {
  while (line.ends_with('\r') || line.ends_with(' '))
    line.remove_suffix(1);
  const size_t space = line.rfind(' ');
  if (space == std::string_view::npos || space == 0)
    return std::nullopt;
  FoldedLine parsed{.stack = line.substr(0, space)};
  const char* const begin = line.data() + space + 1;
  const char* const end = line.data() + line.size();
  const auto [at, error] = std::from_chars(begin, end, parsed.value);
  if (error == std::errc() && at == end)
    return parsed;
  double value = 0;
  const auto [last, bad] = std::from_chars(begin, end, value, std::chars_format::fixed);
  if (bad != std::errc() || last != end || !(std::abs(value) < kMostWithFraction))
    return std::nullopt;
  parsed.value = static_cast<int64_t>(value);
  parsed.fraction = value - static_cast<double>(parsed.value);
  return parsed;
}

bool IsFoldedComment(std::string_view line) {
  while (line.ends_with('\r'))
    line.remove_suffix(1);
  return line.empty() || line.starts_with('#') || line.starts_with("//");
}

}  // namespace heapprofd
