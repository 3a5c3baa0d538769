#include "cli/results/finish.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/format.h"
#include "base/print.h"
#include "cli/exit_code.h"
#include "cli/record/named_targets.h"
#include "cli/record/signals.h"
#include "cli/results/deobfuscate_profile.h"
#include "cli/results/nothing_recorded.h"
#include "cli/terminal_color.h"
#include "cli/text_layout.h"
#include "export/gzip.h"
#include "export/pprof.h"
#include "trace/trace_writer.h"

namespace heapprofd {
namespace {

// What raw-trace has of symbols, in a file of its own: to be appended to other recordings
// of the same programs.
Status WriteSymbols(const std::string& directory, const TraceRecording& recording) {
  HPD_TRY_ASSIGN(TraceFile file, TraceFile::Create(directory + "/symbols"));
  TraceWriter writer(std::move(file));
  for (const Target* target : recording.targets())
    HPD_TRY(writer.WriteModuleSymbols(target->profile()));
  // The trace has them already; scripts look for it by this name.
  const std::string complete = directory + "/symbolized-trace";
  if (symlink("raw-trace", complete.c_str()) != 0)
    return Status::FromErrno("cannot create " + complete, errno);
  return writer.Finish();
}

std::string JoinCommand(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& argument : command)
    text += (text.empty() ? "" : " ") + argument;
  return text;
}

// Wall clock time of a moment on CLOCK_MONOTONIC.
uint64_t WallClockNs(uint64_t monotonic_ns) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(now.tv_nsec) - (MonotonicNs() - monotonic_ns);
}

bool DumpsAtMax(const RecordingConfig& config) {
  return std::any_of(config.sessions.begin(), config.sessions.end(),
                     [](const SessionConfig& session) { return session.dumps.at_max; });
}

// Writes pprof files with running numbers.
class PprofFiles {
 public:
  PprofFiles(std::string directory, const RecordingConfig& config)
      : directory_(std::move(directory)) {
    options_.with_maximum = DumpsAtMax(config);
  }

  // Nothing for a heap without samples.
  Status Write(const TargetProfile& profile, const HeapDump& dump, const DumpMark& mark) {
    last_path_.clear();
    if (dump.callsites.empty())
      return {};
    std::string path = directory_ + "/heap_dump." + std::to_string(++number_) + "." +
                       std::to_string(profile.process.pid) + "." + dump.heap_name +
                       ".pb.gz";
    options_.time_unix_ns = WallClockNs(dump.end_ns);
    options_.comments = {
        "command: " + JoinCommand(profile.process.cmdline),
        "sampling interval: " + std::to_string(dump.sampling_interval) + " bytes",
        "counts and bytes are unbiased estimates from samples"};
    if (!mark.label.empty())
      options_.comments.push_back("dump: " + mark.label);
    HPD_TRY(WriteGzipFile(path, EncodePprof(profile, dump, options_)));
    last_path_ = std::move(path);
    return {};
  }

  // Empty when the last heap had no samples.
  const std::string& last_path() const { return last_path_; }

 private:
  std::string directory_;
  PprofOptions options_;
  int number_ = 0;
  std::string last_path_;
};

// Earlier dumps first, then the last of each process in the order of `named`; the paths
// of the first process come back.
Result<std::vector<std::string>> WritePprofs(const std::string& directory,
                                             const TraceRecording& recording,
                                             const std::vector<NamedTarget>& named) {
  PprofFiles files(directory, recording.config());
  HPD_TRY(recording.ForEachEarlierHeap(
      [&](const TargetProfile& profile, const HeapDump& dump, const DumpMark& mark) {
        return files.Write(profile, dump, mark);
      }));
  std::vector<std::string> first_paths;
  for (const NamedTarget& process : named) {
    if (!recording.IsInFinalDump(*process.target))
      continue;
    for (const HeapDump& dump : process.result.profile->heaps) {
      HPD_TRY(files.Write(*process.result.profile, dump, DumpMark()));
      if (&process == &named[0] && !files.last_path().empty())
        first_paths.push_back(files.last_path());
    }
  }
  return first_paths;
}

// What went wrong with processes that were attached to.
void PrintAttachProblems(const TraceRecording& recording) {
  for (const std::unique_ptr<Session>& session : recording.sessions()) {
    for (const std::string& problem : session->attach_problems())
      Print(stderr, "heap_profile: %s\n", problem.c_str());
  }
}

// What ended the recording before the user or the program did.
void PrintCause(const TraceRecording& recording, const FinishOptions& options) {
  if (recording.cause() == StopCause::kFailed)
    Print(
        stderr,
        "heap_profile: the recording ended after %s, when it could not be written: what "
        "happened afterwards is lost\n",
        FormatDuration(options.seconds).c_str());
  if (recording.cause() == StopCause::kGuardrail)
    Print(stderr,
          "heap_profile: a guardrail ended the recording: the profiler used more "
          "memory or time than max_heapprofd_memory_kb or max_heapprofd_cpu_secs "
          "allows\n");
  if (recording.cause() == StopCause::kFileFull)
    Print(stderr,
          "heap_profile: the trace has reached max_file_size_bytes; the recording "
          "ended\n");
}

// The one process that the user has started or given by number; 0: there is no such one.
pid_t ProgramOf(const TraceRecording& recording, const FinishOptions& options) {
  if (options.program != 0)
    return options.program;
  const TargetRules& rules = recording.config().sessions[0].targets;
  return rules.names.empty() && rules.pids.size() == 1 ? rules.pids[0] : 0;
}

// Said in quiet, too: it is an error.
void PrintNothing(const TraceRecording& recording,
                  const FinishOptions& options,
                  bool has_trace) {
  const std::string reason =
      ReasonForNothing(recording, options.obstacle, options.program != 0);
  Print(stderr, "heap_profile: nothing recorded: %s\n", reason.c_str());
  if (options.quiet)
    return;
  if (!recording.targets().empty()) {
    for (const std::string& warning : ProgramWarnings(recording)) {
      if (warning != reason)
        Print(stderr, "  ! %s\n", warning.c_str());
    }
  }
  if (has_trace)
    Print(stderr, "  trace  %s\n", options.trace_path.c_str());
}

void PrintSummary(const std::vector<ProcessResult>& results,
                  const SummaryOptions& options) {
  const std::string text = "\n" + FormatSummary(results, options);
  // Printable already, and no name has brought the colours.
  fputs((ShowsColor(STDERR_FILENO) ? WithColor(text) : text).c_str(), stderr);
}

// Shows how the search for names goes once it has taken longer than one likes to wait
// without a word.
class NamesProgress {
 public:
  explicit NamesProgress(StatusLine* line) : line_(line) {}

  ~NamesProgress() {
    if (line_ != nullptr)
      line_->Clear();
  }

  NamesProgress(const NamesProgress&) = delete;
  NamesProgress& operator=(const NamesProgress&) = delete;

  void Show(double share) {
    constexpr uint64_t kPatienceNs = 700'000'000;
    if (line_ != nullptr && MonotonicNs() - started_ns_ >= kPatienceNs)
      line_->Show("* looking up names, " + FormatShare(share, 1) +
                  "; Ctrl-C goes on without those that are missing");
  }

 private:
  StatusLine* line_;
  uint64_t started_ns_ = MonotonicNs();
};

std::vector<NamedTarget> NameWithProgress(const TraceRecording& recording,
                                          const LiveView& view,
                                          const FinishOptions& options,
                                          int cancel_fd,
                                          pid_t program) {
  NamesProgress progress(options.status_line);
  SymbolizeOptions symbols = options.symbols;
  symbols.cancel_fd = cancel_fd;
  symbols.on_progress = [&progress](double share) { progress.Show(share); };
  return NameTargets(recording, view, symbols, program);
}

// Writes the files of a finished recording. A failure is said, and those that can be
// written are.
class ResultFiles {
 public:
  ResultFiles(TraceRecording& recording, const FinishOptions& options)
      : recording_(recording), options_(options) {}

  void Write(const std::vector<NamedTarget>& named) {
    Result<Deobfuscator> deobfuscator = DeobfuscatorFromEnvironment();
    if (!deobfuscator.ok())
      Note(deobfuscator.status());
    else
      for (const NamedTarget& process : named)
        DeobfuscateFrames(deobfuscator.value(), process.target->code());
    has_trace_ = Note(recording_.WriteRest());
    if (has_trace_ && options_.on_trace)
      options_.on_trace();
    if (options_.directory.empty())
      return;
    Result<std::vector<std::string>> paths =
        WritePprofs(options_.directory, recording_, named);
    if (paths.ok())
      pprof_paths_ = std::move(paths).value();
    else
      Note(paths.status());
    if (!options_.symbols.binary_path.empty() && has_trace_)
      Note(WriteSymbols(options_.directory, recording_));
    if (deobfuscator.ok() && has_trace_)
      Note(WriteDeobfuscation(options_.directory));
  }

  bool has_trace() const { return has_trace_; }

  const std::vector<std::string>& pprof_paths() const { return pprof_paths_; }

  // kExitOk: all of them are written.
  int exit_code() const { return exit_code_; }

 private:
  bool Note(const Status& status) {
    if (!status.ok())
      exit_code_ = Fail(status);
    return status.ok();
  }

  TraceRecording& recording_;
  const FinishOptions& options_;
  bool has_trace_ = false;
  std::vector<std::string> pprof_paths_;
  int exit_code_ = kExitOk;
};

// Whoever looks at the dumps has shown all the rest.
int FinishDumps(TraceRecording& recording, const FinishOptions& options) {
  const Status status = recording.WriteRest();
  PrintCause(recording, options);
  PrintAttachProblems(recording);
  if (!status.ok())
    return Fail(status);
  const std::vector<Target*> targets = recording.targets();
  if (std::any_of(targets.begin(), targets.end(),
                  [](const Target* target) { return HasSamples(target->profile()); }))
    return kExitOk;
  PrintNothing(recording, options, /*has_trace=*/false);
  return kExitNothing;
}

}  // namespace

int FinishRecording(TraceRecording& recording,
                    const LiveView& view,
                    const FinishOptions& options) {
  const ScopedFd stop_requests = StopRequests();
  if (options.only_dumps)
    return FinishDumps(recording, options);
  const pid_t program = ProgramOf(recording, options);
  const std::vector<NamedTarget> named =
      NameWithProgress(recording, view, options, stop_requests.get(), program);
  ResultFiles files(recording, options);
  files.Write(named);
  const int failure = files.exit_code() == kExitOk && WasInterrupted(named)
                          ? kExitSignalBase + SIGINT
                          : files.exit_code();
  PrintCause(recording, options);
  PrintAttachProblems(recording);
  if (named.empty() || !HasSamples(*named[0].result.profile)) {
    const bool may_be_empty =
        options.directory.empty();  // others ask for other data, too
    if (!options.quiet || !may_be_empty)
      PrintNothing(recording, options, files.has_trace());
    return failure == kExitOk && !may_be_empty ? static_cast<int>(kExitNothing) : failure;
  }
  if (options.quiet)
    return failure;
  std::vector<ProcessResult> results;
  results.reserve(named.size());
  for (const NamedTarget& process : named) {
    results.push_back(process.result);
    if (process.result.profile->process.pid == options.program)
      results.back().resident_limit_kib = options.program_peak_kib;
  }
  PrintSummary(results,
               {.heaps = recording.config().sessions[0].heaps,
                .block_timeout_us = recording.config().sessions[0].block_timeout_us,
                .top = options.top,
                .seconds = options.seconds,
                .width = TerminalWidth(STDERR_FILENO),
                .use_unicode = TerminalShowsUnicode(),
                .dump_at_max = DumpsAtMax(recording.config()),
                .program = ProgramBehindFirst(named, program),
                .largest = LargerThanFirst(named),
                .warnings = ProgramWarnings(recording),
                .trace_path = files.has_trace() ? options.trace_path : "",
                .pprof_paths = files.pprof_paths()});
  return failure;
}

}  // namespace heapprofd
