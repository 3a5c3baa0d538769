#include "cli/record/record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/print.h"
#include "cli/exit_code.h"
#include "cli/record/launch.h"
#include "cli/record/output_directory.h"
#include "cli/record/preload_path.h"
#include "cli/record/program_run.h"
#include "cli/record/remote_recording.h"
#include "cli/record/status_line.h"
#include "cli/report_command.h"
#include "cli/results/deobfuscate_profile.h"
#include "cli/results/finish.h"
#include "cli/results/stats_json.h"
#include "cli/results/unrecorded_text.h"
#include "engine/obstacle.h"
#include "service/control_channel.h"

namespace heapprofd {
namespace {

// The only request to a recording with a program of its own: heap_profile mark. It says
// so in one piece; nobody is waited for.
void AnswerMark(TraceRecording& recording, ScopedFd connection) {
  ControlChannel channel(std::move(connection));
  const Result<std::optional<ControlMessage>> message = channel.Receive();
  if (!message.ok() || !message.value() || message.value()->type != ControlType::kMark)
    return;
  recording.Dump(message.value()->payload);
  const Status ignored = channel.Send(ControlType::kMarked, "1");
  static_cast<void>(ignored);  // whoever asked is gone
}

Result<std::unique_ptr<TraceRecording>> CreateRecording(const Options& options,
                                                        const std::string& directory) {
  HPD_TRY_ASSIGN(std::unique_ptr<Session> session, Session::Create(options.session));
  HPD_TRY_ASSIGN(TraceFile trace, TraceFile::Create(directory + "/raw-trace"));
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.push_back(std::move(session));
  auto recording = std::make_unique<TraceRecording>(
      ConfigOf(options), std::move(sessions), std::move(trace), directory);
  recording->sessions()[0]->socket()->set_control_handler(
      [recording = recording.get()](ScopedFd connection) {
        AnswerMark(*recording, std::move(connection));
      });
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
  std::string obstacle = DescribeObstacle(FindObstacle(options.command[0], ""));
  if (!obstacle.empty())
    return obstacle;
  for (const UnrecordedPrograms& group :
       recording.sessions()[0]->programs().Unrecorded()) {
    if (group.reason == UnrecordedReason::kDeclined ||
        group.reason == UnrecordedReason::kLate ||
        group.reason == UnrecordedReason::kNoSpace)
      return UnrecordedWarnings({group})[0];
  }
  const TargetRules& wanted = options.session.targets;
  if (!wanted.names.empty())
    return "";  // the program itself may not have been wanted
  return recording.targets().empty()
             ? "the program never reported: it ended before the profiling library was "
               "loaded, clears its environment, or has a loader that cannot load it "
               "(musl); LD_DEBUG=libs shows what is loaded"
             : "";
}

}  // namespace

int RunOnProcesses(const Options& options) {
  Result<std::string> directory = CreateOutputDirectory(options.output_directory);
  if (!directory.ok())
    return Fail(directory.status());
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(directory.value(), error);
  RemoteRequest request;
  request.config = ConfigOf(options);
  request.directory = absolute;
  request.trace_path = absolute + "/raw-trace";
  request.trace = ScopedFd(
      open(request.trace_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!request.trace.valid())
    return Fail(Status::FromErrno("cannot create " + request.trace_path, errno));
  request.top = options.top;
  request.quiet = options.quiet;
  request.may_start_service = options.may_stand_in;
  const int exit_code = RecordRemotely(request);

  struct stat status {};

  if (exit_code != kExitOk && stat(request.trace_path.c_str(), &status) == 0 &&
      status.st_size == 0)
    RemoveOutput(absolute);  // nothing has begun
  if (options.with_report)
    ReportRecording(request.trace_path, IsComplete(exit_code), options.quiet);
  return exit_code;
}

int RunProgram(const Options& options) {
  const Result<std::string> library = FindPreloadLibrary();
  if (!library.ok())
    return Fail(library.status());
  Result<PreloadPath> preload = PreloadPath::For(library.value());
  if (!preload.ok())
    return Fail(preload.status());
  Result<SymbolizeOptions> symbols = SymbolizeOptions::FromEnvironment();
  if (!symbols.ok())
    return Fail(symbols.status());
  if (const Status status = CheckProguardMaps(); !status.ok())
    return Fail(status);
  Result<std::string> directory = CreateOutputDirectory(options.output_directory);
  if (!directory.ok())
    return Fail(directory.status());
  Result<std::unique_ptr<TraceRecording>> created =
      CreateRecording(options, directory.value());
  if (!created.ok())
    return Fail(created.status());
  TraceRecording& recording = *created.value();
  SteeringSignals signals(SignalSource::kTerminal);
  StatusLine status_line(!options.quiet);
  LiveView view([&status_line](const std::string& text) { status_line.Show(text); });
  const Launched launched =
      Launch(options.command, preload.value().text(), signals.original_mask(),
             [&](pid_t pid) { return recording.sessions()[0]->EnvironmentFor(pid); });
  if (launched.pid < 0) {
    Print(stderr, "heap_profile: %s\n", launched.error.message.c_str());
    RemoveOutput(directory.value());
    return launched.error.exit_code;
  }
  recording.sessions()[0]->newcomers().Expect(launched.pid, options.command[0]);
  ProgramRun run(&recording, &view, &status_line, &signals);
  const int exit_code = run.Run(launched.pid);
  if (run.program_is_running() || recording.live_targets() > 0)
    preload.value().Keep();
  recording.Stop(StopCause::kRequested);
  if (run.program_is_running())
    Print(stderr, "heap_profile: %s (pid %d) runs on unprofiled\n",
          options.command[0].c_str(), launched.pid);
  int failure = FinishRecording(recording, view,
                                {.directory = directory.value(),
                                 .trace_path = directory.value() + "/raw-trace",
                                 .top = options.top,
                                 .quiet = options.quiet,
                                 .seconds = run.seconds(),
                                 .program = launched.pid,
                                 .obstacle = ObstacleIn(options, recording),
                                 .symbols = std::move(symbols).value()});
  const bool is_complete = IsComplete(failure);
  if (const Status status = WriteStatsJson(recording, run.usage()); !status.ok())
    failure = Fail(status);
  if (options.with_report)
    ReportRecording(directory.value() + "/raw-trace", is_complete, options.quiet);
  return exit_code != 0 ? exit_code : failure;
}

}  // namespace heapprofd
