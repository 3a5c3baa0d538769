#include "cli/recording.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>

#include "base/format.h"
#include "cli/options.h"
#include "engine/process_info.h"

namespace heapprofd {
namespace {

constexpr int kIdleWaitMs = 20;
constexpr uint64_t kShowNs = 500'000'000;
constexpr uint64_t kFirstObserveNs = 20'000'000;
constexpr size_t kMaxHistory = 400;

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

Recording::Recording(Session* session, bool show_status)
    : session_(session), show_status_(show_status), observe_every_ns_(kFirstObserveNs) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP})
    sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, &original_mask_);
  signals_ = ScopedFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

int Recording::Run(pid_t program) {
  program_ = program;
  program_is_running_ = true;
  started_ns_ = MonotonicNs();
  while (program_is_running_ || session_->live_targets() > 0) {
    session_->Poll(kIdleWaitMs, signals_.get());
    HandleSignals();
    Observe();
    // The first request goes to the program too, which usually ends it; the second one
    // ends the recording.
    if (stop_requests_ > 1 || (stop_requests_ > 0 && !program_is_running_))
      break;
    if (!program_is_running_ && session_->live_targets() > 0 && !said_waiting_) {
      said_waiting_ = true;
      ClearStatus();
      fprintf(stderr,
              "heap_profile: the program has ended; still recording %zu process(es) it "
              "started, Ctrl-C stops\n",
              session_->live_targets());
    }
  }
  ClearStatus();
  return program_is_running_ ? kExitSignalBase + SIGINT : exit_code_;
}

void Recording::RunFor(uint64_t duration_ms) {
  started_ns_ = MonotonicNs();
  const uint64_t end_ns = started_ns_ + duration_ms * 1'000'000;
  while (stop_requests_ == 0 &&
         (session_->live_targets() > 0 || session_->is_catching_starts())) {
    const uint64_t now = MonotonicNs();
    if (duration_ms != 0 && now >= end_ns)
      break;
    const uint64_t left_ms =
        duration_ms != 0 ? (end_ns - now) / 1'000'000 + 1 : kIdleWaitMs;
    session_->Poll(static_cast<int>(std::min<uint64_t>(kIdleWaitMs, left_ms)),
                   signals_.get());
    HandleSignals();
    Observe();
  }
  ClearStatus();
}

void Recording::HandleSignals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof(info)) ==
         static_cast<ssize_t>(sizeof(info))) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      ReapProgram();
      continue;
    }
    ++stop_requests_;
    // A terminal's Ctrl-C reaches the program by itself; a signal sent to us alone is
    // passed on.
    if (program_is_running_ && info.ssi_code != SI_KERNEL)
      kill(program_, signal);
  }
}

void Recording::ReapProgram() {
  int status = 0;
  rusage usage{};
  if (!program_is_running_ || wait4(program_, &status, WNOHANG, &usage) != program_)
    return;
  program_is_running_ = false;
  program_cpu_seconds_ = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  exit_code_ =
      WIFEXITED(status) ? WEXITSTATUS(status) : kExitSignalBase + WTERMSIG(status);
}

// Samples live bytes and resident memory. When the history is full, every second point
// goes and the pace halves, so that it always spans the whole run.
void Recording::Observe() {
  const uint64_t now = MonotonicNs();
  if (now - observed_ns_ >= observe_every_ns_) {
    observed_ns_ = now;
    bool is_full = false;
    for (const std::unique_ptr<Target>& target : session_->targets()) {
      if (!target->is_recording())
        continue;
      History& history = histories_[target.get()];
      history.live_bytes.push_back(target->heap().live().bytes);
      if (const uint64_t resident = ResidentKib(target->pid()); resident != 0)
        history.resident_kib = resident;
      is_full |= history.live_bytes.size() >= kMaxHistory;
    }
    if (is_full) {
      observe_every_ns_ *= 2;
      for (auto& [target, history] : histories_) {
        for (size_t i = 0; 2 * i < history.live_bytes.size(); ++i)
          history.live_bytes[i] = history.live_bytes[2 * i];
        history.live_bytes.resize((history.live_bytes.size() + 1) / 2);
      }
    }
  }
  if (show_status_ && now - shown_ns_ >= kShowNs) {
    shown_ns_ = now;
    ShowStatus();
  }
}

void Recording::ShowStatus() {
  double live = 0;
  uint64_t samples = 0;
  uint64_t lost = 0;
  double fill = 0;
  for (const std::unique_ptr<Target>& target : session_->targets()) {
    samples += target->quality().samples;
    lost += target->lost_records();
    if (!target->is_recording())
      continue;
    live += target->heap().live().bytes;
    fill = std::max(fill, target->ring_fill());
  }
  const auto seconds =
      static_cast<unsigned>((MonotonicNs() - started_ns_) / 1'000'000'000);
  fprintf(stderr,
          "\r\033[K* %02u:%02u  live %s  %s samples  ring %.0f%%  %llu dropped  Ctrl-C "
          "to stop",
          seconds / 60, seconds % 60, FormatBytes(live).c_str(),
          FormatCount(static_cast<double>(samples)).c_str(), fill * 100,
          static_cast<unsigned long long>(lost));
}

void Recording::ClearStatus() {
  if (show_status_ && shown_ns_ != 0)
    fprintf(stderr, "\r\033[K");
}

}  // namespace heapprofd
