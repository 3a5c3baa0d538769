#include "export/selection.h"

#include <algorithm>

namespace heapprofd {
namespace {

std::string Join(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

std::vector<int64_t> Unique(std::vector<int64_t> numbers) {
  constexpr size_t kMaxShown = 10;
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  numbers.resize(std::min(numbers.size(), kMaxShown));
  return numbers;
}

bool IsTimeSelected(const PprofSelection& selection, int64_t ts) {
  return selection.timestamps.empty() ||
         std::find(selection.timestamps.begin(), selection.timestamps.end(), ts) !=
             selection.timestamps.end();
}

}  // namespace

bool IsSelected(const ImportedTrace& trace,
                const PprofSelection& selection,
                uint32_t upid,
                int64_t ts) {
  return (!selection.pid || trace.processes[upid].pid == *selection.pid) &&
         IsTimeSelected(selection, ts);
}

std::string ReasonFromSelection(const DumpTimesByPid& dumps,
                                const PprofSelection& selection) {
  std::vector<int64_t> pids;
  std::vector<int64_t> times;
  bool has_selected = false;
  for (const auto& [pid, ts] : dumps) {
    pids.push_back(pid);
    if (selection.pid && pid != *selection.pid)
      continue;
    times.push_back(ts);
    has_selected |= IsTimeSelected(selection, ts);
  }
  if (times.empty())
    return "the trace has no dump of --pid " + std::to_string(*selection.pid) +
           "; it has dumps of " + Join(Unique(pids));
  if (!has_selected)
    return "the trace has no dump at --timestamps " + Join(selection.timestamps) +
           "; it has dumps at " + Join(Unique(times));
  return {};
}

PprofMessage::Header HeaderAt(const ImportedTrace& trace, int64_t ts, uint32_t upid) {
  PprofMessage::Header header;
  const std::optional<int64_t> wall =
      trace.clocks.Convert(trace.trace_clock, kClockRealtime, ts);
  header.time_unix_ns = static_cast<uint64_t>(std::max<int64_t>(wall.value_or(0), 0));
  const StringId cmdline = trace.processes[upid].cmdline;
  if (cmdline != kNoId)
    header.comments.push_back("command: " + std::string(trace.Text(cmdline)));
  return header;
}

}  // namespace heapprofd
