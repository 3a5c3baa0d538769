#include "cli/record/recording_service.h"

#include <fcntl.h>
#include <sys/prctl.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/print.h"
#include "cli/exit_code.h"
#include "cli/record/live_view.h"
#include "cli/record/signals.h"
#include "cli/results/finish.h"
#include "service/desk_door.h"
#include "service/own_door.h"
#include "service/service.h"

namespace heapprofd {
namespace {

constexpr uint64_t kFinishNs = 20'000'000'000;  // when we are told to end

class RecordingService {
 public:
  RecordingService(std::unique_ptr<Door> door, std::string place)
      : service_(std::move(door), std::move(place), MakeHooks()) {}

  Service& service() { return service_; }

  bool is_told_to_stop() const { return is_told_to_stop_ || service_.is_told_to_leave(); }

  // `takes_dumps`: SIGUSR1 is for us.
  void Turn(int max_wait_ms, bool takes_dumps) {
    service_.Poll(max_wait_ms, signals_.fd());
    while (const std::optional<signalfd_siginfo> info = signals_.Next()) {
      const int signal = static_cast<int>(info->ssi_signo);
      if (signal == SIGUSR1 && takes_dumps)
        service_.Dump("");
      is_told_to_stop_ |= signal != SIGUSR1 && signal != SIGCHLD;
    }
  }

  int End() {
    service_.StopAll();
    service_.AwaitFinishers(MonotonicNs() + kFinishNs);
    return kExitOk;
  }

 private:
  ServiceHooks MakeHooks() {
    return {.finish =
                [this](TraceRecording& recording, const FinishRequest& request) {
                  return Finish(recording, request);
                },
            .observe =
                [this](TraceRecording& recording) {
                  status_.clear();
                  ViewOf(recording).Update(recording.targets());
                  return status_;
                },
            .forget = [this](TraceRecording& recording) { views_.erase(&recording); }};
  }

  RecordingOutcome Finish(TraceRecording& recording, const FinishRequest& request) {
    const LiveView& view = ViewOf(recording);
    for (const std::string& entry : request.environment)
      putenv(const_cast<char*>(entry.c_str()));  // both live until the end
    Result<SymbolizeOptions> symbols = SymbolizeOptions::FromEnvironment();
    if (!symbols.ok())
      Fail(symbols.status());
    std::optional<OutputDirectory> directory;
    if (request.directory.valid())
      directory.emplace(ScopedFd(fcntl(request.directory.get(), F_DUPFD_CLOEXEC, 0)),
                        request.directory_path);
    return FinishRecording(
        recording, view,
        {.directory = directory ? &*directory : nullptr,
         .trace_path = request.trace_path,
         .top = request.top,
         .quiet = request.quiet,
         .only_dumps = request.only_dumps,
         .symbols = symbols.ok() ? std::move(symbols).value() : SymbolizeOptions()});
  }

  LiveView& ViewOf(const TraceRecording& recording) {
    const auto keep = [this](const std::string& text) { status_ = text; };
    return views_.try_emplace(&recording, keep).first->second;
  }

  SteeringSignals signals_;
  std::map<const TraceRecording*, LiveView> views_;
  std::string status_;  // of the recording that was looked at last, when it is due
  Service service_;
  bool is_told_to_stop_ = false;
};

}  // namespace

int RunOwnService(std::unique_ptr<RuntimeDirectory> directory,
                  ScopedFd listener,
                  bool exit_when_idle) {
  Result<std::unique_ptr<Door>> door =
      OwnDoor::Open(directory.get(), std::move(listener));
  if (!door.ok()) {
    Print(stderr, "heapprofd: %s\n", door.status().message().c_str());
    return kExitFailure;
  }
  RecordingService run(std::move(door).value(), directory->path());
  const IdleExit idle_exit(exit_when_idle);
  while (!run.is_told_to_stop() &&
         !idle_exit.IsTime(run.service().started(), run.service().is_idle()))
    run.Turn(idle_exit.max_wait_ms(), /*takes_dumps=*/true);
  return run.End();
}

int RunEngine(Link link, const std::string& place) {
  prctl(PR_SET_NAME, "heapprofd-user");  // killall heapprofd is for the front desk
  auto door = std::make_unique<DeskDoor>(std::move(link));
  DeskDoor& desk = *door;
  RecordingService run(std::move(door), place);
  while (!run.is_told_to_stop() && !desk.may_leave()) {
    run.Turn(-1, /*takes_dumps=*/false);
    if (run.service().is_idle())
      desk.SayIdle();
  }
  return run.End();
}

}  // namespace heapprofd
