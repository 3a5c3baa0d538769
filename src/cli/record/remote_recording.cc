#include "cli/record/remote_recording.h"

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/files/temporary_directory.h"
#include "base/print.h"
#include "cli/exit_code.h"
#include "cli/record/signals.h"
#include "cli/record/status_line.h"
#include "cli/results/stats_json.h"
#include "control.pb.h"
#include "engine/tsc_clock.h"
#include "service/control_channel.h"
#include "service/finisher_environment.h"
#include "service/runtime_directory.h"
#include "wire/handshake.h"

namespace heapprofd {
namespace {

constexpr uint64_t kStartPatienceNs = 10'000'000'000;
constexpr uint64_t kRivalPatienceNs = 100'000'000;  // when ours has ended
constexpr int kMaxStarts = 10;
constexpr int kAnswerMs = 30'000;
constexpr uint64_t kMarkPatienceNs = 10'000'000'000;  // dumps of many processes take time
constexpr char kServiceName[] = "heapprofd";

// kNotFound: there is none.
Result<ControlChannel> ConnectToService() {
  if (const std::string directory = ServiceDirectory(); !directory.empty())
    return ControlChannel::Connect(directory + kSocketName);
  return Status(StatusCode::kNotFound, "no heapprofd runs");
}

std::string ServicePath() {
  std::array<char, PATH_MAX> self{};
  const ssize_t length = readlink("/proc/self/exe", self.data(), self.size() - 1);
  const std::string path(self.data(), length > 0 ? static_cast<size_t>(length) : 0);
  return path.substr(0, path.rfind('/') + 1) + kServiceName;
}

// In the background, in a session of its own: Ctrl-C is for us. Gives its process id.
pid_t StartService() {
  const std::string path = ServicePath();
  const pid_t pid = fork();
  if (pid != 0)
    return pid;
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    dup2(null, fd);
  if (chdir("/") == 0)
    execl(path.c_str(), kServiceName, "--exit-when-idle", static_cast<char*>(nullptr));
  _exit(kExitNoProgram);
}

// Where ours listens, when the usual place cannot be made.
void HavePlace() {
  const std::string place = OwnServiceDirectory();
  const std::string parent = place.substr(0, place.rfind('/'));
  if (access(place.c_str(), W_OK) == 0 || access(parent.c_str(), W_OK) == 0)
    return;
  const std::string other =
      TemporaryDirectory() + "/heapprofd-" + std::to_string(geteuid());
  setenv(kDirectoryVariable, other.c_str(), 1);
}

std::string HowItEnded(int wait_status) {
  return WIFSIGNALED(wait_status)
             ? "it was ended by signal " + std::to_string(WTERMSIG(wait_status))
             : "it has ended with exit code " + std::to_string(ExitCodeOf(wait_status));
}

// Connected to the service that was just started, or to another one. kNotFound: none
// answers, and why ours does not.
Result<ControlChannel> AwaitService(pid_t service, uint64_t end_ns) {
  std::string why = service < 0
                        ? std::string("no process could be started: ") + strerror(errno)
                        : "it does not answer";
  bool runs = true;
  while (true) {
    Result<ControlChannel> channel = ConnectToService();
    if (channel.ok() || channel.status().code() != StatusCode::kNotFound)
      return channel;
    if (MonotonicNs() >= end_ns)
      return Status(StatusCode::kNotFound, why);
    // Somebody else's may have been faster, and be about to listen.
    int status = 0;
    if (runs && (service < 0 || waitpid(service, &status, WNOHANG) == service)) {
      runs = false;
      if (service >= 0)
        why = HowItEnded(status);
      end_ns = std::min(end_ns, MonotonicNs() + kRivalPatienceNs);
    }
    SleepNs(10'000'000);
  }
}

Result<ControlChannel> FindService(bool may_start) {
  Result<ControlChannel> channel = ConnectToService();
  if (channel.ok() || channel.status().code() != StatusCode::kNotFound)
    return channel;
  if (!may_start)
    return Status(StatusCode::kUnavailable,
                  "cannot record: no heapprofd runs and --no-start is given; start "
                  "heapprofd");
  HavePlace();
  // One that was killed may still hold its lock when its connections are closed: ours
  // ends at once then, and another one is started.
  const uint64_t end_ns = MonotonicNs() + kStartPatienceNs;
  for (int i = 0; i < kMaxStarts && MonotonicNs() < end_ns; ++i) {
    channel = AwaitService(StartService(), end_ns);
    if (channel.ok() || channel.status().code() != StatusCode::kNotFound)
      return channel;
  }
  return Status(StatusCode::kUnavailable, "cannot start " + ServicePath() + ": " +
                                              channel.status().message() +
                                              "; run it by hand to see why");
}

// The path as it is meant here: the service has another working directory.
std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return path.empty() || error ? path : absolute.string();
}

// The same for a list of paths; `package=path` is an element, too.
std::string AbsoluteList(const std::string& list) {
  std::string absolute;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(':', at), list.size());
    const std::string element = list.substr(at, end - at);
    const size_t equals = element.find('=') + 1;  // 0: there is none
    absolute += (at == 0 ? "" : ":") + element.substr(0, equals) +
                Absolute(element.substr(equals));
    at = end + 1;
  }
  return absolute;
}

std::string FromAnywhere(const std::string& variable, const std::string& value) {
  if (variable == kStatsVariable)
    return Absolute(value);
  if (variable == "PERFETTO_BINARY_PATH" || variable == "PERFETTO_PROGUARD_MAP")
    return AbsoluteList(value);
  return value;
}

// What an answer says went wrong, if it does.
Status StatusOf(const ControlMessage& answer) {
  if (answer.type == ControlType::kFailed)
    return Status(StatusCode::kInvalidArgument, answer.payload);
  if (answer.type == ControlType::kUnavailable)
    return Status(StatusCode::kUnavailable, answer.payload);
  return {};
}

bool IsReadable(int fd) {
  pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&readable, 1, 0) > 0;
}

// Until the service knows whose they are it takes no descriptors. kTryAgain: it did not
// answer.
Status AwaitReady(ControlChannel& channel, int stop_fd) {
  const Status sent = channel.Send(ControlType::kPrepare, "");
  const Result<ControlMessage> answer = channel.Wait(kAnswerMs, stop_fd);
  if (!answer.ok() && IsReadable(stop_fd))
    return Status(StatusCode::kUnavailable,
                  "cannot record: interrupted before the service answered");
  if (!answer.ok()) {
    const std::string cause = (sent.ok() ? answer.status() : sent).message();
    if (sent.ok() && answer.status().code() == StatusCode::kTryAgain)
      return Status(StatusCode::kTryAgain,
                    "cannot record: the service does not answer; restart it, should it "
                    "be of another version than this heap_profile (" +
                        cause + ")");
    if (answer.status().code() == StatusCode::kCorrupt)
      return Status(StatusCode::kTryAgain,
                    "cannot record: the service's answer cannot be understood; restart "
                    "it, should it be of another version than this heap_profile");
    return Status(StatusCode::kTryAgain,
                  "cannot record: the service has ended the connection; restart it, "
                  "should it be of another version than this heap_profile (" +
                      cause + ")");
  }
  HPD_TRY(StatusOf(answer.value()));
  if (answer.value().type != ControlType::kReady)
    return Status(StatusCode::kUnavailable,
                  "cannot record: the service answers something else than was asked; "
                  "restart it");
  return {};
}

// kTryAgain: the service did not answer.
Status AskToStart(ControlChannel& channel, const RemoteRequest& request, int stop_fd) {
  HPD_TRY(AwaitReady(channel, stop_fd));
  protos::StartRequest message;
  message.set_trace_config(SerializeTraceConfig(request.config));
  std::vector<int> fds = {request.trace.get(), STDERR_FILENO};
  if (request.directory) {
    message.set_directory(request.directory->path());
    fds.push_back(request.directory->fd());
  }
  message.set_trace_path(request.trace_path);
  message.set_top(request.top);
  message.set_quiet(request.quiet);
  message.set_only_dumps(request.only_dumps);
  message.set_wants_status(StatusLine(!request.quiet).is_shown_at_all());
  message.set_wants_dumps(request.java_dumps != nullptr);
  for (const char* name : kFinisherVariables) {
    if (const char* value = getenv(name))
      message.add_environment(std::string(name) + "=" + FromAnywhere(name, value));
  }
  const Status sent = channel.Send(ControlType::kStart, message.SerializeAsString(), fds);
  if (!sent.ok())
    return Status(StatusCode::kTryAgain, sent.message());
  while (true) {  // Ctrl-C or not: it may have begun, and then it ends in order
    const Result<ControlMessage> answer = channel.Wait(kAnswerMs);
    if (!answer.ok())
      return Status(StatusCode::kTryAgain, answer.status().message());
    HPD_TRY(StatusOf(answer.value()));
    if (answer.value().type != ControlType::kNote)
      return {};
    Print(stderr, "heap_profile: %s\n", answer.value().payload.c_str());
  }
}

// A service that was about to leave may take the connection and not the request: the next
// one is asked. `stop_fd`: readable when nobody wants the recording any more.
Result<ControlChannel> StartRecording(const RemoteRequest& request, int stop_fd) {
  Status status;
  for (int attempt = 0; attempt < 5; ++attempt) {
    HPD_TRY_ASSIGN(ControlChannel channel, FindService(request.may_start_service));
    status = AskToStart(channel, request, stop_fd);
    if (status.ok())
      return channel;
    if (status.code() != StatusCode::kTryAgain)
      break;
  }
  return status;
}

// The exit code of one whom a signal has ended; `otherwise` when none has.
int ExitCodeOf(SteeringSignals& signals, int otherwise) {
  while (const std::optional<signalfd_siginfo> info = signals.Next()) {
    if (info->ssi_signo != SIGCHLD && info->ssi_signo != SIGUSR1)
      return 128 + static_cast<int>(info->ssi_signo);
  }
  return otherwise;
}

class RemoteRun {
 public:
  RemoteRun(ControlChannel* channel, const RemoteRequest* request)
      : channel_(channel), request_(request), status_line_(!request->quiet) {}

  RecordingOutcome Run(SteeringSignals& signals) {
    while (true) {
      std::array<pollfd, 2> fds = {
          pollfd{.fd = signals.fd(), .events = POLLIN, .revents = 0},
          pollfd{.fd = channel_->fd(), .events = POLLIN, .revents = 0}};
      poll(fds.data(), fds.size(), -1);
      while (const std::optional<signalfd_siginfo> info = signals.Next()) {
        if (info->ssi_signo == SIGQUIT)
          return Leave();
        HandleSignal(static_cast<int>(info->ssi_signo));
      }
      const std::optional<RecordingOutcome> outcome = HandleMessages();
      LookAfterJava(said_waiting_ || outcome);
      if (outcome)
        return *outcome;
    }
  }

 private:
  // For a service that does not answer; one that does ends the recording as if asked to.
  RecordingOutcome Leave() {
    status_line_.Clear();
    if (!request_->quiet)
      Print(stderr,
            "heap_profile: not waiting for the end of the recording; the service writes "
            "%s\n",
            request_->trace_path.c_str());
    return {.exit_code = 128 + SIGQUIT, .is_awaited = false};
  }

  // None begins when the end is near.
  void LookAfterJava(bool is_ending) {
    if (request_->java_dumps == nullptr)
      return;
    if (is_ending)
      request_->java_dumps->BeginNoMore();
    const std::string text = request_->java_dumps->Look(dumps_);
    if (text.empty())
      return;
    status_line_.Clear();
    PrintLines(stderr, text);
  }

  void HandleSignal(int signal) {
    if (signal == SIGCHLD)
      return;
    if (signal == SIGTSTP) {
      status_line_.Clear();
      return StopLikeOthers();
    }
    const bool is_dump = signal == SIGUSR1;
    if (!is_dump)
      status_line_.Clear();
    if (!is_dump && !said_waiting_ && !request_->quiet)
      Print(stderr, "Waiting for profiler shutdown...\n");
    said_waiting_ |= !is_dump;
    const Status ignored =
        channel_->Send(is_dump ? ControlType::kMark : ControlType::kStop, "");
    static_cast<void>(ignored);  // its end shows on the channel
  }

  // What there is when the recording is over.
  std::optional<RecordingOutcome> HandleMessages() {
    while (true) {
      const Result<std::optional<ControlMessage>> received = channel_->Receive();
      if (!received.ok()) {
        status_line_.Clear();
        return Failed(Status(StatusCode::kUnavailable,
                             "the service ended before the recording did; what was "
                             "dumped until then is in " +
                                 request_->trace_path));
      }
      if (!received.value())
        return std::nullopt;
      const ControlMessage& message = *received.value();
      if (message.type == ControlType::kStatus && !said_waiting_)
        status_line_.Show(message.payload);
      if (message.type == ControlType::kDumped)
        dumps_ = strtoull(message.payload.c_str(), nullptr, 10);
      if (message.type == ControlType::kFailed) {
        status_line_.Clear();
        return Failed(Status(StatusCode::kUnavailable, message.payload));
      }
      if (message.type == ControlType::kDone)
        return RecordingOutcome{
            .exit_code = atoi(message.payload.c_str()),  // NOLINT(cert-err34-c)
            // A service of the version before says the code only.
            .has_whole_trace =
                message.payload == "0" || message.payload.ends_with(" whole")};
    }
  }

  static RecordingOutcome Failed(const Status& status) {
    return {.exit_code = Fail(status)};
  }

  ControlChannel* channel_;
  const RemoteRequest* request_;
  bool said_waiting_ = false;
  uint64_t dumps_ = 0;
  StatusLine status_line_;
};

void ReportStarted(const RemoteRequest& request, const Status& status) {
  if (request.started_fd < 0)
    return;
  const std::string message = status.ok() ? std::string(1, '\0') : status.message();
  const ssize_t ignored = write(request.started_fd, message.data(), message.size());
  static_cast<void>(ignored);
  close(request.started_fd);
}

// Others' would not listen to us, and may not even let us connect.
bool IsOwnSocket(const std::string& path) {
  struct stat status {};

  return lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode) &&
         (status.st_uid == 0 || status.st_uid == geteuid());
}

// Sockets that may have something to mark: that of the recording we run under, those in
// the place that the environment names, or all of this user's.
std::vector<std::string> RecordingSockets() {
  if (const char* own = getenv(kSessionVariable)) {
    if (const char* path = strchr(own, '/'))
      return {path};
  }
  std::vector<std::string> paths;
  if (const std::string directory = ServiceDirectory(); !directory.empty())
    paths.push_back(directory + kSocketName);
  if (getenv(kDirectoryVariable) != nullptr)
    return paths;
  std::vector<std::string> parents = TemporaryDirectories();
  if (const char* runtime = getenv("XDG_RUNTIME_DIR"))
    parents.emplace_back(runtime);
  for (const std::string& parent : parents) {
    glob_t found{};
    glob((parent + "/heap_profile-*/socket").c_str(), 0, nullptr, &found);
    glob((parent + "/heap_profile-*/*/socket").c_str(), GLOB_APPEND, nullptr, &found);
    for (size_t i = 0; i < found.gl_pathc; ++i)
      paths.emplace_back(found.gl_pathv[i]);
    globfree(&found);
  }
  return paths;
}

}  // namespace

RecordingOutcome RecordRemotely(const RemoteRequest& request) {
  SteeringSignals waiting;  // not Ctrl-\ and Ctrl-Z: there is no status line yet
  Result<ControlChannel> channel = StartRecording(request, StopRequests().get());
  ReportStarted(request, channel.ok() ? Status() : channel.status());
  if (!channel.ok()) {
    if (request.directory)
      request.directory->Remove();
    return {.exit_code = ExitCodeOf(waiting, Fail(channel.status()))};
  }
  SteeringSignals signals(SignalSource::kTerminal);
  if (!request.quiet)
    Print(stderr, "Profiling active. Press Ctrl+C to terminate.\n");
  return RemoteRun(&channel.value(), &request).Run(signals);
}

int MarkRecordings(const std::string& label) {
  // All at once: one that is busy with its end must not keep the others waiting.
  std::vector<ControlChannel> asked;
  for (const std::string& path : RecordingSockets()) {
    if (!IsOwnSocket(path))
      continue;
    Result<ControlChannel> channel = ControlChannel::Connect(path);
    if (channel.ok() && channel.value().Send(ControlType::kMark, label).ok())
      asked.push_back(std::move(channel).value());
  }
  int marked = 0;
  Status status(
      StatusCode::kUnavailable,
      "cannot mark " + label +
          ": nothing is being recorded for this user; start heap_profile first");
  const uint64_t end = MonotonicNs() + kMarkPatienceNs;
  for (ControlChannel& channel : asked) {
    const uint64_t now = MonotonicNs();
    const Result<ControlMessage> answer =
        channel.Wait(now < end ? static_cast<int>((end - now) / 1'000'000) : 0);
    if (answer.ok() && answer.value().type == ControlType::kMarked)
      marked += atoi(answer.value().payload.c_str());  // NOLINT(cert-err34-c)
    else if (answer.ok() && !StatusOf(answer.value()).ok())
      status = StatusOf(answer.value());
  }
  return marked > 0 ? kExitOk : Fail(status);
}

}  // namespace heapprofd
