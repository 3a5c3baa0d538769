#include "cli/view/source_lines.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/files/foreign_file.h"
#include "profile/allocator_internals.h"
#include "query/allocators.h"
#include "query/stacks/frame_functions.h"

namespace heapprofd {
namespace {

constexpr off_t kMostSourceBytes = 4 << 20;
constexpr size_t kMostLineBytes = 1000;
constexpr size_t kMostTextLines = 50'000;
constexpr size_t kMostNameBytes = 16 << 20;  // of an answer
constexpr size_t kMostLines = 10'000;        // of a file, with figures

void AddOnce(LineSums& sums, int64_t value, uint32_t stack) {
  if (std::exchange(sums.last_stack, stack) != stack)
    sums.total += value;
}

class LineSummer {
 public:
  LineSummer(const ImportedTrace& trace, const CancelFlag& cancelled)
      : trace_(trace), cancelled_(cancelled), functions_(trace, NameStyle::kDemangled) {}

  // False: it was cancelled.
  bool AddStack(uint32_t callsite, int64_t value) {
    const uint32_t stack = callsite + 1;
    const Position holder = HolderOf(callsite);
    for (; callsite != kNoId; callsite = trace_.callsites.parent[callsite]) {
      if (--until_look_ == 0 && IsCancelled())
        return false;
      const uint32_t set = trace_.frames.symbol_set[trace_.callsites.frame[callsite]];
      const size_t end = set == kNoId ? 0 : trace_.symbols.EndOf(set);
      for (size_t row = set; row < end; ++row)
        AddRow(row, value, stack, holder == Position(callsite, row - set));
    }
    return true;
  }

  SumsByFile TakeFiles() { return std::move(files_); }

 private:
  static constexpr uint32_t kFramesPerLook = 65536;

  using Position = std::pair<uint32_t, size_t>;  // callsite, function of its frame

  bool IsCancelled() {
    until_look_ = kFramesPerLook;
    return cancelled_;
  }

  // As in lists of who holds memory: the first, from the allocation outward, that is no
  // allocator's or container's own; where there is no other, the innermost one.
  Position HolderOf(uint32_t callsite) {
    for (uint32_t at = callsite; at != kNoId; at = trace_.callsites.parent[at]) {
      const std::span<const uint32_t> rows = functions_.At(trace_.callsites.frame[at]);
      for (size_t i = 0; i < rows.size(); ++i) {
        if (!IsInternal(rows[i]))
          return {at, i};
      }
    }
    return {callsite, 0};
  }

  // Of a row of functions_'s table.
  bool IsInternal(uint32_t row) {
    if (row >= internal_.size())
      internal_.resize(functions_.table().size());
    std::optional<bool>& known = internal_[row];
    if (!known)
      known = IsAllocatorInternal(functions_.names()->Get(functions_.table()[row].name));
    return *known;
  }

  void AddRow(size_t row, int64_t value, uint32_t stack, bool is_holder) {
    const StringId name = trace_.symbols.source_file[row];
    const uint32_t number = trace_.symbols.line[row];
    if (name == kNoId || name == kEmptyString || number == 0)
      return;
    FileSums& file = files_[name];
    LineSums& line = file.lines[number];
    AddOnce(file.all, value, stack);
    AddOnce(line, value, stack);
    if (is_holder) {
      file.all.own += value;
      line.own += value;
    }
  }

  const ImportedTrace& trace_;
  const CancelFlag& cancelled_;
  FrameFunctions functions_;
  std::vector<std::optional<bool>> internal_;
  uint32_t until_look_ = 1;
  SumsByFile files_;
};

// Number, own and total, by the number.
nlohmann::json LinesThatHoldMost(const FileSums& file) {
  std::vector<std::tuple<uint32_t, int64_t, int64_t>> lines;
  for (const auto& [number, line] : file.lines)
    lines.emplace_back(number, line.own, line.total);
  if (lines.size() > kMostLines) {
    std::nth_element(
        lines.begin(), lines.begin() + kMostLines, lines.end(),
        [](const auto& a, const auto& b) {
          return std::tuple(-std::get<1>(a), -std::get<2>(a), std::get<0>(a)) <
                 std::tuple(-std::get<1>(b), -std::get<2>(b), std::get<0>(b));
        });
    lines.resize(kMostLines);
    std::sort(lines.begin(), lines.end());
  }
  return lines;
}

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

nlohmann::json SourcesJson(const ImportedTrace& trace,
                           const SumsByFile& sums,
                           size_t most) {
  std::vector<std::pair<StringId, LineSums>> files;
  for (const auto& [id, file] : sums)
    files.emplace_back(id, file.all);
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return std::tuple(-a.second.own, -a.second.total, a.first) <
           std::tuple(-b.second.own, -b.second.total, b.first);
  });
  nlohmann::json rows = nlohmann::json::array();
  size_t bytes = 0;
  for (const auto& [id, all] : files) {
    const std::string name(trace.Text(id));
    bytes += name.size();
    if (rows.size() == most || bytes > kMostNameBytes)
      break;
    rows.push_back({{"id", id}, {"name", name}, {"own", all.own}, {"total", all.total}});
  }
  return {{"files", std::move(rows)}, {"count", files.size()}};
}

nlohmann::json SourceJson(const ImportedTrace& trace,
                          const SumsByFile::value_type& file) {
  return {{"name", std::string(trace.Text(file.first))},
          {"lines", LinesThatHoldMost(file.second)},
          {"count", file.second.lines.size()}};
}

Result<SourceText> ReadSource(const std::string& path) {
  // What a trace names may lie anywhere.
  const ScopedFd fd = OpenForeignPath(path);

  struct stat status {};

  if (!fd.valid() || fstat(fd.get(), &status) != 0)
    return CannotShow(path, "there is no such file here, or it cannot be read");
  // Names in a trace are another user's choice, and pages are passed on.
  if (geteuid() == 0 && (status.st_mode & S_IROTH) == 0)
    return CannotShow(path, "not every user may read it, and root reads no others here");
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
