// heapprofd: entry point of the service.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/print.h"
#include "cli/finish.h"
#include "cli/flag_table.h"
#include "cli/flag_values.h"
#include "cli/live_view.h"
#include "cli/options.h"
#include "cli/own_limits.h"
#include "cli/signals.h"
#include "cli/stats_json.h"
#include "service/service.h"

namespace heapprofd {
namespace {

constexpr uint64_t kIdlePatienceNs = 10'000'000'000;  // for the first request
constexpr int kFirstInheritedFd = 3;                  // sd_listen_fds(3)

struct DaemonOptions {
  std::string directory = OwnServiceDirectory();
  bool exit_when_idle = false;
  bool show_help = false;
  bool show_version = false;
};

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
      {.name = "cleanup-after-crash",
       .help = "Nothing to clean up on Linux: exits at once.",
       .group = group,
       .apply = [](const std::string&) -> Status { exit(kExitOk); }},
      {.letter = 'h',
       .name = "help",
       .help = "Show this help.",
       .group = group,
       .apply = Switch(&options.show_help)},
      {.name = "version",
       .help = "Show the version.",
       .group = group,
       .apply = Switch(&options.show_version)},
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

class Daemon {
 public:
  explicit Daemon(const DaemonOptions& options) : options_(options) {}

  Status Create() {
    HPD_TRY_ASSIGN(std::unique_ptr<RuntimeDirectory> directory,
                   RuntimeDirectory::Open(options_.directory));
    HPD_TRY_ASSIGN(service_, Service::Create(std::move(directory), InheritedListener(),
                                             MakeHooks()));
    return {};
  }

  void Run() {
    const uint64_t started_ns = MonotonicNs();
    while (!is_told_to_stop_) {
      service_->Poll(options_.exit_when_idle ? 100 : -1, signals_.fd());
      HandleSignals();
      const bool had_its_chance =
          service_->started() > 0 || MonotonicNs() - started_ns > kIdlePatienceNs;
      if (options_.exit_when_idle && had_its_chance && service_->is_idle())
        break;
    }
    service_->StopAll();
    service_->AwaitFinishers();
  }

 private:
  ServiceHooks MakeHooks() {
    return {.finish =
                [this](TraceRecording& recording, const FinishRequest& request) {
                  const LiveView& view = ViewOf(recording);
                  for (const std::string& entry : request.environment)
                    putenv(const_cast<char*>(entry.c_str()));  // both live until the end
                  Result<SymbolizeOptions> symbols = SymbolizeOptions::FromEnvironment();
                  if (!symbols.ok())
                    Fail(symbols.status());
                  const int exit_code = FinishRecording(
                      recording, view,
                      {.directory = request.directory,
                       .trace_path = request.trace_path,
                       .top = request.top,
                       .quiet = request.quiet,
                       .seconds = view.seconds(),
                       .symbols = symbols.ok() ? std::move(symbols).value()
                                               : SymbolizeOptions()});
                  const Status status = WriteStatsJson(recording, {});
                  return status.ok() ? exit_code : Fail(status);
                },
            .observe =
                [this](TraceRecording& recording) {
                  ViewOf(recording).Update(recording.targets());
                },
            .forget = [this](TraceRecording& recording) { views_.erase(&recording); }};
  }

  LiveView& ViewOf(const TraceRecording& recording) {
    return views_.try_emplace(&recording, /*show_status=*/false).first->second;
  }

  void HandleSignals() {
    while (const std::optional<signalfd_siginfo> info = signals_.Next()) {
      const int signal = static_cast<int>(info->ssi_signo);
      if (signal == SIGUSR1)
        service_->Dump("", /*user=*/0);
      else if (signal != SIGCHLD)
        is_told_to_stop_ = true;
    }
    service_->ReapFinishers();
  }

  const DaemonOptions options_;
  SteeringSignals signals_;
  std::unique_ptr<Service> service_;
  std::map<const TraceRecording*, LiveView> views_;
  bool is_told_to_stop_ = false;
};

int RunDaemon(const std::vector<std::string>& arguments) {
  DaemonOptions options;
  const std::vector<Flag> flags = DaemonFlags(options);
  const CommandText command = {
      .name = "heapprofd",
      .summary = "Serves heap_profile and the programs that have preloaded its library.",
      .usage = "heapprofd [OPTIONS]",
      .epilogue =
          "SIGUSR1 adds a dump of all profiled processes to all recordings;\n"
          "SIGTERM finishes them.\n"};
  const Result<size_t> parsed = ParseFlags(flags, arguments, [](const std::string& word) {
    return Status(StatusCode::kInvalidArgument,
                  "cannot understand \"" + word + "\": it is no option");
  });
  if (!parsed.ok()) {
    Print(stderr, "heapprofd: %s\n", parsed.status().message().c_str());
    return kExitUsage;
  }
  if (options.show_help) {
    fputs(LongHelp(command, flags).c_str(), stdout);
    return kExitOk;
  }
  if (options.show_version) {
    puts("heapprofd " HPD_VERSION);
    return kExitOk;
  }
  LiftOwnLimits();
  prctl(PR_SET_NAME, "heapprofd");  // for killall, also when started as traced
  Daemon daemon(options);
  if (const Status status = daemon.Create(); !status.ok()) {
    Print(stderr, "heapprofd: %s\n", status.message().c_str());
    return kExitFailure;
  }
  daemon.Run();
  return kExitOk;
}

}  // namespace
}  // namespace heapprofd

int main(int argc, char** argv) {
  return heapprofd::RunDaemon(std::vector<std::string>(argv + 1, argv + argc));
}
