#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "import/folded_line.h"
#include "import/formats.h"
#include "import/line_reader.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxFrames = 4096;  // of one stack

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

class FoldedImporter {
 public:
  FoldedImporter(const std::string& name, TraceBuilder& builder) : builder_(builder) {
    ImportedDump dump;
    dump.upid = AddNamedProcess(FileName(name), builder);
    dump.heap_name = builder.Intern("folded");
    dump.told = ToldFigures::None();
    dump.told.live_size = true;
    dump.first_live_row = 0;
    builder.dumps().Begin(dump);
  }

  void AddLine(std::string_view line, ImportReport* report) {
    if (IsFoldedComment(line))
      return;
    ++lines_;
    std::optional<FoldedLine> parsed = ParseFoldedLine(line);
    if (!parsed) {
      ++report->bad_records;
      return;
    }
    two_values_ += ParseFoldedLine(parsed->stack) ? 1u : 0u;
    negative_ += parsed->value < 0 || parsed->fraction < 0 ? 1u : 0u;
    const std::string_view kept = InnermostFrames(parsed->stack);
    report->cut_stacks += kept.size() < parsed->stack.size() ? 1u : 0u;
    AddStack(kept, Whole(*parsed));
  }

  // kCorrupt when they were no stacks after all.
  Status Finish(const std::string& name, ImportReport* report) const {
    const uint64_t stacks = lines_ - report->bad_records;
    if (2 * report->bad_records > lines_)
      return Status(StatusCode::kCorrupt,
                    "cannot read " + name + ": it begins like folded stacks, but " +
                        std::to_string(report->bad_records) + " of its " +
                        std::to_string(lines_) + " lines are none (main;f;g 4096)");
    if (stacks > 0 && two_values_ == stacks)
      return Status(StatusCode::kCorrupt,
                    "cannot read " + name +
                        ": each of its stacks has two values, as difffolded.pl writes "
                        "them; give heap_profile diff the two files themselves");
    if (negative_ > 0)
      report->notes.push_back(std::to_string(negative_) +
                              " of its stacks are negative, as in a difference of two "
                              "profiles: sums may hide what grew");
    return {};
  }

 private:
  // Fractions add up, from line to line.
  int64_t Whole(const FoldedLine& line) {
    fraction_ += line.fraction;
    const double whole = std::round(fraction_);
    fraction_ -= whole;
    return line.value + static_cast<int64_t>(whole);
  }

  void AddStack(std::string_view stack, int64_t value) {
    uint32_t callsite = kNoId;
    while (!stack.empty()) {
      const size_t end = std::min(stack.find(';'), stack.size());
      const uint32_t frame =
          builder_.InternFrame(builder_.Intern(stack.substr(0, end)), kNoId, 0);
      if (frame == kNoId)
        return;
      callsite = builder_.InternCallsite(callsite, frame);
      stack.remove_prefix(std::min(end + 1, stack.size()));
    }
    if (callsite != kNoId)
      builder_.dumps().AddAllocation(callsite, 0, value);
  }

  TraceBuilder& builder_;
  uint64_t lines_ = 0;
  uint64_t two_values_ = 0;
  uint64_t negative_ = 0;
  double fraction_ = 0;
};

}  // namespace

Result<ImportReport> ImportFolded(ByteSource& source,
                                  const std::string& name,
                                  TraceBuilder& builder) {
  // Most of the time goes to the text of names; whole stacks would save nothing, and need
  // three times the memory.
  builder.UseCallsites();
  ImportReport report;
  LineReader lines(&source);
  FoldedImporter importer(name, builder);
  std::string_view line;
  while (true) {
    Result<bool> is_line = lines.Next(&line);
    if (!is_line.ok())
      report.damage = is_line.status().message();
    if (!is_line.ok() || !is_line.value())
      break;
    importer.AddLine(line, &report);
  }
  HPD_TRY(importer.Finish(name, &report));
  report.bytes = lines.bytes();
  return report;
}

}  // namespace heapprofd
