#include "cli/results/recording_results.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/inspect/file_summary.h"
#include "cli/inspect/opened_file.h"
#include "cli/record/signals.h"
#include "cli/report_command.h"
#include "cli/terminal_color.h"
#include "cli/text_layout.h"
#include "export/gzip.h"
#include "export/trace_pprof.h"
#include "hotspot/dump_room.h"
#include "symbolize/worker_pool.h"
#include "tables/last_dumps.h"

namespace heapprofd {
namespace {

constexpr uint32_t kPatienceSeconds = 300;
constexpr uint64_t kMinMemoryBytes = uint64_t{512} << 20;

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
Result<std::string> WritePprofs(const ImportedTrace& trace,
                                const OutputDirectory& directory) {
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
        const size_t file = numbers[dump.dump];
        const FilePlace place = directory.Place(PprofFileName(dump, file) + ".pb.gz");
        paths[file] = place.path;
        return WriteGzipFile(place, bytes);
      }));
  std::string first_paths;
  for (size_t i = 0; i < order.count_of_first_process; ++i)
    first_paths += paths[numbers[order.of_end[i]]] + '\0';
  return first_paths;
}

Result<std::string> MakeSummary(OpenedFile& file, uint32_t top) {
  HPD_TRY(file.Complete());
  if (const std::string reason = file.ReasonForNothing(); !reason.empty())
    return Status(StatusCode::kIo, "the trace tells of nothing: " + reason);
  return FormatFile(file, {.top = top,
                           .width = TerminalWidth(STDERR_FILENO),
                           .use_unicode = TerminalShowsUnicode()});
}

// "": there is no trace that a command could read.
std::string Remedy(const RecordingResults& wanted, const char* command) {
  return wanted.is_whole ? std::string("; try heap_profile ") + command + " " +
                               Printable(wanted.trace_path)
                         : "";
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

FilePlace ReportOf(const RecordingResults& wanted) {
  return ReportBeside(wanted.directory->Place("raw-trace"));
}

// From a worker to us: what it has made, or why it could not.
std::string Encode(const Result<std::string>& made) {
  return made.ok() ? "+" + made.value() : "-" + made.status().message();
}

Result<std::string> Decode(const Result<std::string>& answer) {
  if (!answer.ok() || answer.value().starts_with('+'))
    return answer.ok() ? answer.value().substr(1) : answer;
  return Status(StatusCode::kIo, answer.value().substr(!answer.value().empty()));
}

// Makes them of the decoded trace, each in a process of its own.
class ResultsMaker {
 public:
  ResultsMaker(const RecordingResults& wanted, OpenedFile& file)
      : wanted_(wanted), file_(file) {}

  // `no_report_fd`: readable when nobody waits for the report. Gives an exit code.
  int Run(int no_report_fd) {
    // The longest first.
    if (wanted_.with_report)
      parts_.push_back({.make = [this] { return MakeReport(); }, .made = &report_});
    const size_t optional_parts = parts_.size();
    parts_.push_back(
        {.make = [this] { return WritePprofs(file_.trace(), *wanted_.directory); },
         .made = &pprofs_});
    if (wanted_.with_summary)
      parts_.push_back({.make = [this] { return MakeSummary(file_, wanted_.top); },
                        .made = &summary_});
    RunInWorkers(
        parts_.size(), [this](size_t part) { return Encode(parts_[part].make()); },
        [this](size_t part, const Result<std::string>& answer) {
          *parts_[part].made = Decode(answer);
          ShowSummary();
        },
        {.memory_bytes = MemoryForMore(),
         .divides_memory = false,
         .cpu_seconds = kPatienceSeconds,
         .wall_seconds = kPatienceSeconds,
         .workers = static_cast<unsigned>(parts_.size()),
         .cancel_fd = no_report_fd,
         .not_cancelled = parts_.size() - optional_parts,
         .on_progress = [this](size_t) { ShowProgress(); }});
    ClearProgress();
    ShowReport();
    return exit_code_;
  }

 private:
  struct Part {
    std::function<Result<std::string>()> make;
    std::optional<Result<std::string>>* made;
  };

  Result<std::string> MakeReport() {
    ReportOptions options = {.version = HPD_VERSION,
                             .files = {wanted_.trace_path},
                             .warnings = file_.warnings};
    HPD_TRY(WriteReport(*file_.database, options, ReportOf(wanted_)));
    return std::string();
  }

  void ShowProgress() {
    constexpr uint64_t kPatienceNs = 700'000'000;
    if (wanted_.status_line != nullptr && MonotonicNs() - started_ns_ >= kPatienceNs)
      wanted_.status_line->Show(
          wanted_.with_report
              ? "* writing pprof files and report; Ctrl-C goes on without the report"
              : "* writing pprof files");
  }

  void ClearProgress() {
    if (wanted_.status_line != nullptr)
      wanted_.status_line->Clear();
  }

  // When it and the paths that stand below it are there.
  void ShowSummary() {
    if (is_shown_ || !pprofs_ || (wanted_.with_summary && !summary_))
      return;
    is_shown_ = true;
    ClearProgress();
    if (summary_ && summary_->ok())
      PrintSummary(wanted_, summary_->value(), pprofs_->ok() ? pprofs_->value() : "");
    if (summary_)
      Note(*summary_, "the summary", "show");
    Note(*pprofs_, "the pprof files", "traceconv profile");
  }

  void ShowReport() {
    if (wanted_.with_report && report_ && report_->ok() && wanted_.with_summary)
      PrintReportPath(ReportOf(wanted_).path);
    else if (wanted_.with_report && (!report_ || !report_->ok()))
      PrintNoReport(report_ ? report_->status().message() : "it was interrupted",
                    wanted_.is_whole, wanted_.trace_path);
    if (wanted_.with_report && report_ && !report_->ok() && exit_code_ == kExitOk)
      exit_code_ = kExitFailure;
  }

  void Note(const Result<std::string>& made, const char* what, const char* command) {
    if (!made.ok())
      exit_code_ = Fail(Status(StatusCode::kIo, std::string("cannot make ") + what +
                                                    ": " + made.status().message() +
                                                    Remedy(wanted_, command)));
  }

  const RecordingResults& wanted_;
  OpenedFile& file_;
  uint64_t started_ns_ = MonotonicNs();
  std::vector<Part> parts_;
  // None: not yet.
  std::optional<Result<std::string>> report_;
  std::optional<Result<std::string>> pprofs_;
  std::optional<Result<std::string>> summary_;
  bool is_shown_ = false;
  int exit_code_ = kExitOk;
};

Result<std::unique_ptr<ByteSource>> Open(const TraceFile& file) {
  std::unique_ptr<ByteSource> source;
  if (file.is_in_memory()) {
    source = std::make_unique<MemorySource>(file.bytes());
  } else {
    HPD_TRY_ASSIGN(ScopedFd fd, file.OpenToRead());
    source = std::make_unique<FileSource>(std::move(fd), file.path());
  }
  return source;
}

// In a process of its own; gives an exit code.
Result<int> DecodeAndMake(const RecordingResults& wanted, int no_report_fd) {
  HPD_TRY_ASSIGN(const std::unique_ptr<ByteSource> source, Open(*wanted.file));
  HPD_TRY_ASSIGN(std::unique_ptr<OpenedFile> file, OpenOwn(*source, wanted.trace_path));
  const int exit_code = ResultsMaker(wanted, *file).Run(no_report_fd);
  static_cast<void>(file.release());  // this process ends: that is quicker
  return exit_code;
}

}  // namespace

// That which decodes the trace, and each of those that share what it has decoded.
uint64_t MemoryForMore() {
  return std::max(RoomInMemory("self"), kMinMemoryBytes);
}

int LeaveResults(const RecordingResults& wanted) {
  const ScopedFd interrupted = DescriptorOf(SetOf({SIGINT}));
  const ScopedFd ended = DescriptorOf(SetOf({SIGTERM, SIGHUP, SIGQUIT}));
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return Fail(Status::FromErrno("cannot create a pipe", errno));
  const ScopedFd no_report(ends[0]);
  ScopedFd wants_report(ends[1]);
  const auto leave_out_report_if_interrupted = [&] {
    signalfd_siginfo taken{};
    if (read(interrupted.get(), &taken, sizeof(taken)) > 0)
      wants_report.reset();
  };
  leave_out_report_if_interrupted();
  std::string made = "-it was interrupted";
  RunInWorkers(
      1,
      [&](size_t) {
        wants_report.reset();
        const Result<int> exit_code = DecodeAndMake(wanted, no_report.get());
        return exit_code.ok() ? "+" + std::to_string(exit_code.value())
                              : "-" + exit_code.status().message();
      },
      [&](size_t, const Result<std::string>& answer) {
        made = answer.ok() ? answer.value() : "-" + answer.status().message();
      },
      {.memory_bytes = MemoryForMore(),
       .divides_memory = false,
       .cpu_seconds = kPatienceSeconds,
       .wall_seconds = 2 * kPatienceSeconds,
       .cancel_fd = ended.get(),
       .request_fd = interrupted.get(),
       .on_request = leave_out_report_if_interrupted});
  if (made.starts_with('+'))
    return atoi(made.c_str() + 1);  // NOLINT(cert-err34-c)
  const std::string cause = made.substr(1);
  const int exit_code =
      Fail(Status(StatusCode::kIo,
                  "cannot show what was recorded: " + cause + Remedy(wanted, "show")));
  // Its worker may have been faster; the directory was empty before.
  if (wanted.with_report && access(ReportOf(wanted).at.c_str(), F_OK) != 0)
    PrintNoReport(cause, wanted.is_whole, wanted.trace_path);
  return exit_code;
}

}  // namespace heapprofd
