#include <charconv>
#include <optional>

#include "base/text.h"
#include "import/formats.h"
#include "import/line_reader.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxFrames = 4096;  // of one stack

struct FoldedLine {
  std::string_view stack;
  int64_t value = 0;
};

std::optional<FoldedLine> ParseLine(std::string_view line) {
  if (line.ends_with('\r'))
    line.remove_suffix(1);
  const size_t space = line.rfind(' ');
  if (space == std::string_view::npos || space == 0)
    return std::nullopt;
  FoldedLine parsed{line.substr(0, space), 0};
  const std::string_view number = line.substr(space + 1);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), parsed.value);
  if (error != std::errc() || end != number.data() + number.size() || number.empty())
    return std::nullopt;
  return parsed;
}

// Its innermost frames: they tell who holds the memory.
std::string_view InnermostFrames(std::string_view stack) {
  size_t begin = stack.size();
  for (size_t frames = 0; frames < kMaxFrames; ++frames) {
    begin = begin == 0 ? std::string_view::npos : stack.rfind(';', begin - 1);
    if (begin == std::string_view::npos)
      return stack;
  }
  return stack.substr(begin + 1);
}

void AddStack(const FoldedLine& line, TraceBuilder& builder) {
  uint32_t callsite = kNoId;
  std::string_view rest = line.stack;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(';'), rest.size());
    const uint32_t frame =
        builder.InternFrame(builder.Intern(rest.substr(0, end)), kNoId, 0);
    if (frame == kNoId)
      return;
    callsite = builder.InternCallsite(callsite, frame);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (callsite != kNoId)
    builder.dumps().AddAllocation(callsite, 0, line.value);
}

}  // namespace

Result<ImportReport> ImportFolded(ByteSource& source,
                                  const std::string& name,
                                  TraceBuilder& builder) {
  // Most of the time goes to the text of names; whole stacks would save nothing, and need
  // three times the memory.
  builder.UseCallsites();
  ImportReport report;
  LineReader lines(&source);
  ImportedDump dump;
  dump.upid = AddNamedProcess(FileName(name), builder);
  dump.heap_name = builder.Intern("folded");
  dump.tells_allocated = false;
  builder.dumps().Begin(dump);
  std::string_view line;
  while (true) {
    Result<bool> is_line = lines.Next(&line);
    if (!is_line.ok())
      report.damage = is_line.status().message();
    if (!is_line.ok() || !is_line.value())
      break;
    std::optional<FoldedLine> parsed = ParseLine(line);
    if (parsed) {
      const std::string_view kept = InnermostFrames(parsed->stack);
      report.cut_stacks += kept.size() < parsed->stack.size() ? 1u : 0u;
      parsed->stack = kept;
      AddStack(*parsed, builder);
    } else if (!line.empty() && !line.starts_with('#')) {
      ++report.bad_records;
    }
  }
  report.bytes = lines.bytes();
  return report;
}

}  // namespace heapprofd
