#include "cli/inspect/suppressions.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/scoped_fd.h"
#include "base/text.h"

namespace heapprofd {
namespace {

constexpr std::string_view kLeakPrefix = "leak:";
constexpr size_t kMaxSuppressionsFile = size_t{1} << 20;  // bytes

Status CannotRead(const std::string& name, const std::string& why) {
  return Status(StatusCode::kInvalidArgument,
                "cannot read suppressions " + name + ": " + why);
}

bool Describes(const std::string& pattern, const StackFunction& function) {
  return MatchesPattern(pattern, function.name) ||
         MatchesPattern(pattern, function.label) ||
         MatchesPattern(pattern, function.source) ||
         MatchesPattern(pattern, function.path) ||
         MatchesPattern(pattern, function.module);
}

}  // namespace

Result<std::vector<Suppression>> ParseSuppressions(std::string_view text,
                                                   const std::string& name) {
  std::vector<Suppression> suppressions;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, end), " \t\r");
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#'))
      continue;
    if (!line.starts_with(kLeakPrefix) || line.size() == kLeakPrefix.size())
      return CannotRead(name, "line " + std::to_string(number) +
                                  " is neither leak:PATTERN nor a comment (#)");
    suppressions.push_back({.pattern = std::string(line.substr(kLeakPrefix.size())),
                            .stacks = 0,
                            .bytes = 0});
  }
  return suppressions;
}

Result<std::vector<Suppression>> ReadSuppressions(const std::string& path) {
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(kMaxSuppressionsFile + 1, '\0');
  size_t size = 0;
  ssize_t got = -1;
  while (fd.valid() && size < text.size() &&
         (got = read(fd.get(), text.data() + size, text.size() - size)) > 0)
    size += static_cast<size_t>(got);
  if (!fd.valid() || got < 0)
    return CannotRead(path, std::string(strerror(errno)) + "; check --suppressions");
  if (size > kMaxSuppressionsFile)
    return CannotRead(path, "it is larger than 1 MiB; check --suppressions");
  text.resize(size);
  return ParseSuppressions(text, path);
}

bool MatchesPattern(std::string_view pattern, std::string_view text) {
  bool is_anchored = pattern.starts_with('^');
  pattern.remove_prefix(is_anchored ? 1 : 0);
  const bool ends_there = pattern.ends_with('$');
  pattern.remove_suffix(ends_there ? 1 : 0);
  while (true) {
    const size_t star = pattern.find('*');
    const std::string_view part = pattern.substr(0, star);
    const bool is_last = star == std::string_view::npos;
    // The last part stands where the text ends, the others as early as they can.
    if (is_last && ends_there)
      return text.ends_with(part) && (!is_anchored || text.size() == part.size());
    const size_t at = is_anchored ? (text.starts_with(part) ? 0 : std::string_view::npos)
                                  : text.find(part);
    if (at == std::string_view::npos)
      return false;
    if (is_last)
      return true;
    text.remove_prefix(at + part.size());
    pattern.remove_prefix(star + 1);
    is_anchored = false;
  }
}

size_t Suppressor::FirstOf(const StackFunction& function) const {
  return static_cast<size_t>(std::ranges::find_if(suppressions_,
                                                  [&](const Suppression& suppression) {
                                                    return Describes(suppression.pattern,
                                                                     function);
                                                  }) -
                             suppressions_.begin());
}

const Suppression* Suppressor::Suppress(std::span<const uint32_t> stack,
                                        const std::vector<StackFunction>& functions,
                                        double bytes) {
  while (known_.size() < functions.size())
    known_.push_back(FirstOf(functions[known_.size()]));
  size_t first = suppressions_.size();
  for (const uint32_t row : stack)
    first = std::min(first, known_[row]);
  if (first == suppressions_.size())
    return nullptr;
  ++suppressions_[first].stacks;
  suppressions_[first].bytes += bytes;
  return &suppressions_[first];
}

}  // namespace heapprofd
