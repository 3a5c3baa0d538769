#include "cli/results/finish.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/format.h"
#include "base/print.h"
#include "cli/exit_code.h"
#include "cli/record/named_targets.h"
#include "cli/record/signals.h"
#include "cli/report_command.h"
#include "cli/results/deobfuscate_profile.h"
#include "cli/results/nothing_recorded.h"
#include "cli/results/process_order.h"
#include "cli/results/recording_results.h"
#include "cli/results/unnamed_modules.h"
#include "trace/trace_writer.h"

namespace heapprofd {
namespace {

// What raw-trace has of symbols, in a file of its own: to be appended to other recordings
// of the same programs.
Status WriteSymbols(const OutputDirectory& directory, const TraceRecording& recording) {
  HPD_TRY_ASSIGN(TraceFile file, TraceFile::Create(directory.Place("symbols")));
  TraceWriter writer(std::move(file));
  for (const Target* target : recording.targets())
    HPD_TRY(writer.WriteModuleSymbols(target->profile(), NamedModules::kWithBuildId));
  // The trace has them already; scripts look for it by this name.
  const FilePlace complete = directory.Place("symbolized-trace");
  if (symlink("raw-trace", complete.at.c_str()) != 0)
    return Status::FromErrno("cannot create " + complete.path, errno);
  return writer.Finish();
}

// What went wrong with processes that were attached to.
void PrintAttachProblems(const TraceRecording& recording) {
  for (const std::unique_ptr<Session>& session : recording.sessions()) {
    for (const std::string& problem : session->attach_problems())
      Print(stderr, "heap_profile: %s\n", problem.c_str());
  }
}

// The client of an attached process calls nothing of the program's, and does not ask.
void PrintSilentAllocators(const TraceRecording& recording) {
  std::vector<pid_t> attached;
  bool has_answer = false;
  bool has_asked = false;
  for (const std::unique_ptr<Session>& session : recording.sessions()) {
    if (!session->config().ask_allocator)
      continue;
    for (const std::unique_ptr<Target>& target : session->targets().all()) {
      has_answer |= !target->profile().memory.allocator.empty();
      has_asked |= !target->is_attached();
      if (target->is_attached())
        attached.push_back(target->pid());
    }
  }
  const bool is_one = attached.size() == 1;
  const std::string whose = is_one ? "process " + std::to_string(attached[0])
                                   : std::to_string(attached.size()) + " processes";
  if (!attached.empty())
    Print(stderr,
          "heap_profile: cannot ask the allocator of %s for its accounting: only the "
          "library of programs that are started under heap_profile, or with LD_PRELOAD, "
          "asks it, and %s attached to; start the program so\n",
          whose.c_str(), is_one ? "this one was" : "these were");
  else if (has_asked && !has_answer)
    Print(stderr,
          "heap_profile: cannot tell the allocator's own accounting: no process has "
          "answered; glibc 2.33 or later and jemalloc do, in a process that allocates "
          "while it is asked, or that ends normally\n");
}

// What ended the recording before the user or the program did.
void PrintCause(const TraceRecording& recording) {
  if (recording.cause() == StopCause::kFailed)
    Print(
        stderr,
        "heap_profile: the recording ended after %s, when it could not be written: what "
        "happened afterwards is lost\n",
        FormatDuration(recording.seconds()).c_str());
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

ProcessEnd EndOf(const ProcessResult& process) {
  const TargetProfile& profile = *process.profile;
  return {.pid = profile.process.pid,
          .start_ns = profile.process.start_ns,
          .executable = profile.process.executable,
          .hooks_malloc = profile.hooks_malloc,
          .has_own_malloc = profile.has_own_malloc,
          .has_heaps = !profile.heaps.empty(),
          .unrecorded_heaps = profile.unrecorded_heaps,
          .late_files = profile.late_files,
          .rss_kib = process.resident_kib,
          .anonymous_kib = profile.memory.anonymous_kib,
          .swap_kib = profile.memory.swap_kib,
          .rss_limit_kib = process.resident_limit_kib,
          .requested = profile.memory.requested,
          .history = process.history,
          .unnamed = UnnamedModulesOf(profile, process.symbols)};
}

// What the summary needs beside the profiles, for whoever shows it again.
RecordingEnd EndOf(const TraceRecording& recording,
                   const std::vector<NamedTarget>& named,
                   const FinishOptions& options) {
  RecordingEnd end;
  end.seconds = recording.seconds();
  end.program_pid = ProgramOf(recording, options);
  for (const std::unique_ptr<Session>& session : recording.sessions()) {
    for (UnrecordedPrograms& programs : session->programs().Unrecorded())
      end.unrecorded.push_back(std::move(programs));
  }
  for (const NamedTarget& process : named)
    end.processes.push_back(EndOf(process.result));
  return end;
}

// Writes the trace and what else is not made of it. A failure is said, and those that can be
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
    const RecordingEnd end = EndOf(recording_, named, options_);
    has_trace_ = Note(recording_.WriteRest(end));
    Note(WriteStatsJson(recording_, options_.usage));
    if (options_.directory == nullptr)
      return;
    if (!has_trace_)  // what it lacks is shown
      recording_.WriteAnew(end);
    if (!options_.symbols.binary_path.empty() && has_trace_)
      Note(WriteSymbols(*options_.directory, recording_));
    if (deobfuscator.ok() && has_trace_)
      Note(WriteDeobfuscation(*options_.directory));
  }

  // kExitOk: all of them are written.
  RecordingOutcome outcome() const {
    return {.exit_code = exit_code_, .has_whole_trace = has_trace_};
  }

 private:
  bool Note(const Status& status) {
    if (!status.ok())
      exit_code_ = Fail(status);
    return status.ok();
  }

  TraceRecording& recording_;
  const FinishOptions& options_;
  bool has_trace_ = false;
  int exit_code_ = kExitOk;
};

bool HasSomething(const TraceRecording& recording) {
  const std::vector<Target*> targets = recording.targets();
  return std::any_of(targets.begin(), targets.end(),
                     [](const Target* target) { return HasSamples(target->profile()); });
}

// Whoever looks at the dumps has shown all the rest.
RecordingOutcome FinishDumps(TraceRecording& recording, const FinishOptions& options) {
  const Status trace = recording.WriteRest(EndOf(recording, {}, options));
  const Status figures = WriteStatsJson(recording, options.usage);
  PrintCause(recording);
  PrintAttachProblems(recording);
  PrintSilentAllocators(recording);
  RecordingOutcome outcome{.exit_code = kExitOk, .has_whole_trace = trace.ok()};
  for (const Status& status : {trace, figures}) {
    if (!status.ok())
      outcome.exit_code = Fail(status);
  }
  if (outcome.exit_code == kExitOk && !HasSomething(recording)) {
    PrintNothing(recording, options, /*has_trace=*/false);
    outcome.exit_code = kExitNothing;
  }
  return outcome;
}

}  // namespace

RecordingOutcome FinishRecording(TraceRecording& recording,
                                 const LiveView& view,
                                 const FinishOptions& options) {
  const ScopedFd stop_requests = StopRequests();
  if (options.only_dumps)
    return FinishDumps(recording, options);
  const pid_t program = ProgramOf(recording, options);
  std::vector<NamedTarget> named =
      NameWithProgress(recording, view, options, stop_requests.get(), program);
  for (NamedTarget& process : named) {
    if (process.target->profile().process.pid == options.program)
      process.result.resident_limit_kib =
          static_cast<uint64_t>(options.usage.peak_rss_kib);
  }
  ResultFiles files(recording, options);
  files.Write(named);
  RecordingOutcome outcome = files.outcome();
  if (outcome.exit_code == kExitOk && WasInterrupted(named))
    outcome.exit_code = kExitSignalBase + SIGINT;
  PrintCause(recording);
  PrintAttachProblems(recording);
  PrintSilentAllocators(recording);
  int results = kExitOk;
  if (named.empty() || !HasSamples(*named[0].result.profile)) {
    const bool may_be_empty =
        options.directory == nullptr;  // others ask for other data, too
    if (!options.quiet || !may_be_empty)
      PrintNothing(recording, options, outcome.has_whole_trace);
    results = may_be_empty ? kExitOk : kExitNothing;
    if (options.with_report)
      (void)MakeReportBeside(options.directory->Place("raw-trace"),
                             outcome.has_whole_trace, options.quiet);
  } else if (options.directory != nullptr) {
    results = LeaveResults({.trace_path = options.trace_path,
                            .file = &recording.trace().file(),
                            .directory = options.directory,
                            .top = options.top,
                            .with_summary = !options.quiet,
                            .with_report = options.with_report,
                            .is_whole = outcome.has_whole_trace,
                            .status_line = options.status_line});
  }
  if (outcome.exit_code == kExitOk)
    outcome.exit_code = results;
  return outcome;
}

}  // namespace heapprofd
