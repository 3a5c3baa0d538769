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
#include "cli/launch.h"
#include "cli/output_directory.h"
#include "cli/recording.h"
#include "cli/stats_json.h"
#include "cli/summary.h"
#include "engine/process_names.h"
#include "engine/session.h"
#include "export/pprof.h"
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

// Names for all targets, the largest first.
std::vector<ProcessResult> Symbolize(Session& session, const Recording& recording) {
  std::vector<ProcessResult> results;
  for (const std::unique_ptr<Target>& target : session.targets()) {
    ProcessResult result;
    result.profile = &target->profile();
    if (HasSamples(target->profile())) {
      result.symbols = SymbolizeProfile(target->profile(), [&](const Mapping& mapping) {
        return ScopedFd(dup(target->address_space().FileOf(mapping)));
      });
    }
    const auto history = recording.histories().find(target.get());
    if (history != recording.histories().end()) {
      result.history = history->second.live_bytes;
      result.resident_kib = history->second.resident_kib;
    }
    results.push_back(std::move(result));
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
    HPD_TRY(writer.WriteDump(profile, i, flags));
  }
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
  if (!options.command.empty()) {
    if (const std::string obstacle = ObstacleFor(options.command[0]); !obstacle.empty())
      return obstacle;
  }
  if (session.targets().empty() && options.command.empty())
    return "no program of this name was started meanwhile";
  if (session.targets().empty())
    return "the program never loaded the profiling library: it clears its environment or "
           "uses a loader that "
           "ignores LD_PRELOAD; check with LD_DEBUG=libs";
  for (const std::unique_ptr<Target>& target : session.targets()) {
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
           double seconds) {
  const std::vector<ProcessResult> results = Symbolize(session, recording);
  const std::string trace_path = directory + "/raw-trace";
  int failure = kExitOk;
  if (const Status status = WriteTrace(trace_path, session); !status.ok())
    failure = Fail(status);
  Result<std::vector<std::string>> paths = WritePprofs(directory, results);
  if (!paths.ok())
    failure = Fail(paths.status());
  WriteStatsJson(session, recording);
  if (options.quiet)
    return failure;
  if (results.empty() || !HasSamples(*results[0].profile)) {
    fprintf(stderr, "heap_profile: nothing recorded: %s\n",
            ReasonForNothing(options, session).c_str());
    if (failure == kExitOk)
      fprintf(stderr, "  trace  %s\n", trace_path.c_str());
    return failure;
  }
  const SummaryOptions summary{
      .top = options.top,
      .seconds = seconds,
      .use_unicode = TerminalShowsUnicode(),
      .trace_path = trace_path,
      .pprof_paths = paths.ok() ? paths.value() : std::vector<std::string>(),
      .output_directory = directory};
  fprintf(stderr, "\n%s", FormatSummary(results, summary).c_str());
  return failure;
}

}  // namespace

int RunRecord(const Options& options) {
  Result<std::string> preload = FindPreloadLibrary();
  if (!preload.ok())
    return Fail(preload.status());
  Result<std::string> directory = CreateOutputDirectory(options.output_directory);
  if (!directory.ok())
    return Fail(directory.status());
  Result<std::unique_ptr<Session>> session = Session::Create(options.session);
  if (!session.ok())
    return Fail(session.status());
  Recording recording(session.value().get(),
                      !options.quiet && isatty(STDERR_FILENO) != 0);
  const uint64_t started_ns = MonotonicNs();
  const Launched launched =
      Launch(options.command, preload.value(), recording.original_mask(),
             [&](pid_t pid) { return session.value()->EnvironmentFor(pid); });
  if (launched.pid < 0) {
    fprintf(stderr, "heap_profile: %s\n", launched.error.message.c_str());
    rmdir(directory.value().c_str());
    return launched.error.exit_code;
  }
  const int exit_code = recording.Run(launched.pid);
  const double seconds = static_cast<double>(MonotonicNs() - started_ns) / 1e9;
  session.value()->Stop();
  const int failure =
      Finish(options, directory.value(), *session.value(), recording, seconds);
  return exit_code != 0 ? exit_code : failure;
}

namespace {

// Those that run now, and those to come where that is possible.
int AttachByName(const Options& options, Session& session) {
  const NameMatcher matcher(options.names);
  int failure = kExitOk;
  const Status watching = session.CatchStarts(
      [matcher](const std::string& file_name) { return matcher.MatchesFile(file_name); });
  const std::vector<pid_t> running = FindProcessesByName(matcher);
  for (const pid_t pid : running) {
    if (const Status status = session.Attach(pid);
        !status.ok() && status.code() != StatusCode::kNotFound)
      failure = Fail(status);
  }
  if (!watching.ok())
    fprintf(stderr, "heap_profile: %s\n", watching.message().c_str());
  if (!watching.ok() && running.empty()) {
    fprintf(stderr,
            "heap_profile: cannot record %s: no running process has this name; check it "
            "with ps\n",
            options.names.front().c_str());
    return kExitFailure;
  }
  return failure;
}

}  // namespace

int RunRecordRunning(const Options& options) {
  Result<std::string> directory = CreateOutputDirectory(options.output_directory);
  if (!directory.ok())
    return Fail(directory.status());
  Result<std::unique_ptr<Session>> session = Session::Create(options.session);
  if (!session.ok())
    return Fail(session.status());
  Recording recording(session.value().get(),
                      !options.quiet && isatty(STDERR_FILENO) != 0);
  const uint64_t started_ns = MonotonicNs();
  int failure = kExitOk;
  for (const pid_t pid : options.pids) {
    if (const Status status = session.value()->Attach(pid); !status.ok())
      failure = Fail(status);
  }
  if (!options.names.empty())
    failure = std::max(failure, AttachByName(options, *session.value()));
  const bool is_waiting = session.value()->is_catching_starts();
  if (session.value()->targets().empty() && !is_waiting) {
    rmdir(directory.value().c_str());
    return failure;
  }
  recording.RunFor(options.duration_ms);
  const double seconds = static_cast<double>(MonotonicNs() - started_ns) / 1e9;
  session.value()->Stop();
  for (const std::string& problem : session.value()->attach_problems())
    fprintf(stderr, "heap_profile: %s\n", problem.c_str());
  const int finish_failure =
      Finish(options, directory.value(), *session.value(), recording, seconds);
  return failure != kExitOk ? failure : finish_failure;
}

}  // namespace heapprofd
