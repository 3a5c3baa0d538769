#include "cli/android.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/print.h"
#include "cli/device_files.h"
#include "cli/finish.h"
#include "cli/output_directory.h"
#include "cli/run_command.h"
#include "cli/signals.h"

namespace heapprofd {
namespace {

constexpr int kPollMs = 1000;
constexpr int kFirstVersionThatOwnsTraces = 30;  // of the SDK: R, traces may be deleted
constexpr char kDevicePath[] = "/data/misc/perfetto-traces/profile-";

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// A word of a POSIX shell.
std::string ShellQuoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
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
  Result<std::string> Adb(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "adb");
    Result<CommandResult> result = RunCommand(arguments, signals_.original_mask());
    if (!result.ok() && result.status().code() == StatusCode::kNotFound)
      return Status(StatusCode::kNotFound,
                    result.status().message() + "; apt-get install adb");
    if (!result.ok())
      return result.status();
    return result.value().output;
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
    if (!options_.quiet)
      Print(stderr,
            "Profiling active. Press Ctrl+C to terminate.\n"
            "You may disconnect your device.\n");
    HPD_TRY(StartSimpleperf());
    HPD_TRY(WaitForEnd(pid));
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

  // Ctrl-C ends the recording on the device, SIGUSR1 adds a dump there.
  Status PassOn(const signalfd_siginfo& info, const std::string& pid) {
    if (info.ssi_signo == SIGCHLD)
      return {};
    if (info.ssi_signo == SIGUSR1)
      return Tell("killall -USR1 heapprofd");
    if (!was_told_to_stop_ && !options_.quiet)
      Print(stderr, "Waiting for profiler shutdown...\n");
    was_told_to_stop_ = true;
    return Tell("kill -INT " + pid);
  }

  // Until perfetto is gone. A device that does not answer may be unplugged: the recording
  // goes on there.
  Status WaitForEnd(const std::string& pid) {
    while (true) {
      pollfd readable{.fd = signals_.fd(), .events = POLLIN, .revents = 0};
      poll(&readable, 1, kPollMs);
      while (const std::optional<signalfd_siginfo> info = signals_.Next())
        HPD_TRY(PassOn(*info, pid));
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
  bool was_told_to_stop_ = false;
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
  return ConvertDeviceTrace({.directory = directory.value(),
                             .converter = options.converter,
                             .annotate = options.android.annotate,
                             .quiet = options.quiet});
}

}  // namespace heapprofd
