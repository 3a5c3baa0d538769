#include "cli/record.h"

#include <unistd.h>

#include <cstdio>

#include "cli/finish.h"
#include "cli/launch.h"
#include "cli/output_directory.h"
#include "cli/program_run.h"
#include "cli/stats_json.h"

namespace heapprofd {
namespace {

Result<std::unique_ptr<TraceRecording>> CreateRecording(const Options& options,
                                                        const std::string& directory) {
  HPD_TRY_ASSIGN(std::unique_ptr<Session> session, Session::Create(options.session));
  HPD_TRY_ASSIGN(TraceFile trace, TraceFile::Create(directory + "/raw-trace"));
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.push_back(std::move(session));
  auto recording = std::make_unique<TraceRecording>(
      ConfigOf(options), std::move(sessions), std::move(trace), directory);
  HPD_TRY(recording->Begin());
  return recording;
}

// Nothing was recorded and nobody needs the empty directory.
void RemoveOutput(const std::string& directory) {
  unlink((directory + "/raw-trace").c_str());
  rmdir(directory.c_str());
}

// Why the library could not do its work in the program; "" when it did, or nobody knows.
std::string ObstacleIn(const Options& options, const TraceRecording& recording) {
  std::string obstacle = ObstacleFor(options.command[0]);
  if (obstacle.empty() && recording.targets().empty())
    obstacle =
        "the program never loaded the profiling library: it clears its environment or "
        "uses a loader that ignores LD_PRELOAD; check with LD_DEBUG=libs";
  return obstacle;
}

}  // namespace

int RunProgram(const Options& options) {
  Result<std::string> preload = FindPreloadLibrary();
  if (!preload.ok())
    return Fail(preload.status());
  Result<std::string> directory = CreateOutputDirectory(options.output_directory);
  if (!directory.ok())
    return Fail(directory.status());
  Result<std::unique_ptr<TraceRecording>> created =
      CreateRecording(options, directory.value());
  if (!created.ok())
    return Fail(created.status());
  TraceRecording& recording = *created.value();
  SteeringSignals signals;
  LiveView view(!options.quiet && isatty(STDERR_FILENO) != 0);
  const uint64_t started_ns = MonotonicNs();
  const Launched launched =
      Launch(options.command, preload.value(), signals.original_mask(),
             [&](pid_t pid) { return recording.sessions()[0]->EnvironmentFor(pid); });
  if (launched.pid < 0) {
    fprintf(stderr, "heap_profile: %s\n", launched.error.message.c_str());
    RemoveOutput(directory.value());
    return launched.error.exit_code;
  }
  ProgramRun run(&recording, &view, &signals);
  const int exit_code = run.Run(launched.pid);
  const double seconds = static_cast<double>(MonotonicNs() - started_ns) / 1e9;
  recording.Stop(StopCause::kRequested);
  if (run.program_is_running())
    fprintf(stderr, "heap_profile: %s (pid %d) runs on unprofiled\n",
            options.command[0].c_str(), launched.pid);
  int failure = FinishRecording(recording, view,
                                {.directory = directory.value(),
                                 .trace_path = directory.value() + "/raw-trace",
                                 .top = options.top,
                                 .quiet = options.quiet,
                                 .seconds = seconds,
                                 .obstacle = ObstacleIn(options, recording)});
  if (const Status status =
          WriteStatsJson(recording.targets(), run.program_cpu_seconds());
      !status.ok())
    failure = Fail(status);
  return exit_code != 0 ? exit_code : failure;
}

}  // namespace heapprofd
