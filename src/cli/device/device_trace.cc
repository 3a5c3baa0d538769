#include "cli/device/device_trace.h"

#include <poll.h>
#include <unistd.h>

#include <utility>

#include "base/clock.h"
#include "base/print.h"
#include "base/text.h"

namespace heapprofd {
namespace {

constexpr int kPollMs = 1000;
constexpr uint64_t kStopPatienceNs = 60'000'000'000;
constexpr int kFirstVersionThatOwnsTraces = 30;  // of the SDK: R, traces may be deleted
constexpr char kTraces[] = "/data/misc/perfetto-traces/";

}  // namespace

DeviceTrace::DeviceTrace(std::string greeting, std::string dump_command)
    : greeting_(std::move(greeting)),
      dump_command_(std::move(dump_command)),
      adb_(signals_.original_mask(),
           {.fd = signals_.fd(), .is_over = [this] { return HasGivenUp(); }}) {}

Status DeviceTrace::Reach() {
  HPD_TRY_ASSIGN(sdk_, adb_.SdkVersion());
  return {};
}

Status DeviceTrace::Start(const std::string& config, const std::string& name) {
  const std::string path = kTraces + name;
  HPD_TRY_ASSIGN(pid_, adb_.Output({"exec-out", "CFG=" + ShellQuoted(config) +
                                                    "; echo \"${CFG}\" | perfetto --txt "
                                                    "-c - -o " +
                                                    path + " -d"}));
  if (!IsNumber(pid_))
    return Status(StatusCode::kUnavailable,
                  "cannot start perfetto on the device: " + pid_.substr(0, 500));
  path_ = path;
  is_recording_ = true;
  if (!greeting_.empty())
    PrintLines(stderr, greeting_ + "\n");
  return {};
}

Status DeviceTrace::AwaitEnd() {
  while (true) {
    Pause();
    if (HasGivenUp())
      return Status(StatusCode::kTryAgain, "");
    HPD_TRY(PassOn());
    HPD_TRY_ASSIGN(const std::string state,
                   adb_.Shell("[ -d /proc/" + pid_ + " ] && echo running || echo gone"));
    if (state == "gone")
      break;
  }
  is_recording_ = false;
  stop_requests_ = 0;  // the next one is for what follows
  return {};
}

Status DeviceTrace::Pull(const std::string& path) {
  HPD_TRY_ASSIGN(const CommandResult pulled, adb_.Run({"pull", path_, path}));
  if (pulled.exit_code != 0 || access(path.c_str(), R_OK) != 0)
    return Status(StatusCode::kUnavailable, "cannot pull the trace from the device: " +
                                                pulled.output.substr(0, 500));
  return {};
}

bool DeviceTrace::CanRemove() const {
  return sdk_ >= kFirstVersionThatOwnsTraces;
}

void DeviceTrace::RemoveThere() {
  if (!CanRemove())
    return;
  const Result<CommandResult> removed = adb_.Run({"shell", "rm -f " + path_});
  if (removed.ok() && removed.value().exit_code == 0)
    return;
  Print(stderr,
        "note: the trace is fetched and may remain on the device as well; adb shell rm "
        "%s removes it\n",
        path_.c_str());
  ForgetStops();
}

Status DeviceTrace::Explained(const Status& status) const {
  if (status.code() != StatusCode::kTryAgain)
    return status;
  if (path_.empty())
    return Status(StatusCode::kUnavailable, "cannot record: interrupted");
  if (!is_recording_)
    return Status(
        StatusCode::kUnavailable,
        "cannot fetch the trace: interrupted; adb pull " + path_ + " does it by hand");
  return Status(StatusCode::kUnavailable,
                "cannot stop the recording on the device: adb did not pass it on; it "
                "ends with its duration, and adb pull " +
                    path_ + " fetches it then");
}

// A second request to stop is for us: the device does not hear the first one.
bool DeviceTrace::HasGivenUp() {
  HearSignals();
  return stop_requests_ > (is_recording_ ? 1 : 0) ||
         (stop_requests_ > 0 && MonotonicNs() > stopped_ns_ + kStopPatienceNs);
}

// SIGCHLD tells of each adb and says nothing.
void DeviceTrace::HearSignals() {
  while (const std::optional<signalfd_siginfo> info = signals_.Next()) {
    if (info->ssi_signo == SIGUSR1)
      dump_requests_ += dump_command_.empty() ? 0 : 1;
    else if (info->ssi_signo != SIGCHLD && stop_requests_++ == 0)
      stopped_ns_ = MonotonicNs();
  }
}

// Until somebody wants something, at most kPollMs.
void DeviceTrace::Pause() {
  const uint64_t end = MonotonicNs() + uint64_t{kPollMs} * 1'000'000;
  for (uint64_t now = MonotonicNs(); now < end; now = MonotonicNs()) {
    pollfd readable{.fd = signals_.fd(), .events = POLLIN, .revents = 0};
    poll(&readable, 1, static_cast<int>((end - now) / 1'000'000) + 1);
    HearSignals();
    if (dump_requests_ > 0 || (stop_requests_ > 0 && !is_told_to_stop_))
      return;
  }
}

// Adb may fail: then the device is told again.
Status DeviceTrace::PassOn() {
  if (dump_requests_ > 0) {
    dump_requests_ = 0;
    HPD_TRY(adb_.Tell(dump_command_));
  }
  if (stop_requests_ == 0 || is_told_to_stop_)
    return {};
  if (!said_waiting_ && !greeting_.empty())
    Print(stderr, "Waiting for profiler shutdown...\n");
  said_waiting_ = true;
  HPD_TRY_ASSIGN(const CommandResult result, adb_.Run({"shell", "kill -INT " + pid_}));
  is_told_to_stop_ = result.exit_code == 0;
  return {};
}

}  // namespace heapprofd
