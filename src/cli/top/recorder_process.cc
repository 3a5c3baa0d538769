#include "cli/top/recorder_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/child_process.h"
#include "base/clock.h"
#include "cli/exit_code.h"
#include "cli/record/record.h"
#include "cli/record/remote_recording.h"

namespace heapprofd {
namespace {

constexpr char kViewName[] = "the live view";  // in messages
constexpr size_t kMaxMessages = size_t{64} << 10;
// A program that does not end by the first request runs on from the second.
constexpr std::array<uint64_t, 2> kEndPatienceNs = {2'000'000'000, 8'000'000'000};

Result<ScopedFd> FileInMemory(const char* name) {
  ScopedFd fd(memfd_create(name, MFD_CLOEXEC));
  return fd.valid() ? Result<ScopedFd>(std::move(fd))
                    : Status::FromErrno("cannot create a file in memory", errno);
}

// Of the program that will be started.
void GiveUpTerminal() {
  const ScopedFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (isatty(fd) != 0)
      dup2(null.get(), fd);
  }
}

int RecordInto(const Options& options, ScopedFd trace) {
  if (!options.command.empty())
    return DumpProgram(options, TraceFile(std::move(trace), kViewName));
  return RecordRemotely({.config = ConfigOf(options),
                         .trace = std::move(trace),
                         .trace_path = kViewName,
                         .quiet = true,
                         .only_dumps = true,
                         .may_start_service = options.may_stand_in})
      .exit_code;
}

// A dump that is asked for before anybody listens is none: it ends neither who is asked
// nor, as it is no longer handled there, a program that is started.
void OutliveEarlyRequests() {
  struct sigaction action {};

  sigaction(SIGUSR1, nullptr, &action);
  if (action.sa_handler != SIG_DFL)
    return;
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
}

// In the child. What is said goes to `messages`, whatever the program says elsewhere.
[[noreturn]] void BecomeRecorder(Options options,
                                 pid_t viewer,
                                 bool owns_terminal,
                                 ScopedFd trace,
                                 const ScopedFd& messages) {
  EndWithParent(viewer, SIGINT);
  if (owns_terminal)
    GiveUpTerminal();
  if (options.command.empty())
    dup2(messages.get(), STDERR_FILENO);
  if (FILE* said = fdopen(fcntl(messages.get(), F_DUPFD_CLOEXEC, 0), "w"))
    stderr = said;
  setvbuf(stderr, nullptr, _IOLBF, BUFSIZ);
  options.quiet = true;
  const int exit_code = RecordInto(options, std::move(trace));
  fflush(stderr);
  _exit(exit_code);
}

}  // namespace

Result<RecorderProcess> RecorderProcess::Start(const Options& options,
                                               bool owns_terminal) {
  HPD_TRY_ASSIGN(ScopedFd trace, FileInMemory("heap_profile-trace"));
  HPD_TRY_ASSIGN(ScopedFd messages, FileInMemory("heap_profile-messages"));
  fcntl(messages.get(), F_SETFL, O_APPEND);
  OutliveEarlyRequests();
  const pid_t viewer = getpid();
  const pid_t pid = fork();
  if (pid < 0)
    return Status::FromErrno("cannot start a process", errno);
  if (pid == 0)
    BecomeRecorder(options, viewer, owns_terminal, std::move(trace), messages);
  return RecorderProcess(pid, std::move(trace), std::move(messages));
}

RecorderProcess::~RecorderProcess() {
  if (pid_ < 0 || !messages_.valid())  // moved from
    return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void RecorderProcess::RequestDump() const {
  if (pid_ > 0)
    kill(pid_, SIGUSR1);
}

void RecorderProcess::Stop() const {
  if (pid_ > 0)
    kill(pid_, SIGINT);
}

bool RecorderProcess::HasEnded() {
  if (pid_ < 0)
    return true;
  int status = 0;
  const pid_t ended = waitpid(pid_, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno != ECHILD))
    return false;
  pid_ = -1;
  // ECHILD: somebody else has waited for it.
  exit_code_ = ended < 0 ? static_cast<int>(kExitFailure) : ExitCodeOf(status);
  return true;
}

void RecorderProcess::AwaitEnd() {
  constexpr uint64_t kLookNs = 20'000'000;
  for (const uint64_t patience_ns : kEndPatienceNs) {
    const uint64_t end_ns = MonotonicNs() + patience_ns;
    while (MonotonicNs() < end_ns) {
      if (HasEnded())
        return;
      SleepNs(kLookNs);
    }
    Stop();
  }
  kill(pid_, SIGKILL);  // the programs go on without it
  while (!HasEnded())
    SleepNs(kLookNs);
}

std::string RecorderProcess::Messages() const {
  std::string text(kMaxMessages, 0);
  const ssize_t got = pread(messages_.get(), text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

}  // namespace heapprofd
