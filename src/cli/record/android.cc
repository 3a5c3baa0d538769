#include "cli/record/android.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/record/device_files.h"
#include "cli/record/output_directory.h"
#include "cli/record/signals.h"
#include "cli/report_command.h"
#include "cli/run_command.h"

namespace heapprofd {
namespace {

constexpr int kPollMs = 1000;
constexpr uint64_t kStopPatienceNs = 60'000'000'000;
constexpr int kFirstVersionThatOwnsTraces = 30;  // of the SDK: R, traces may be deleted
constexpr char kDevicePath[] = "/data/misc/perfetto-traces/profile-";

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

class AndroidRun {
 public:
  explicit AndroidRun(const Options& options) : options_(options) {}

  // Leaves raw-trace in `directory`.
  Status Record(const std::string& directory) {
    HPD_TRY_ASSIGN(const std::string sdk, Shell("getprop ro.build.version.sdk"));
    if (!IsNumber(sdk))
      return Status(StatusCode::kUnavailable,
                    "cannot reach a device: adb answered \"" + sdk.substr(0, 200) +
                        "\"; connect one and check adb devices");
    sdk_ = atoi(sdk.c_str());  // NOLINT(cert-err34-c): checked above
    HPD_TRY(DisableSelinux());
    Status status = RecordAndPull(directory);
    HPD_TRY(RestoreSelinux());
    return status;
  }

 private:
  // A second request to stop is for us: the device does not hear the first one.
  bool HasGivenUp() {
    HearSignals();
    return stop_requests_ > (is_recording_ ? 1 : 0) ||
           (stop_requests_ > 0 && MonotonicNs() > stopped_ns_ + kStopPatienceNs);
  }

  Status GaveUp() const {
    if (trace_path_.empty())
      return Status(StatusCode::kUnavailable, "cannot record: interrupted");
    if (!is_recording_)
      return Status(StatusCode::kUnavailable,
                    "cannot fetch the trace: interrupted; adb pull " + trace_path_ +
                        " does it by hand");
    return Status(StatusCode::kUnavailable,
                  "cannot stop the recording on the device: adb did not pass it on; it "
                  "ends with its duration, and adb pull " +
                      trace_path_ + " fetches it then");
  }

  Result<CommandResult> Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "adb");
    Result<CommandResult> result =
        RunCommand(arguments, signals_.original_mask(),
                   {.fd = signals_.fd(), .is_over = [this] { return HasGivenUp(); }});
    if (!result.ok() && result.status().code() == StatusCode::kNotFound)
      return Status(StatusCode::kNotFound,
                    result.status().message() + "; apt-get install adb");
    if (!result.ok() && result.status().code() == StatusCode::kTryAgain)
      return GaveUp();
    return result;
  }

  Result<std::string> Adb(std::vector<std::string> arguments) {
    HPD_TRY_ASSIGN(CommandResult result, Run(std::move(arguments)));
    return std::move(result.output);
  }

  Result<std::string> Shell(const std::string& command) {
    return Adb({"shell", command});
  }

  // The answer does not matter.
  Status Tell(const std::string& command) {
    Result<std::string> output = Shell(command);
    return output.ok() ? Status() : std::move(output).status();
  }

  Status DisableSelinux() {
    if (!options_.android.disable_selinux)
      return {};
    HPD_TRY_ASSIGN(selinux_, Shell("getenforce"));
    HPD_TRY(Tell("su root setenforce 0"));
    return {};
  }

  Status RestoreSelinux() {
    if (selinux_ != "Enforcing")
      return {};
    stop_requests_ = 0;
    HPD_TRY(Tell("su root setenforce 1"));
    return {};
  }

  Status RecordAndPull(const std::string& directory) {
    const std::string path = kDevicePath + std::to_string(getpid());
    HPD_TRY_ASSIGN(const std::string pid,
                   Adb({"exec-out", "CFG=" + ShellQuoted(DeviceConfigText(options_)) +
                                        "; echo \"${CFG}\" | perfetto --txt -c - -o " +
                                        path + " -d"}));
    if (!IsNumber(pid))
      return Status(StatusCode::kUnavailable,
                    "cannot start perfetto on the device: " + pid.substr(0, 500));
    trace_path_ = path;
    is_recording_ = true;
    if (!options_.quiet)
      Print(stderr,
            "Profiling active. Press Ctrl+C to terminate.\n"
            "You may disconnect your device.\n");
    HPD_TRY(StartSimpleperf());
    HPD_TRY(WaitForEnd(pid));
    is_recording_ = false;
    stop_requests_ = 0;  // the next one is for what follows
    HPD_TRY_ASSIGN([[maybe_unused]] const std::string pulled,
                   Adb({"pull", path, directory + "/raw-trace"}));
    if (access((directory + "/raw-trace").c_str(), R_OK) != 0)
      return Status(StatusCode::kUnavailable,
                    "cannot pull the trace from the device: " + pulled.substr(0, 500));
    if (sdk_ >= kFirstVersionThatOwnsTraces)
      HPD_TRY(Tell("rm -f " + path));
    return PullSimpleperf(directory);
  }

  Status StartSimpleperf() {
    if (!options_.android.simpleperf)
      return {};
    HPD_TRY(
        Tell("mkdir -p /data/local/tmp/heapprofd_profile && cd "
             "/data/local/tmp/heapprofd_profile && (nohup simpleperf record "
             "-g -p $(pidof heapprofd) 2>&1 &) > /dev/null"));
    return {};
  }

  Status PullSimpleperf(const std::string& directory) {
    if (!options_.android.simpleperf)
      return {};
    HPD_TRY(
        Tell("killall -INT simpleperf; while pidof simpleperf; do sleep 1; "
             "done > /dev/null"));
    HPD_TRY_ASSIGN([[maybe_unused]] const std::string pulled,
                   Adb({"pull", "/data/local/tmp/heapprofd_profile", directory}));
    return {};
  }

  // SIGCHLD tells of each adb and says nothing.
  void HearSignals() {
    while (const std::optional<signalfd_siginfo> info = signals_.Next()) {
      if (info->ssi_signo == SIGUSR1)
        ++dump_requests_;
      else if (info->ssi_signo != SIGCHLD && stop_requests_++ == 0)
        stopped_ns_ = MonotonicNs();
    }
  }

  // Until somebody wants something, at most kPollMs.
  void Pause() {
    const uint64_t end = MonotonicNs() + uint64_t{kPollMs} * 1'000'000;
    for (uint64_t now = MonotonicNs(); now < end; now = MonotonicNs()) {
      pollfd readable{.fd = signals_.fd(), .events = POLLIN, .revents = 0};
      poll(&readable, 1, static_cast<int>((end - now) / 1'000'000) + 1);
      HearSignals();
      if (dump_requests_ > 0 || (stop_requests_ > 0 && !is_told_to_stop_))
        return;
    }
  }

  // Ctrl-C ends the recording on the device, SIGUSR1 adds a dump there. Adb may fail:
  // then the device is told again.
  Status PassOn(const std::string& pid) {
    if (dump_requests_ > 0) {
      dump_requests_ = 0;
      HPD_TRY(Tell("killall -USR1 heapprofd"));
    }
    if (stop_requests_ == 0 || is_told_to_stop_)
      return {};
    if (!said_waiting_ && !options_.quiet)
      Print(stderr, "Waiting for profiler shutdown...\n");
    said_waiting_ = true;
    HPD_TRY_ASSIGN(const CommandResult result, Run({"shell", "kill -INT " + pid}));
    is_told_to_stop_ = result.exit_code == 0;
    return {};
  }

  // Until perfetto is gone. A device that does not answer may be unplugged: the recording
  // goes on there.
  Status WaitForEnd(const std::string& pid) {
    while (true) {
      Pause();
      if (HasGivenUp())
        return GaveUp();
      HPD_TRY(PassOn(pid));
      HPD_TRY_ASSIGN(const std::string state,
                     Shell("[ -d /proc/" + pid + " ] && echo running || echo gone"));
      if (state == "gone")
        return {};
    }
  }

  const Options& options_;
  SteeringSignals signals_;
  int sdk_ = 0;
  std::string selinux_;
  std::string trace_path_;  // on the device
  bool is_recording_ = false;
  bool is_told_to_stop_ = false;
  bool said_waiting_ = false;
  int dump_requests_ = 0;
  int stop_requests_ = 0;
  uint64_t stopped_ns_ = 0;  // when the first of them came
};

}  // namespace

std::string DeviceConfigText(const Options& options) {
  std::string text = PrintTraceConfig(ConfigOf(options));
  if (options.android.package_versions)
    text += "data_sources {\n  config {\n    name: \"android.packages_list\"\n  }\n}\n";
  return text;
}

int RunOnAndroid(const Options& options) {
  umask(077);  // adb's files are for their owner, too
  Result<std::string> directory = CreateOutputDirectory(options.output_directory);
  if (!directory.ok())
    return Fail(directory.status());
  const Status status = AndroidRun(options).Record(directory.value());
  if (!status.ok()) {
    rmdir(directory.value().c_str());
    return Fail(status);
  }
  const int exit_code = ConvertDeviceTrace({.directory = directory.value(),
                                            .converter = options.converter,
                                            .annotate = options.android.annotate,
                                            .quiet = options.quiet});
  if (options.with_report)
    RecordingReport(directory.value() + "/raw-trace")
        .Finish(exit_code == kExitOk, options.quiet);
  return exit_code;
}

}  // namespace heapprofd
