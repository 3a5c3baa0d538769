#include "cli/android.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/finish.h"
#include "cli/output_directory.h"
#include "cli/signals.h"

namespace heapprofd {
namespace {

constexpr int kPollMs = 1000;
constexpr int kFirstVersionThatOwnsTraces = 30;  // of the SDK: R, traces may be deleted
constexpr char kDevicePath[] = "/data/misc/perfetto-traces/profile-";

struct CommandResult {
  int exit_code = -1;
  std::string output;
};

// Runs a program with these arguments and takes its standard output, at most 64 KiB of
// it.
Result<CommandResult> RunCommand(const std::vector<std::string>& command,
                                 const sigset_t& mask) {
  std::array<int, 2> pipe_fds{};
  if (pipe2(pipe_fds.data(), O_CLOEXEC) != 0)
    return Status::FromErrno("cannot create a pipe", errno);
  const ScopedFd read_end(pipe_fds[0]);
  ScopedFd write_end(pipe_fds[1]);
  const pid_t pid = fork();
  if (pid < 0)
    return Status::FromErrno("cannot start adb", errno);
  if (pid == 0) {
    // Ctrl-C at the terminal is for us: adb is told what follows from it.
    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    dup2(write_end.get(), STDOUT_FILENO);
    std::vector<char*> arguments;
    for (const std::string& argument : command)
      arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(kExitNoProgram);
  }
  write_end.reset();
  CommandResult result;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = read(read_end.get(), buffer.data(), buffer.size())) > 0;) {
    if (result.output.size() < (size_t{64} << 10))
      result.output.append(buffer.data(), static_cast<size_t>(got));
  }
  int status = 0;
  waitpid(pid, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : kExitFailure;
  if (result.exit_code == kExitNoProgram)
    return Status(StatusCode::kNotFound,
                  "cannot run adb: it is not installed; apt-get install adb");
  while (!result.output.empty() && strchr("\r\n ", result.output.back()) != nullptr)
    result.output.pop_back();
  return result;
}

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
    const Status status = RecordAndPull(directory);
    HPD_TRY(RestoreSelinux());
    return status;
  }

 private:
  Result<std::string> Adb(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "adb");
    HPD_TRY_ASSIGN(CommandResult result, RunCommand(arguments, signals_.original_mask()));
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
    HPD_TRY(Tell("su root setenforce 1"));
    return {};
  }

  // What the device is asked for: ours, and the packages' versions.
  std::string Config() const {
    std::string text = PrintTraceConfig(ConfigOf(options_));
    if (options_.android.package_versions)
      text += "data_sources {\n  config {\n    name: \"android.packages_list\"\n  }\n}\n";
    return text;
  }

  Status RecordAndPull(const std::string& directory) {
    const std::string path = kDevicePath + std::to_string(getpid());
    HPD_TRY_ASSIGN(const std::string pid,
                   Adb({"exec-out", "CFG=" + ShellQuoted(Config()) +
                                        "; echo \"${CFG}\" | perfetto --txt -c - -o " +
                                        path + " -d"}));
    if (!IsNumber(pid))
      return Status(StatusCode::kUnavailable,
                    "cannot start perfetto on the device: " + pid.substr(0, 500));
    if (!options_.quiet)
      fprintf(stderr,
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

  // Until perfetto is gone. A device that does not answer may be unplugged: the recording
  // goes on there.
  Status WaitForEnd(const std::string& pid) {
    bool was_told_to_stop = false;
    while (true) {
      pollfd readable{.fd = signals_.fd(), .events = POLLIN, .revents = 0};
      poll(&readable, 1, kPollMs);
      while (const std::optional<signalfd_siginfo> info = signals_.Next()) {
        const int signal = static_cast<int>(info->ssi_signo);
        if (signal == SIGCHLD)
          continue;
        if (signal == SIGUSR1) {
          HPD_TRY(Tell("killall -USR1 heapprofd"));
          continue;
        }
        if (!was_told_to_stop && !options_.quiet)
          fprintf(stderr, "Waiting for profiler shutdown...\n");
        was_told_to_stop = true;
        HPD_TRY(Tell("kill -INT " + pid));
      }
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
};

// Converts with the converter that was named, or by ourselves; the trace alone is a
// result, too.
int Convert(const Options& options, const std::string& directory) {
  const std::string trace = directory + "/raw-trace";
  std::vector<std::string> command = {options.converter};
  if (options.converter.empty())
    command = {"/proc/self/exe", "traceconv"};
  command.insert(command.end(),
                 {"profile", "--output-dir", directory + "/profiles", trace});
  sigset_t none;
  sigemptyset(&none);
  const Result<CommandResult> converted = RunCommand(command, none);
  if (!converted.ok() || converted.value().exit_code != 0)
    fprintf(stderr,
            "heap_profile: note: no pprof files could be made of %s; it opens in "
            "ui.perfetto.dev\n",
            trace.c_str());
  if (!options.quiet)
    fprintf(stderr, "Wrote profile to %s\n", trace.c_str());
  return kExitOk;
}

}  // namespace

int RunOnAndroid(const Options& options) {
  Result<std::string> directory = CreateOutputDirectory(options.output_directory);
  if (!directory.ok())
    return Fail(directory.status());
  const Status status = AndroidRun(options).Record(directory.value());
  if (!status.ok()) {
    rmdir(directory.value().c_str());
    return Fail(status);
  }
  return Convert(options, directory.value());
}

}  // namespace heapprofd
