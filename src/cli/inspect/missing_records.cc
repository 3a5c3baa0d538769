#include "cli/inspect/missing_records.h"

#include "base/text.h"
#include "cli/results/process_name.h"
#include "cli/results/quality_warnings.h"

namespace heapprofd {
namespace {

constexpr size_t kMostNamed = 9;  // processes

std::string CountsOf(const Quality& quality) {
  std::string text;
  for (const auto& [name, count] : MissingCounts(quality))
    text += (text.empty() ? "" : ", ") + name + " " + std::to_string(count);
  return text;
}

}  // namespace

std::vector<std::string> MissingRecords(const OpenedFile& file) {
  std::vector<std::string> lines;
  size_t more = 0;
  for (const auto& process : file.processes) {
    const TargetProfile& profile = process->profile();
    if (!IsIncomplete(profile.quality))
      continue;
    if (lines.size() == kMostNamed)
      ++more;
    else
      lines.push_back(ProcessName(profile) + " lacks records (" +
                      CountsOf(profile.quality) +
                      "): it may hold more or less than is told here, beyond all limits; "
                      "heap_profile show " +
                      Printable(file.path) + " says what to do");
  }
  if (more > 0)
    lines.push_back(std::to_string(more) + " more processes lack records");
  return lines;
}

std::vector<std::string> WarningsOf(const OpenedFile& file) {
  std::vector<std::string> warnings = file.warnings;
  for (std::string& line : MissingRecords(file))
    warnings.push_back(std::move(line));
  return warnings;
}

}  // namespace heapprofd
