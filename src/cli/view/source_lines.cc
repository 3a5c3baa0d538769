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
constexpr size_t kMostTextLines = 50'000;

void AddOnce(LineSums& sums, int64_t value, uint32_t stack) {
  if (std::exchange(sums.last_stack, stack) != stack)
    sums.total += value;
}

class LineSummer {
 public:
  LineSummer(const ImportedTrace& trace, const CancelFlag& cancelled)
      : trace_(trace), cancelled_(cancelled) {}

  // False: it was cancelled.
  bool AddStack(uint32_t callsite, int64_t value) {
    const uint32_t stack = callsite + 1;
    bool is_innermost = true;
    for (; callsite != kNoId; callsite = trace_.callsites.parent[callsite]) {
      if (--until_look_ == 0 && IsCancelled())
        return false;
      const uint32_t set = trace_.frames.symbol_set[trace_.callsites.frame[callsite]];
      const size_t end = set == kNoId ? 0 : trace_.symbols.EndOf(set);
      for (size_t row = set; row < end; ++row)
        AddRow(row, value, stack, &is_innermost);
    }
    return true;
  }

  SumsByFile TakeFiles() { return std::move(files_); }

 private:
  static constexpr uint32_t kFramesPerLook = 65536;

  bool IsCancelled() {
    until_look_ = kFramesPerLook;
    return cancelled_;
  }

  void AddRow(size_t row, int64_t value, uint32_t stack, bool* is_innermost) {
    const StringId name = trace_.symbols.source_file[row];
    const uint32_t number = trace_.symbols.line[row];
    if (name == kNoId || name == kEmptyString || number == 0)
      return;
    FileSums& file = files_[name];
    LineSums& line = file.lines[number];
    AddOnce(file.all, value, stack);
    AddOnce(line, value, stack);
    if (std::exchange(*is_innermost, false)) {
      file.all.own += value;
      line.own += value;
    }
  }

  const ImportedTrace& trace_;
  const CancelFlag& cancelled_;
  uint32_t until_look_ = 1;
  SumsByFile files_;
};

Status CannotShow(const std::string& path, const std::string& cause) {
  return Status(StatusCode::kNotFound, "cannot show " + path + ": " + cause);
}

SourceText TextLines(const std::string& text) {
  SourceText source;
  for (size_t at = 0; at < text.size();) {
    source.is_cut = source.lines.size() == kMostTextLines;
    if (source.is_cut)
      break;
    const size_t end = std::min(text.find('\n', at), text.size());
    source.lines.push_back(text.substr(at, std::min(end - at, kMostLineBytes)) +
                           (end - at > kMostLineBytes ? " …" : ""));
    at = end + 1;
  }
  return source;
}

}  // namespace

Result<SumsByFile> SumByLine(const ImportedTrace& trace,
                             ValuesByCallsite values,
                             ProfileView view,
                             const CancelFlag& cancelled) {
  LineSummer summer(trace, cancelled);
  MoveToCallers(trace, &values);
  for (uint32_t callsite = 0; callsite < values.size(); ++callsite) {
    const int64_t value = values[callsite].*FigureOf(view);
    if (value != 0 && !summer.AddStack(callsite, value))
      return Status(StatusCode::kUnavailable,
                    "cannot sum the lines of the source: it was cancelled");
  }
  return summer.TakeFiles();
}

Result<SourceText> ReadSource(const std::string& path) {
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
