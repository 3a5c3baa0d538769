#include "cli/finish.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>

#include "base/print.h"
#include "cli/heap_notes.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "cli/unrecorded_text.h"
#include "export/pprof.h"
#include "jit/jit_frames.h"
#include "trace/trace_writer.h"

namespace heapprofd {
namespace {

bool TerminalShowsUnicode() {
  setlocale(LC_CTYPE, "");
  const char* locale = setlocale(LC_CTYPE, nullptr);
  return locale != nullptr &&
         (strstr(locale, "UTF-8") != nullptr || strstr(locale, "utf8") != nullptr);
}

double SizeOf(const TargetProfile& profile) {
  double size = 0;
  for (const HeapDump& dump : profile.heaps)
    size += dump.peak_total.bytes;
  return size;
}

bool HasSamples(const TargetProfile& profile) {
  return std::any_of(profile.heaps.begin(), profile.heaps.end(),
                     [](const HeapDump& dump) { return !dump.callsites.empty(); });
}

// Of its own, or its forked children's.
bool HasCalls(const TargetProfile& profile) {
  return profile.forked.alloc_calls > 0 ||
         std::any_of(profile.heaps.begin(), profile.heaps.end(),
                     [](const HeapDump& dump) { return dump.exact_alloc_calls > 0; });
}

struct NamedTarget {
  Target* target;
  ProcessResult result;
};

// Names for code that the target's own compiler has made, and what to do where that has
// left none.
void NameJitFrames(Target& target, SymbolizeReport& symbols) {
  const JitReport jit =
      NameJitFrames(target.profile(), {.root_fd = target.root_fd(),
                                       .pids = {target.own_pid(), target.pid()},
                                       .uid = target.profile().process.uid});
  if (jit.unnamed_frames == 0)
    return;
  ModuleSymbols module;
  module.mappings = jit.mappings;
  module.frames = jit.frames;
  module.unnamed_frames = jit.unnamed_frames;
  module.reason = NoSymbolsReason::kNoSymbols;
  module.error =
      "code made at run time; run node with --perf-basic-prof, java with "
      "-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit";
  symbols.modules.push_back(std::move(module));
}

// Names for all targets, the largest first.
std::vector<NamedTarget> Symbolize(const TraceRecording& recording,
                                   const LiveView& view,
                                   const SymbolizeOptions& options) {
  std::vector<NamedTarget> named;
  std::vector<ProfileToSymbolize> profiles;
  for (Target* target : recording.targets()) {
    ProcessResult result;
    result.profile = &target->profile();
    if (HasSamples(target->profile()))
      profiles.push_back({.profile = &target->profile(),
                          .open_module = [target](const Mapping& mapping) {
                            return target->address_space().OpenFileOf(mapping);
                          }});
    const auto history = view.histories().find(target);
    if (history != view.histories().end())
      result.history = history->second.live_bytes;
    result.resident_kib = target->profile().memory.rss_kib;
    named.push_back({.target = target, .result = std::move(result)});
  }
  std::vector<SymbolizeReport> reports = SymbolizeProfiles(profiles, options);
  for (size_t i = 0; i < profiles.size(); ++i) {
    const auto process =
        std::find_if(named.begin(), named.end(), [&](const NamedTarget& candidate) {
          return candidate.result.profile == profiles[i].profile;
        });
    process->result.symbols = std::move(reports[i]);
  }
  for (NamedTarget& process : named) {
    if (HasSamples(process.target->profile()))
      NameJitFrames(*process.target, process.result.symbols);
  }
  std::stable_sort(named.begin(), named.end(),
                   [](const NamedTarget& a, const NamedTarget& b) {
                     return SizeOf(*a.result.profile) > SizeOf(*b.result.profile);
                   });
  return named;
}

bool WasInterrupted(const std::vector<NamedTarget>& named) {
  return std::any_of(named.begin(), named.end(), [](const NamedTarget& process) {
    const std::vector<ModuleSymbols>& modules = process.result.symbols.modules;
    return std::any_of(modules.begin(), modules.end(), [](const ModuleSymbols& module) {
      return module.reason == NoSymbolsReason::kCancelled;
    });
  });
}

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

// Writes pprof files with running numbers.
class PprofFiles {
 public:
  PprofFiles(std::string directory, const RecordingConfig& config)
      : directory_(std::move(directory)) {
    options_.with_maximum =
        std::any_of(config.sessions.begin(), config.sessions.end(),
                    [](const SessionConfig& session) { return session.dumps.at_max; });
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

const HeapSelection& HeapsOf(const TraceRecording& recording) {
  return recording.config().sessions[0].heaps;
}

std::vector<std::string> ProgramWarnings(const TraceRecording& recording) {
  std::vector<std::string> warnings;
  for (const std::unique_ptr<Session>& session : recording.sessions()) {
    for (const std::string& warning : UnrecordedWarnings(session->Unrecorded()))
      warnings.push_back(warning);
  }
  return warnings;
}

// Why nothing was recorded, and what to do: one line.
std::string ReasonForNothing(const TraceRecording& recording,
                             const FinishOptions& options) {
  if (!options.obstacle.empty())
    return options.obstacle;
  for (const std::unique_ptr<Session>& session : recording.sessions()) {
    if (!session->rejected().empty() && session->targets().empty())
      return "another session profiles pid " +
             std::to_string(session->rejected()[0]->process.pid) +
             " already; wait for its end, or stop it";
  }
  const std::vector<Target*> targets = recording.targets();
  if (targets.empty() && !ProgramWarnings(recording).empty())
    return ProgramWarnings(recording)[0];
  const bool has_problems = std::ranges::any_of(
      recording.sessions(),
      [](const auto& session) { return !session->attach_problems().empty(); });
  if (targets.empty() && has_problems)
    return "no process of this name could be recorded; the lines above say why";
  if (targets.empty())
    return "no process of this name ran or was started meanwhile; check it with ps";
  for (const Target* target : targets) {
    const std::vector<std::string> notes =
        HeapNotes(target->profile(), HeapsOf(recording));
    if (!notes.empty())
      return notes[0];
    if (!target->profile().hooks_malloc && target->profile().heaps.size() == 1 &&
        target->profile().heaps[0].heap_name == kMallocHeapName)
      return "malloc cannot be seen in this process, which has only "
             "libheapprofd_client, and it has registered no heap; start it under "
             "heap_profile -- PROGRAM, or with LD_PRELOAD";
    if (HasCalls(target->profile()))
      return "none of the allocations was sampled; use a smaller --interval (1 records "
             "everything)";
  }
  if (!targets[0]->profile().from_startup)
    return "the program called no allocation function while it was recorded; record it "
           "for longer, or while it works";
  return "the program called no allocation function that can be seen: it allocates "
         "nothing, or its allocator is linked statically into it";
}

// What went wrong with processes that were attached to.
void PrintAttachProblems(const TraceRecording& recording) {
  for (const std::unique_ptr<Session>& session : recording.sessions()) {
    for (const std::string& problem : session->attach_problems())
      Print(stderr, "heap_profile: %s\n", problem.c_str());
  }
}

// What ended the recording before the user or the program did.
void PrintCause(const TraceRecording& recording) {
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

}  // namespace

int Fail(const Status& status) {
  Print(stderr, "heap_profile: %s\n", status.message().c_str());
  return status.code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

int FinishRecording(TraceRecording& recording,
                    const LiveView& view,
                    const FinishOptions& options) {
  const ScopedFd stop_requests = StopRequests();
  SymbolizeOptions symbols = options.symbols;
  symbols.cancel_fd = stop_requests.get();
  const std::vector<NamedTarget> named = Symbolize(recording, view, symbols);
  int failure = WasInterrupted(named) ? kExitSignalBase + SIGINT : kExitOk;
  if (const Status status = recording.WriteRest(); !status.ok())
    failure = Fail(status);
  std::vector<std::string> first_paths;
  if (!options.directory.empty()) {
    Result<std::vector<std::string>> paths =
        WritePprofs(options.directory, recording, named);
    if (paths.ok())
      first_paths = std::move(paths).value();
    else
      failure = Fail(paths.status());
  }
  if (!options.directory.empty() && !options.symbols.binary_path.empty()) {
    const Status status = WriteSymbols(options.directory, recording);
    if (!status.ok())
      failure = Fail(status);
  }
  PrintCause(recording);
  PrintAttachProblems(recording);
  if (options.quiet)
    return failure;
  std::vector<ProcessResult> results;
  results.reserve(named.size());
  for (const NamedTarget& process : named)
    results.push_back(process.result);
  if (results.empty() || !HasSamples(*results[0].profile)) {
    Print(stderr, "heap_profile: nothing recorded: %s\n",
          ReasonForNothing(recording, options).c_str());
    if (!results.empty()) {
      for (const std::string& warning : ProgramWarnings(recording))
        Print(stderr, "  ! %s\n", warning.c_str());
    }
    if (failure == kExitOk)
      Print(stderr, "  trace  %s\n", options.trace_path.c_str());
    return failure;
  }
  const SummaryOptions summary{.heaps = HeapsOf(recording),
                               .top = options.top,
                               .seconds = options.seconds,
                               .use_unicode = TerminalShowsUnicode(),
                               .warnings = ProgramWarnings(recording),
                               .trace_path = options.trace_path,
                               .pprof_paths = first_paths,
                               .output_directory = options.directory};
  Print(stderr, "\n%s", FormatSummary(results, summary).c_str());
  return failure;
}

}  // namespace heapprofd
