#include "cli/view/source_lines.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/files/foreign_file.h"
#include "query/allocators.h"

namespace heapprofd {
namespace {

constexpr off_t kMostSourceBytes = 4 << 20;
constexpr size_t kMostLineBytes = 1000;
constexpr size_t kCallsitesPerLook = 1024;  // whether it is cancelled

void AddOnce(LineSums& sums, int64_t value, uint32_t stack) {
  if (std::exchange(sums.last_stack, stack) != stack)
    sums.total += value;
}

void AddStackLines(const ImportedTrace& trace,
                   uint32_t callsite,
                   int64_t value,
                   SumsByFile* files) {
  const uint32_t stack = callsite + 1;
  bool is_innermost = true;
  for (; callsite != kNoId; callsite = trace.callsites.parent[callsite]) {
    const uint32_t set = trace.frames.symbol_set[trace.callsites.frame[callsite]];
    if (set == kNoId)
      continue;
    const size_t end = trace.symbols.EndOf(set);
    for (size_t row = set; row < end; ++row) {
      const StringId name = trace.symbols.source_file[row];
      const uint32_t number = trace.symbols.line[row];
      if (name == kNoId || name == kEmptyString || number == 0)
        continue;
      FileSums& file = (*files)[name];
      LineSums& line = file.lines[number];
      AddOnce(file.all, value, stack);
      AddOnce(line, value, stack);
      if (std::exchange(is_innermost, false)) {
        file.all.own += value;
        line.own += value;
      }
    }
  }
}

Status CannotShow(const std::string& path, const std::string& cause) {
  return Status(StatusCode::kNotFound, "cannot show " + path + ": " + cause);
}

std::vector<std::string> TextLines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, std::min(end - at, kMostLineBytes)));
    at = end + 1;
  }
  return lines;
}

}  // namespace

Result<SumsByFile> SumByLine(const ImportedTrace& trace,
                             ValuesByCallsite values,
                             ProfileView view,
                             const CancelFlag& cancelled) {
  SumsByFile files;
  MoveToCallers(trace, &values);
  for (uint32_t callsite = 0; callsite < values.size(); ++callsite) {
    if (callsite % kCallsitesPerLook == 0 && cancelled)
      return Status(StatusCode::kUnavailable,
                    "cannot sum the lines of the source: it was cancelled");
    const int64_t value = values[callsite].*FigureOf(view);
    if (value != 0)
      AddStackLines(trace, callsite, value, &files);
  }
  return files;
}

Result<std::vector<std::string>> ReadSource(const std::string& path) {
  // What a trace names may lie anywhere.
  const ScopedFd fd = OpenForeignPath(path);

  struct stat status {};

  if (!fd.valid() || fstat(fd.get(), &status) != 0)
    return CannotShow(path, "there is no such file here, or it cannot be read");
  if (status.st_size > kMostSourceBytes)
    return CannotShow(path, "it is larger than 4 MiB");
  std::string text(static_cast<size_t>(status.st_size), '\0');
  size_t length = 0;
  while (length < text.size()) {
    const ssize_t count = pread(fd.get(), text.data() + length, text.size() - length,
                                static_cast<off_t>(length));
    if (count < 0)
      return Status::FromErrno("cannot read " + path, errno);
    if (count == 0)
      break;
    length += static_cast<size_t>(count);
  }
  text.resize(length);
  if (text.find('\0') != std::string::npos)
    return CannotShow(path, "it is no text");
  return TextLines(text);
}

}  // namespace heapprofd
