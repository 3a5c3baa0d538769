#include "cli/record/record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/print.h"
#include "cli/exit_code.h"
#include "cli/managed/dumps_meanwhile.h"
#include "cli/managed/managed_heaps.h"
#include "cli/record/launch.h"
#include "cli/record/output_directory.h"
#include "cli/record/preload_path.h"
#include "cli/record/program_run.h"
#include "cli/record/remote_recording.h"
#include "cli/record/status_line.h"
#include "cli/report_command.h"
#include "cli/results/deobfuscate_profile.h"
#include "cli/results/finish.h"
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
                                                        TraceFile trace) {
  HPD_TRY_ASSIGN(std::unique_ptr<Session> session, Session::Create(options.session));
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.push_back(std::move(session));
  auto recording = std::make_unique<TraceRecording>(
      ConfigOf(options), std::move(sessions), std::move(trace));
  recording->sessions()[0]->socket()->set_control_handler(
      [recording = recording.get()](ScopedFd connection) {
        AnswerMark(*recording, std::move(connection));
      });
  HPD_TRY(recording->Begin());
  return recording;
}

// Why the library could not do its work in the program; "" when it did, or nobody knows.
std::string ObstacleIn(const Options& options,
                       const TraceRecording& recording,
                       bool is_interrupted) {
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
  if (recording.targets().empty() && is_interrupted)
    return "it was interrupted before the program had reported; let it run for longer";
  return recording.targets().empty()
             ? "the program never reported: it ended before the profiling library was "
               "loaded, clears its environment, or has a loader that cannot load it "
               "(musl); LD_DEBUG=libs shows what is loaded"
             : "";
}

// nullptr: there are to be none.
std::unique_ptr<DumpsMeanwhile> JavaDumps(const Options& options,
                                          const OutputDirectory& directory) {
  if (options.java_dumps == 0)
    return nullptr;
  return std::make_unique<DumpsMeanwhile>(
      options.session.targets.pids, directory,
      DumpsMeanwhile::Limits{.most = options.java_dumps, .quiet = options.quiet});
}

// The next Ctrl-C ends the dump that is still being taken; other requests do so, too, and
// stay pending, to end what follows.
void EndJavaDumps(DumpsMeanwhile* dumps) {
  if (dumps == nullptr)
    return;
  const SteeringSignals signals;
  PrintLines(stderr, dumps->End(StopRequests().get()));
  TakeInterrupt();
  sigprocmask(SIG_SETMASK, &signals.original_mask(), nullptr);
}

// The service has the recording to itself.
int SayLeft(const Options& options, const RemoteRequest& request, int exit_code) {
  if (options.with_java)
    Print(stderr,
          "heap_profile: the Java heap is left out: the end of the recording is not "
          "waited for\n");
  if (options.with_report)
    PrintNoReport("the service still writes the trace", /*has_whole_trace=*/false,
                  request.trace_path);
  return exit_code;
}

// Of the program, while it still runs.
Result<ManagedHeaps> TakeManagedHeaps(const Options& options,
                                      const ProgramRun& run,
                                      pid_t program) {
  if (options.with_java && !run.program_is_running())
    return Status(StatusCode::kNotFound,
                  "cannot ask process " + std::to_string(program) +
                      " for its Java heap: it has ended; give --duration or end the "
                      "recording by Ctrl-C");
  HPD_TRY_ASSIGN(
      ManagedHeaps heaps,
      ManagedHeaps::Of(options.with_java ? std::vector{program} : std::vector<pid_t>()));
  heaps.Take(options.quiet);
  return heaps;
}

struct JavaHeaps {
  Result<ManagedHeaps>& at_end;
  DumpsMeanwhile* before = nullptr;
};

// The exit code of a recording with its Java heaps, which are something recorded.
int AddManagedHeaps(JavaHeaps heaps,
                    const Options& options,
                    const FilePlace& trace,
                    RecordingOutcome outcome) {
  if (!options.with_java)
    return outcome.exit_code;
  const bool is_asked = heaps.at_end.ok();
  if (!is_asked)
    outcome.exit_code = Fail(heaps.at_end.status());
  if (!outcome.has_whole_trace) {
    Print(stderr,
          "heap_profile: the Java heap is left out: there is no complete trace that it "
          "could be added to\n");
    return outcome.exit_code;
  }
  const bool has_those_before = heaps.before == nullptr || heaps.before->AddTo(trace);
  if (!is_asked)
    return outcome.exit_code;
  if (!heaps.at_end.value().AddTo(trace, options.quiet) || !has_those_before)
    return kExitFailure;
  return outcome.exit_code == kExitNothing ? static_cast<int>(kExitOk)
                                           : outcome.exit_code;
}

// What has ended when results are left.
struct Recorded {
  TraceRecording& recording;
  const LiveView& view;
  Result<ManagedHeaps> heaps;
  DumpsMeanwhile* java_dumps = nullptr;
};

// Whoever has Java heaps gets the report when they are in the trace, too.
int LeaveResults(const Options& options, Recorded recorded, FinishOptions finish) {
  const bool with_report = options.with_report && !finish.only_dumps;
  finish.with_report = with_report && !options.with_java;
  const RecordingOutcome outcome =
      FinishRecording(recorded.recording, recorded.view, finish);
  if (!options.with_java)
    return outcome.exit_code;
  const FilePlace trace = finish.directory->Place("raw-trace");
  const int exit_code =
      AddManagedHeaps({recorded.heaps, recorded.java_dumps}, options, trace, outcome);
  if (!with_report)
    return exit_code;
  const int report = MakeReportBeside(trace, outcome.has_whole_trace, options.quiet);
  return exit_code == kExitOk ? report : exit_code;
}

// What is looked for before anything is begun.
struct Needs {
  PreloadPath preload;
  SymbolizeOptions symbols;
};

Result<Needs> FindNeeds() {
  HPD_TRY_ASSIGN(const std::string library, FindPreloadLibrary());
  HPD_TRY_ASSIGN(PreloadPath preload, PreloadPath::For(library));
  HPD_TRY_ASSIGN(SymbolizeOptions symbols, SymbolizeOptions::FromEnvironment());
  HPD_TRY(CheckProguardMaps());
  return Needs{.preload = std::move(preload), .symbols = std::move(symbols)};
}

struct Outcome {
  bool has_begun = false;  // else the exit code says why the program was not started
  int exit_code = kExitOk;
};

// From the start of the program to what its recording leaves. Of `finish` what is known
// before.
Outcome RecordProgram(const Options& options,
                      TraceRecording& recording,
                      Needs needs,
                      FinishOptions finish) {
  SteeringSignals signals(SignalSource::kTerminal);
  StatusLine status_line(!options.quiet);
  LiveView view([&status_line](const std::string& text) { status_line.Show(text); });
  const Launched launched = Launch(
      options.command, needs.preload.text(), {signals.original_mask(), signals.fd()},
      [&](pid_t pid) { return recording.sessions()[0]->EnvironmentFor(pid); },
      options.with_java);
  if (launched.pid < 0) {
    Print(stderr, "heap_profile: %s\n", launched.error.message.c_str());
    return {.exit_code = launched.error.exit_code};
  }
  recording.sessions()[0]->newcomers().Expect(launched.pid, options.command[0]);
  ProgramRun run(&recording, &view, &status_line, &signals);
  if (options.with_java)
    run.EndAtFirstRequest();
  const std::unique_ptr<DumpsMeanwhile> java_dumps =
      finish.directory == nullptr ? nullptr : JavaDumps(options, *finish.directory);
  run.set_java_dumps(java_dumps.get());
  int exit_code = run.Run(launched.pid);
  const size_t program_itself =
      recording.sessions()[0]->targets().IsProfiling(launched.pid) ? 1 : 0;
  const bool has_others = recording.live_targets() > program_itself;
  recording.Stop(StopCause::kRequested);
  EndJavaDumps(java_dumps.get());
  Result<ManagedHeaps> heaps = TakeManagedHeaps(options, run, launched.pid);
  // It is no sign of impatience with the program's end, but that of what comes after it.
  const int told_to_end = TakeEnd();
  constexpr uint64_t kUrgentNs = 2'000'000'000;
  exit_code =
      run.EndProgram(exit_code, told_to_end != 0 ? kUrgentNs : ProgramRun::kForever);
  if (told_to_end != 0)
    raise(told_to_end);
  if (run.program_is_running() || has_others)
    needs.preload.Keep();
  if (run.program_is_running())
    Print(stderr, "heap_profile: %s (pid %d) runs on unprofiled\n",
          options.command[0].c_str(), launched.pid);
  finish.program = launched.pid;
  finish.usage = run.usage();
  finish.obstacle = ObstacleIn(options, recording, run.is_interrupted());
  finish.symbols = std::move(needs.symbols);
  finish.status_line = &status_line;
  const int failure = LeaveResults(options,
                                   {.recording = recording,
                                    .view = view,
                                    .heaps = std::move(heaps),
                                    .java_dumps = java_dumps.get()},
                                   finish);
  // Its own exit code is what the caller waits for, also when it has allocated nothing.
  const bool has_failed =
      failure != kExitOk && (failure != kExitNothing || finish.only_dumps);
  return {.has_begun = true,
          .exit_code = exit_code == kExitOk && has_failed ? failure : exit_code};
}

}  // namespace

int RunOnProcesses(const Options& options) {
  Result<ManagedHeaps> heaps = ManagedHeaps::Of(
      options.with_java ? options.session.targets.pids : std::vector<pid_t>());
  if (!heaps.ok())
    return Fail(heaps.status());
  Result<OutputDirectory> created = OutputDirectory::Create(options.output_directory);
  if (!created.ok())
    return Fail(created.status());
  std::error_code error;
  RemoteRequest request;
  request.config = ConfigOf(options);
  OutputDirectory& directory = request.directory.emplace(std::move(created).value());
  directory.set_path(std::filesystem::absolute(directory.path(), error));
  const FilePlace trace = directory.Place("raw-trace");
  request.trace_path = trace.path;
  request.trace =
      ScopedFd(open(trace.at.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!request.trace.valid())
    return Fail(Status::FromErrno("cannot create " + request.trace_path, errno));
  request.top = options.top;
  request.quiet = options.quiet;
  request.may_start_service = options.may_stand_in;
  const std::unique_ptr<DumpsMeanwhile> java_dumps = JavaDumps(options, directory);
  request.java_dumps = java_dumps.get();
  const RecordingOutcome outcome = RecordRemotely(request);
  if (!outcome.is_awaited)
    return SayLeft(options, request, outcome.exit_code);

  struct stat status {};

  if (outcome.exit_code != kExitOk && stat(trace.at.c_str(), &status) == 0 &&
      status.st_size == 0)
    directory.Remove();  // nothing has begun
  EndJavaDumps(java_dumps.get());
  if (outcome.has_whole_trace)
    heaps.value().Take(options.quiet);
  const int exit_code =
      AddManagedHeaps({heaps, java_dumps.get()}, options, trace, outcome);
  if (options.with_report)
    MakeReportBeside(trace, outcome.has_whole_trace, options.quiet);
  return exit_code;
}

int RunProgram(const Options& options) {
  Result<Needs> needs = FindNeeds();
  if (!needs.ok())
    return Fail(needs.status());
  const Result<OutputDirectory> directory =
      OutputDirectory::Create(options.output_directory);
  if (!directory.ok())
    return Fail(directory.status());
  const FilePlace place = directory.value().Place("raw-trace");
  Result<TraceFile> trace = TraceFile::Create(place);
  if (!trace.ok())
    return Fail(trace.status());
  Result<std::unique_ptr<TraceRecording>> created =
      CreateRecording(options, std::move(trace).value());
  if (!created.ok()) {
    directory.value().Remove();
    return Fail(created.status());
  }
  const Outcome outcome =
      RecordProgram(options, *created.value(), std::move(needs).value(),
                    {.directory = &directory.value(),
                     .trace_path = place.path,
                     .top = options.top,
                     .quiet = options.quiet});
  if (!outcome.has_begun)
    directory.value().Remove();
  return outcome.exit_code;
}

int DumpProgram(const Options& options, TraceFile trace) {
  Result<Needs> needs = FindNeeds();
  if (!needs.ok())
    return Fail(needs.status());
  Result<std::unique_ptr<TraceRecording>> created =
      CreateRecording(options, std::move(trace));
  if (!created.ok())
    return Fail(created.status());
  return RecordProgram(options, *created.value(), std::move(needs).value(),
                       {.quiet = true, .only_dumps = true})
      .exit_code;
}

}  // namespace heapprofd
