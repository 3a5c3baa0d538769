#include "cli/record.h"

#include <fcntl.h>
#include <locale.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/format.h"
#include "cli/heap_notes.h"
#include "cli/launch.h"
#include "cli/output_directory.h"
#include "cli/preload_path.h"
#include "cli/recording.h"
#include "cli/stats_json.h"
#include "cli/summary.h"
#include "cli/unrecorded_text.h"
#include "engine/obstacle.h"
#include "engine/session.h"
#include "export/pprof.h"
#include "jit/jit_frames.h"
#include "symbolize/symbolize_profile.h"
#include "trace/trace_writer.h"

namespace heapprofd {
namespace {

int Fail(const Status& status) {
  fprintf(stderr, "heap_profile: %s\n", status.message().c_str());
  return status.code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

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
std::vector<ProcessResult> Symbolize(Session& session,
                                     const Recording& recording,
                                     const SymbolizeOptions& options) {
  std::vector<ProcessResult> results;
  std::vector<ProfileToSymbolize> profiles;
  for (const std::unique_ptr<Target>& target : session.targets()) {
    ProcessResult result;
    result.profile = &target->profile();
    if (HasSamples(target->profile()))
      profiles.push_back({.profile = &target->profile(),
                          .open_module = [&target](const Mapping& mapping) {
                            return ScopedFd(fcntl(target->address_space().FileOf(mapping),
                                                  F_DUPFD_CLOEXEC, 0));
                          }});
    const auto history = recording.histories().find(target.get());
    if (history != recording.histories().end()) {
      result.history = history->second.live_bytes;
      result.resident_kib = history->second.resident_kib;
    }
    results.push_back(std::move(result));
  }
  std::vector<SymbolizeReport> reports = SymbolizeProfiles(profiles, options);
  for (size_t i = 0; i < profiles.size(); ++i) {
    const auto result =
        std::ranges::find(results, profiles[i].profile, &ProcessResult::profile);
    result->symbols = std::move(reports[i]);
  }
  for (const std::unique_ptr<Target>& target : session.targets()) {
    const auto result = std::ranges::find(results, &std::as_const(*target).profile(),
                                          &ProcessResult::profile);
    if (HasSamples(target->profile()))
      NameJitFrames(*target, result->symbols);
  }
  std::stable_sort(results.begin(), results.end(),
                   [](const ProcessResult& a, const ProcessResult& b) {
                     return SizeOf(*a.profile) > SizeOf(*b.profile);
                   });
  return results;
}

Status WriteTrace(const std::string& path, const Session& session) {
  HPD_TRY_ASSIGN(TraceFile file, TraceFile::Create(path));
  TraceWriter writer(std::move(file));
  HPD_TRY(writer.WriteHeader(""));
  std::vector<ProcessDescription> processes;
  for (const std::unique_ptr<Target>& target : session.targets())
    processes.push_back(target->profile().process);
  HPD_TRY(writer.WriteProcessTree(processes));
  for (size_t i = 0; i < session.targets().size(); ++i) {
    const TargetProfile& profile = session.targets()[i]->profile();
    const DumpFlags flags{.disconnected = profile.end != TargetEnd::kRunning,
                          .buffer_overran = profile.quality.lost_records > 0,
                          .buffer_corrupted = profile.quality.corrupt_records > 0};
    for (const std::vector<HeapDump>& heaps : profile.requested_dumps)
      HPD_TRY(writer.WriteHeaps(profile, heaps, i, DumpFlags{}));
    HPD_TRY(writer.WriteDump(profile, i, flags));
    HPD_TRY(writer.WriteMarks(profile));
  }
  for (const std::unique_ptr<Target>& target : session.targets())
    HPD_TRY(writer.WriteModuleSymbols(target->profile()));
  return writer.Finish();
}

// What raw-trace has of symbols, in a file of its own: to be appended to other recordings
// of the same programs.
Status WriteSymbols(const std::string& path, const Session& session) {
  HPD_TRY_ASSIGN(TraceFile file, TraceFile::Create(path));
  TraceWriter writer(std::move(file));
  for (const std::unique_ptr<Target>& target : session.targets())
    HPD_TRY(writer.WriteModuleSymbols(target->profile()));
  return writer.Finish();
}

std::string JoinCommand(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& argument : command)
    text += (text.empty() ? "" : " ") + argument;
  return text;
}

uint64_t WallClockNs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(now.tv_nsec);
}

// One file per process and heap that has samples, in the order of `results`; the paths of
// the first process come back.
Result<std::vector<std::string>> WritePprofs(const std::string& directory,
                                             const std::vector<ProcessResult>& results) {
  std::vector<std::string> first_paths;
  int number = 0;
  for (const ProcessResult& result : results) {
    for (const HeapDump& dump : result.profile->heaps) {
      if (dump.callsites.empty())
        continue;
      const std::string path = directory + "/heap_dump." + std::to_string(++number) +
                               "." + std::to_string(result.profile->process.pid) + "." +
                               dump.heap_name + ".pb.gz";
      const PprofOptions options{
          .time_unix_ns = WallClockNs(),
          .comments = {
              "command: " + JoinCommand(result.profile->process.cmdline),
              "sampling interval: " + std::to_string(dump.sampling_interval) + " bytes",
              "counts and bytes are unbiased estimates from samples"}};
      HPD_TRY(WriteGzipFile(path, EncodePprof(*result.profile, dump, options)));
      if (&result == &results[0])
        first_paths.push_back(path);
    }
  }
  return first_paths;
}

// Why nothing was recorded, and what to do: one line.
std::string ReasonForNothing(const Options& options, const Session& session) {
  if (std::string obstacle = DescribeObstacle(FindObstacle(options.command[0], ""));
      !obstacle.empty())
    return obstacle;
  if (session.targets().empty())
    return "the program never loaded the profiling library: it clears its environment or "
           "uses a loader that "
           "ignores LD_PRELOAD; check with LD_DEBUG=libs";
  for (const std::unique_ptr<Target>& target : session.targets()) {
    const std::vector<std::string> notes =
        HeapNotes(target->profile(), options.session.heaps);
    if (!notes.empty())
      return notes[0];
    if (!target->profile().heaps.empty() &&
        target->profile().heaps[0].exact_alloc_calls > 0)
      return "all allocations together were smaller than one sample; use a smaller "
             "--interval (1 records "
             "everything)";
  }
  return "the program called no allocation function that can be seen: it allocates "
         "nothing, or its allocator is "
         "linked statically into it";
}

int Finish(const Options& options,
           const std::string& directory,
           Session& session,
           const Recording& recording,
           const std::vector<ProcessResult>& results) {
  const std::string trace_path = directory + "/raw-trace";
  int failure = kExitOk;
  if (const Status status = WriteTrace(trace_path, session); !status.ok())
    failure = Fail(status);
  Result<std::vector<std::string>> paths = WritePprofs(directory, results);
  if (!paths.ok())
    failure = Fail(paths.status());
  if (const Status status = WriteStatsJson(session, recording); !status.ok())
    failure = Fail(status);
  if (options.quiet)
    return failure;
  if (results.empty() || !HasSamples(*results[0].profile)) {
    fprintf(stderr, "heap_profile: nothing recorded: %s\n",
            ReasonForNothing(options, session).c_str());
    if (!session.targets().empty()) {
      for (const std::string& warning : UnrecordedWarnings(session.Unrecorded()))
        fprintf(stderr, "  ! %s\n", warning.c_str());
    }
    if (failure == kExitOk)
      fprintf(stderr, "  trace  %s\n", trace_path.c_str());
    return failure;
  }
  const SummaryOptions summary{
      .heaps = options.session.heaps,
      .top = options.top,
      .seconds = recording.seconds(),
      .use_unicode = TerminalShowsUnicode(),
      .warnings = UnrecordedWarnings(session.Unrecorded()),
      .trace_path = trace_path,
      .pprof_paths = paths.ok() ? paths.value() : std::vector<std::string>(),
      .output_directory = directory};
  fprintf(stderr, "\n%s", FormatSummary(results, summary).c_str());
  return failure;
}

}  // namespace

int RunRecord(const Options& options) {
  const Result<std::string> library = FindPreloadLibrary();
  if (!library.ok())
    return Fail(library.status());
  Result<PreloadPath> preload = PreloadPath::For(library.value());
  if (!preload.ok())
    return Fail(preload.status());
  Result<SymbolizeOptions> symbols = SymbolizeOptions::FromEnvironment();
  if (!symbols.ok())
    return Fail(symbols.status());
  Result<std::string> directory = CreateOutputDirectory(options.output_directory);
  if (!directory.ok())
    return Fail(directory.status());
  Result<std::unique_ptr<Session>> session = Session::Create(options.session);
  if (!session.ok())
    return Fail(session.status());
  Recording recording(session.value().get(),
                      !options.quiet && isatty(STDERR_FILENO) != 0);
  const Launched launched =
      Launch(options.command, preload.value().text(), recording.original_mask(),
             [&](pid_t pid) { return session.value()->EnvironmentFor(pid); });
  if (launched.pid < 0) {
    fprintf(stderr, "heap_profile: %s\n", launched.error.message.c_str());
    rmdir(directory.value().c_str());
    return launched.error.exit_code;
  }
  session.value()->ExpectProgram(launched.pid, options.command[0]);
  const int exit_code = recording.Run(launched.pid);
  if (session.value()->live_targets() > 0)
    preload.value().Keep();
  session.value()->Stop();
  const std::vector<ProcessResult> results =
      Symbolize(*session.value(), recording, symbols.value());
  int failure = Finish(options, directory.value(), *session.value(), recording, results);
  if (!symbols.value().binary_path.empty()) {
    const Status status = WriteSymbols(directory.value() + "/symbols", *session.value());
    if (!status.ok())
      failure = Fail(status);
  }
  return exit_code != 0 ? exit_code : failure;
}

}  // namespace heapprofd
