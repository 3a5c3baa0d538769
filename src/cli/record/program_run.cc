#include "cli/record/program_run.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/files/proc_files.h"
#include "base/print.h"
#include "cli/exit_code.h"

namespace heapprofd {
namespace {

constexpr int kIdleWaitMs = 20;
constexpr int kLookMs = 50;  // at the time, while a program's end is waited for

// Whether the process ignores the signal, as one in the background of a shell without job
// control does from the start with SIGINT.
bool Ignores(pid_t pid, int signal) {
  constexpr size_t kMaxStatus = 16384;
  const std::string status = ReadProcFile(ProcPath(pid, "status"), kMaxStatus);
  const std::string ignored = StatusField(status, "SigIgn");
  return (strtoull(ignored.c_str(), nullptr, 16) >> (signal - 1) & 1) != 0;
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

int ProgramRun::Run(pid_t program) {
  program_ = program;
  if (java_dumps_ != nullptr)
    java_dumps_->set_program(program);
  program_is_running_ = true;
  Record();
  status_line_->Clear();
  if (program_is_running_ && recording_->cause() == StopCause::kFailed)
    SayUnprofiledAndAwait();
  if (!program_is_running_)
    return exit_code_;
  return recording_->cause() == StopCause::kDuration ? kExitOk : kExitSignalBase + SIGINT;
}

void ProgramRun::Record() {
  Session& session = *recording_->sessions()[0];
  while (!IsOver()) {
    session.Poll(recording_->MillisecondsToNext(view_->MillisecondsToNext(kIdleWaitMs)),
                 signals_->fd());
    HandleSignals();
    recording_->ServeSchedule();
    view_->Update(recording_->targets());
    SayWaiting();
    LookAfterJava();
  }
}

void ProgramRun::LookAfterJava() {
  if (java_dumps_ == nullptr)
    return;
  if (stop_requests_ > 0)  // none begins when the end is near
    java_dumps_->BeginNoMore();
  const std::string text = java_dumps_->Look(recording_->dump_rounds());
  if (text.empty())
    return;
  status_line_->Clear();
  PrintLines(stderr, text);
}

// Whoever has started it through us waits for its exit code, recorded or not.
void ProgramRun::SayUnprofiledAndAwait() {
  Print(stderr,
        "heap_profile: %s; pid %d runs on unprofiled, and heap_profile waits for it\n",
        recording_->trace().status().message().c_str(), program_);
  ends_at_first_request_ = false;  // there is nothing to end any more but the program
  AwaitProgram(2, kForever);
}

int ProgramRun::EndProgram(int exit_code, uint64_t patience_ns) {
  ReapProgram();  // whoever took a Java heap meanwhile has taken the signal, too
  if (!program_is_running_ || !ends_at_first_request_ || stop_requests_ == 0)
    return exit_code;
  kill(program_, SIGTERM);
  AwaitProgram(stop_requests_ + 1, patience_ns);
  return program_is_running_ ? exit_code : exit_code_;
}

// Until so many requests have come, or for so long.
void ProgramRun::AwaitProgram(int requests, uint64_t patience_ns) {
  const uint64_t begin_ns = MonotonicNs();
  while (program_is_running_ && stop_requests_ < requests &&
         MonotonicNs() - begin_ns < patience_ns) {
    pollfd signals{.fd = signals_->fd(), .events = POLLIN, .revents = 0};
    poll(&signals, 1, patience_ns == kForever ? -1 : kLookMs);
    HandleSignals();
    ReapProgram();
  }
}

bool ProgramRun::IsOver() {
  if (recording_->cause() != StopCause::kNone)
    return true;
  // The first request goes to the program too, which usually ends it; the second one ends
  // the recording.
  if (stop_requests_ > (ends_at_first_request_ ? 0 : 1) ||
      (stop_requests_ > 0 && !program_is_running_))
    return true;
  return !program_is_running_ && !children_.AreThere();
}

void ProgramRun::SayWaiting() {
  if (program_is_running_ || said_waiting_)
    return;
  const size_t children = children_.Count(program_);
  if (children == 0)
    return;
  said_waiting_ = true;
  status_line_->Clear();
  Print(stderr,
        "heap_profile: the program has ended; still recording %zu %s it started, Ctrl-C "
        "stops\n",
        children, children == 1 ? "process" : "processes");
}

void ProgramRun::HandleSignals() {
  while (const std::optional<signalfd_siginfo> info = signals_->Next()) {
    const int signal = static_cast<int>(info->ssi_signo);
    if (signal == SIGCHLD) {
      ReapProgram();
      continue;
    }
    if (signal == SIGTSTP) {  // the program has it from the terminal, too
      status_line_->Clear();
      StopLikeOthers();
      continue;
    }
    if (signal == SIGUSR1) {
      recording_->Dump("");
      continue;
    }
    ++stop_requests_;
    if (!program_is_running_ || ends_at_first_request_)
      continue;
    if (ignores_interrupt_ && signal == SIGINT)
      kill(program_, SIGTERM);
    else if (info->ssi_code != SI_KERNEL)  // else it has it from the terminal, too
      PassOn(signal);
  }
}

void ProgramRun::PassOn(int signal) {
  if (Ignores(program_, signal))
    ++stop_requests_;  // or nothing would come of it
  kill(program_, signal);
}

void ProgramRun::ReapProgram() {
  int status = 0;
  rusage usage{};
  if (!program_is_running_ || wait4(program_, &status, WNOHANG, &usage) != program_)
    return;
  program_is_running_ = false;
  usage_ = {.cpu_seconds = Seconds(usage.ru_utime) + Seconds(usage.ru_stime),
            .peak_rss_kib = usage.ru_maxrss};
  exit_code_ = ExitCodeOf(status);
}

}  // namespace heapprofd
