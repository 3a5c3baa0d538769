#include "cli/results/recording_results.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/print.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/inspect/file_summary.h"
#include "cli/inspect/opened_file.h"
#include "cli/terminal_color.h"
#include "cli/text_layout.h"
#include "export/gzip.h"
#include "export/trace_pprof.h"
#include "import/import_file.h"
#include "symbolize/worker_pool.h"
#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

constexpr uint32_t kPatienceSeconds = 300;

// Dumps with profiles in the order of their files.
struct PprofOrder {
  std::vector<uint32_t> earlier;  // by time
  std::vector<uint32_t> of_end;   // of processes, in the order in which those are shown
  size_t count_of_first_process = 0;  // among the latter
};

PprofOrder OrderOfPprofs(const ImportedTrace& trace) {
  const std::vector<bool> have_samples = HaveSamples(trace);
  std::vector<bool> are_last(trace.dumps.size());
  PprofOrder order;
  for (const uint32_t dump : LastDumps(trace)) {
    are_last[dump] = true;
    if (have_samples[dump])
      order.of_end.push_back(dump);
  }
  // That of the recorder, which those without an end follow.
  const auto place = [&](uint32_t dump) {
    const uint32_t upid = trace.dumps[dump].upid;
    return std::pair(trace.processes[upid].end, upid);
  };
  std::ranges::stable_sort(order.of_end, {}, place);
  for (const uint32_t dump : order.of_end) {
    if (trace.dumps[dump].upid == trace.dumps[order.of_end[0]].upid)
      ++order.count_of_first_process;
  }
  for (uint32_t dump = 0; dump < trace.dumps.size(); ++dump) {
    if (have_samples[dump] && !are_last[dump])
      order.earlier.push_back(dump);
  }
  std::ranges::stable_sort(order.earlier, {},
                           [&](uint32_t dump) { return trace.dumps[dump].ts; });
  return order;
}

// Gives the paths of those that tell of the end of the process shown first, each ended by
// a zero byte.
Result<std::string> WritePprofs(const RecordingResults& wanted) {
  ImportedTrace trace;
  TraceBuilder builder(&trace);
  builder.ReadForConversion();
  std::vector<std::string> told_with_the_summary;
  const std::vector<std::string> files = {wanted.read_path};
  HPD_TRY(ImportFiles(files, builder, &told_with_the_summary));
  const PprofOrder order = OrderOfPprofs(trace);
  std::vector<size_t> numbers(trace.dumps.size());
  size_t number = 0;
  for (const std::vector<uint32_t>* dumps : {&order.earlier, &order.of_end}) {
    for (const uint32_t dump : *dumps)
      numbers[dump] = ++number;
  }
  std::map<size_t, std::string> paths;  // by number
  HPD_TRY(ConvertToPprof(
      trace, {.pid = {}, .timestamps = {}, .annotate = false},
      [&](const DumpProfile& dump) {
        std::string bytes;
        dump.encode([&bytes](std::string_view piece) { bytes += piece; });
        std::string& path = paths[numbers[dump.dump]];
        path =
            wanted.directory + "/" + PprofFileName(dump, numbers[dump.dump]) + ".pb.gz";
        return WriteGzipFile(path, bytes);
      }));
  std::string first_paths;
  for (size_t i = 0; i < order.count_of_first_process; ++i)
    first_paths += paths[numbers[order.of_end[i]]] + '\0';
  return first_paths;
}

Result<std::string> MakeSummary(const RecordingResults& wanted) {
  // What they name is in the trace.
  unsetenv("PERFETTO_BINARY_PATH");
  unsetenv("PERFETTO_PROGUARD_MAP");
  HPD_TRY_ASSIGN(std::unique_ptr<OpenedFile> file,
                 OpenFile(wanted.read_path, "heap_profile"));
  if (const std::string reason = file->ReasonForNothing(); !reason.empty())
    return Status(StatusCode::kIo, "the trace tells of nothing: " + reason);
  std::string text = FormatFile(*file, {.top = wanted.top,
                                        .width = TerminalWidth(STDERR_FILENO),
                                        .use_unicode = TerminalShowsUnicode()});
  static_cast<void>(file.release());  // this process ends: that is quicker
  return text;
}

void PrintSummary(const RecordingResults& wanted,
                  std::string text,
                  std::string_view pprof_paths) {
  const size_t width = TerminalWidth(STDERR_FILENO);
  text = "\n" + text + "\n" +
         (wanted.is_whole
              ? FileLine("trace", wanted.trace_path, "(open in ui.perfetto.dev)", width)
              : "  ! there is no complete trace; a line above says why\n");
  while (!pprof_paths.empty()) {
    const size_t end = pprof_paths.find('\0');
    text += FileLine("pprof", std::string(pprof_paths.substr(0, end)),
                     "(go tool pprof, speedscope.app)", width);
    pprof_paths.remove_prefix(end + 1);
  }
  text = PrintableLines(text);  // and no name has brought the colours
  fputs((ShowsColor(STDERR_FILENO) ? WithColor(text) : text).c_str(), stderr);
}

// From a worker to us: what it has made, or why it could not.
std::string Encode(const Result<std::string>& made) {
  return made.ok() ? "+" + made.value() : "-" + made.status().message();
}

struct Answer {
  bool is_made = false;
  std::string text = "its process did not answer";  // or what was made, or why it was not
};

// With the name that the user knows.
std::string WithTold(const RecordingResults& wanted, std::string text) {
  if (const size_t at = text.find(wanted.read_path); at != std::string::npos)
    text.replace(at, wanted.read_path.size(), wanted.trace_path);
  return text;
}

Answer Decode(const Result<std::string>& answer) {
  if (!answer.ok())
    return {.is_made = false, .text = answer.status().message()};
  const std::string& text = answer.value();
  return {.is_made = text.starts_with('+'), .text = text.empty() ? "" : text.substr(1)};
}

}  // namespace

int LeaveResults(const RecordingResults& wanted) {
  Answer paths;
  Answer summary;
  RunInWorkers(
      wanted.with_summary ? 2 : 1,
      [&](size_t task) {
        return Encode(task == 0 ? WritePprofs(wanted) : MakeSummary(wanted));
      },
      [&](size_t task, const Result<std::string>& answer) {
        (task == 0 ? paths : summary) = Decode(answer);
      },
      {.cpu_seconds = kPatienceSeconds,
       .wall_seconds = kPatienceSeconds,
       .workers = wanted.with_summary ? 2U : 1U});
  if (wanted.with_summary && summary.is_made)
    PrintSummary(wanted, summary.text, paths.is_made ? paths.text : "");
  int exit_code = kExitOk;
  const auto note = [&](const Answer& made, const char* what, const char* command) {
    if (made.is_made)
      return;
    const std::string remedy =
        std::string("; try heap_profile ") + command + " " + Printable(wanted.trace_path);
    exit_code = Fail(Status(StatusCode::kIo, std::string("cannot make ") + what + ": " +
                                                 WithTold(wanted, made.text) +
                                                 (wanted.is_whole ? remedy : "")));
  };
  if (wanted.with_summary)
    note(summary, "the summary", "show");
  note(paths, "the pprof files", "traceconv profile");
  return exit_code;
}

}  // namespace heapprofd
