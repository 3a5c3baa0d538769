// heapprofd: entry point of the service.
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/page_size.h"
#include "base/print.h"
#include "base/standard_fds.h"
#include "cli/command_line.h"
#include "cli/completions.h"
#include "cli/flag_values.h"
#include "cli/record/own_limits.h"
#include "cli/record/recording_service.h"
#include "sandbox/sandbox.h"
#include "service/runtime_directory.h"

namespace heapprofd {
namespace {

constexpr int kFirstInheritedFd = 3;  // sd_listen_fds(3)

int Refuse(const Status& status) {
  Print(stderr, "heapprofd: %s\n", status.message().c_str());
  return kExitFailure;
}

struct DaemonOptions {
  std::string directory = OwnServiceDirectory();
  bool exit_when_idle = false;
};

CommandLine DaemonLine();

Status PrintCompletions(const std::string& shell) {
  const Result<std::string> text = Completions(shell, {{Described(DaemonLine())}});
  if (!text.ok())
    return text.status();
  PrintText(text.value());
  Status printed = FlushOutput();
  if (printed.ok())
    exit(kExitOk);
  return printed;
}

std::vector<Flag> DaemonFlags(DaemonOptions& options) {
  const std::string group = "options";
  return {
      {.name = "directory",
       .value_name = "DIRECTORY",
       .help = "Serve here. Default: /run/heapprofd for root, else "
               "$XDG_RUNTIME_DIR/heapprofd.",
       .group = group,
       .apply =
           [&options](const std::string& text) {
             options.directory = text;
             return text.starts_with("/") ? Status()
                                          : Status(StatusCode::kInvalidArgument,
                                                   "cannot use --directory " + text +
                                                       ": it must begin with /");
           }},
      {.name = "exit-when-idle",
       .help = "Leave when the last recording has ended.",
       .group = group,
       .apply = Switch(&options.exit_when_idle)},
      {.name = "generate",
       .value_name = "WHAT",
       .help = "Print the completions for zsh or fish.",
       .group = group,
       .apply = PrintCompletions,
       .is_rare = true},
      {.name = "cleanup-after-crash",
       .help = "Nothing to clean up on Linux: exits at once.",
       .group = group,
       .apply = [](const std::string&) -> Status { exit(kExitOk); }},
  };
}

bool IsListener(int fd) {
  int domain = 0;
  int listens = 0;
  socklen_t size = sizeof(int);
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
         domain == AF_UNIX &&
         getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
}

// The socket that systemd listens on for us; invalid when it does not.
ScopedFd InheritedListener() {
  const char* pid = getenv("LISTEN_PID");
  const char* count = getenv("LISTEN_FDS");
  if (pid == nullptr || count == nullptr || atoi(pid) != getpid() || atoi(count) != 1 ||
      !IsListener(kFirstInheritedFd))
    return ScopedFd();
  // It is for us and not for what we start, and nothing may wait for a client.
  unsetenv("LISTEN_PID");
  unsetenv("LISTEN_FDS");
  fcntl(kFirstInheritedFd, F_SETFD, FD_CLOEXEC);
  fcntl(kFirstInheritedFd, F_SETFL, O_RDWR | O_NONBLOCK);
  return ScopedFd(kFirstInheritedFd);
}

// What root's service needs of root's powers: to end parsers of symbols, which become
// somebody else; to trace, read and write what root may; to watch execs; to be urgent.
constexpr uint64_t kNeededCapabilities =
    CapabilityBit(CAP_SETUID) | CapabilityBit(CAP_SETGID) | CapabilityBit(CAP_KILL) |
    CapabilityBit(CAP_SYS_PTRACE) | CapabilityBit(CAP_DAC_OVERRIDE) |
    CapabilityBit(CAP_DAC_READ_SEARCH) | CapabilityBit(CAP_FOWNER) |
    CapabilityBit(CAP_SYS_ADMIN) | CapabilityBit(CAP_PERFMON) |
    CapabilityBit(CAP_IPC_LOCK) | CapabilityBit(CAP_SYS_NICE) |
    CapabilityBit(CAP_SYS_RESOURCE);

void Limit(__rlimit_resource resource, rlim_t value) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0)
    return;
  limit.rlim_max = std::min(limit.rlim_max, value);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(resource, &limit);
}

// Bytes of data of root's service, and of each of its finishers: profiles have half of the
// machine's memory (engine/user_budget.h), and all else half of that.
rlim_t MaxData() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return RLIM_INFINITY;  // a sanitizer reserves terabytes
#else
  return static_cast<rlim_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L)) * PageSize() / 4 * 3;
#endif
}

// Programs of all users connect to root's service: it has no powers that it does not need,
// a bound of memory, and no core, which would have data of all of them.
Status GiveUpRights() {
  HPD_TRY(DropCapabilities(kNeededCapabilities));
  HPD_TRY(ForbidNewPrivileges());
  HPD_TRY(MakeUndumpable());
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_DATA, MaxData());
  return {};
}

int Serve(const DaemonOptions& options) {
  LiftOwnLimits();
  prctl(PR_SET_NAME, "heapprofd");  // for killall, also when started as traced
  Result<std::unique_ptr<RuntimeDirectory>> directory =
      RuntimeDirectory::Open(options.directory);
  if (!directory.ok())
    return Refuse(directory.status());
  if (const Status status = geteuid() == 0 ? GiveUpRights() : Status(); !status.ok())
    return Refuse(status);
  return RunService(std::move(directory).value(), InheritedListener(),
                    options.exit_when_idle);
}

CommandLine DaemonLine() {
  const auto options = std::make_shared<DaemonOptions>();
  return {
      .text =
          {.name = "heapprofd",
           .summary =
               "Serves heap_profile and the programs that have preloaded its library.",
           .usage = "heapprofd [OPTIONS]",
           .epilogue =
               "SIGUSR1 adds a dump of all profiled processes to all recordings;\n"
               "SIGTERM finishes them.\n"},
      .flags = DaemonFlags(*options),
      .run = [options]() -> Result<int> { return Serve(*options); }};
}

int WithOutput(int exit_code) {
  const Status status = FlushOutput();
  return status.ok() || exit_code != kExitOk ? exit_code : Refuse(status);
}

}  // namespace
}  // namespace heapprofd

int main(int argc, char** argv) {
  heapprofd::HoldStandardFds();
  return heapprofd::WithOutput(heapprofd::RunCommandLine(
      heapprofd::DaemonLine(), heapprofd::Words(argv + 1, argv + argc)));
}
