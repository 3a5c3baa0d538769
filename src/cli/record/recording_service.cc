#include "cli/record/recording_service.h"

#include <fcntl.h>

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
#include "service/door.h"
#include "service/finisher_environment.h"
#include "service/service.h"

namespace heapprofd {
namespace {

constexpr uint64_t kFinishNs = 20'000'000'000;  // when we are told to end
constexpr uint64_t kFirstNs = 10'000'000'000;   // for the first command to come
constexpr int kLookIfIdleMs = 100;

class RecordingService {
 public:
  RecordingService(std::unique_ptr<Door> door, std::string place)
      : service_(std::move(door), std::move(place), MakeHooks()) {}

  Service& service() { return service_; }

  bool is_told_to_stop() const { return is_told_to_stop_; }

  void Turn(int max_wait_ms) {
    service_.Poll(max_wait_ms, signals_.fd());
    while (const std::optional<signalfd_siginfo> info = signals_.Next()) {
      const int signal = static_cast<int>(info->ssi_signo);
      if (signal == SIGUSR1)
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
    TakeFinisherEnvironment(request.environment);
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

int RunService(std::unique_ptr<RuntimeDirectory> directory,
               ScopedFd listener,
               bool exit_when_idle) {
  Result<std::unique_ptr<Door>> door = Door::Open(directory.get(), std::move(listener));
  if (!door.ok()) {
    Print(stderr, "heapprofd: %s\n", door.status().message().c_str());
    return kExitFailure;
  }
  RecordingService run(std::move(door).value(), directory->path());
  const uint64_t patience_end_ns = MonotonicNs() + kFirstNs;
  const auto is_over = [&run, patience_end_ns] {
    return run.service().is_idle() &&
           (run.service().has_served() || MonotonicNs() > patience_end_ns);
  };
  while (!run.is_told_to_stop() && !(exit_when_idle && is_over()))
    run.Turn(exit_when_idle ? kLookIfIdleMs : -1);
  return run.End();
}

}  // namespace heapprofd
