#include "cli/top/top_run.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "base/clock.h"
#include "base/format.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/record/signals.h"
#include "cli/results/process_name.h"
#include "cli/top/snapshot.h"

namespace heapprofd {
namespace {

constexpr uint64_t kRequestNs = 1'000'000'000;
constexpr uint64_t kLookNs = 100'000'000;

// The signals that tell of another size, or of another program that had the terminal.
// Those that stop who uses it from the background are blocked, too.
ScopedFd ScreenSignals() {
  const sigset_t stops = SetOf({SIGTTIN, SIGTTOU});
  sigprocmask(SIG_BLOCK, &stops, nullptr);
  const sigset_t signals = SetOf({SIGWINCH, SIGCONT});
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return DescriptorOf(signals);
}

void WatchFor(uint32_t events, int fd, const ScopedFd& to) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  if (epoll_ctl(to.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    epoll_ctl(to.get(), EPOLL_CTL_MOD, fd, &event);
}

}  // namespace

TopRun::TopRun(RecorderProcess* recorder, TopOptions options)
    : recorder_(recorder),
      options_(std::move(options)),
      resized_(ScreenSignals()),
      urgent_signals_(DescriptorOf(SetOf({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}))),
      wake_(epoll_create1(EPOLL_CLOEXEC)),
      trace_(recorder->trace_fd()),
      page_(options_.style),
      started_ns_(MonotonicNs()) {
  // Not SIGCHLD, by which every process that has looked for names says that it is done.
  WatchFor(EPOLLIN, urgent_signals_.get(), wake_);
  if (options_.has_screen)
    screen_.emplace(wake_.get());
  SymbolizeOptions symbols = options_.symbols;
  symbols.cancel_fd = wake_.get();
  names_.emplace(std::move(symbols));
}

int TopRun::Run() {
  if (screen_)
    screen_->Enter();
  while (!IsOver()) {
    Wait();
    TakeSignals();
    TakeKeys();
    const uint64_t now = MonotonicNs();
    if (!IsOver() && now >= look_ns_) {
      look_ns_ = now + kLookNs;
      Look();
    }
    // Before there is anything nobody listens; a view that stands asks for nothing.
    if (trace_.has_begun() && now >= request_ns_ && !page_.is_paused()) {
      request_ns_ = now + kRequestNs;
      recorder_->RequestDump();
    }
  }
  return End();
}

int TopRun::MillisecondsToNext() const {
  const uint64_t now = MonotonicNs();
  return look_ns_ > now ? static_cast<int>((look_ns_ - now) / 1'000'000) + 1 : 0;
}

void TopRun::Wait() {
  if (screen_)  // in the background others' keys are none of our business
    WatchFor(screen_->is_entered() ? uint32_t{EPOLLIN} : 0, screen_->fd(), wake_);
  std::array<pollfd, 3> fds = {
      pollfd{.fd = wake_.get(), .events = POLLIN, .revents = 0},
      pollfd{.fd = signals_.fd(), .events = POLLIN, .revents = 0},
      pollfd{.fd = resized_.get(), .events = POLLIN, .revents = 0}};
  poll(fds.data(), fds.size(), MillisecondsToNext());
}

void TopRun::TakeSignals() {
  while (const std::optional<signalfd_siginfo> info = signals_.Next()) {
    const int signal = static_cast<int>(info->ssi_signo);
    if (signal == SIGTSTP) {
      Suspend();
    } else if (signal == SIGINT) {
      is_over_ = true;
      is_told_ = info->ssi_code == SI_KERNEL;
    } else if (signal != SIGCHLD && signal != SIGUSR1) {
      signal_ = signal;
    }
  }
  is_over_ |= recorder_->HasEnded();
  signalfd_siginfo info{};
  if (read(resized_.get(), &info, sizeof(info)) <= 0 || !screen_ || IsOver())
    return;
  screen_->Leave();  // whoever had the terminal meanwhile has left it in another state
  Redraw();
}

void TopRun::Suspend() {
  if (screen_)
    screen_->Leave();
  StopLikeOthers();
  if (screen_)
    Redraw();
}

void TopRun::Redraw() {
  screen_->Enter();
  screen_->Draw(page_.Lines(screen_->size()));
}

void TopRun::TakeKeys() {
  if (!screen_)
    return;
  std::string bytes;
  if (!screen_->TakeKeys(&bytes)) {
    signal_ = SIGHUP;
    return;
  }
  if (bytes.empty())
    return;
  for (const std::string& key : KeysOf(bytes)) {
    const TopRequest request = page_.Press(key);
    if (request == TopRequest::kQuit)
      is_over_ = true;
    if (request == TopRequest::kSnapshot)
      TakeSnapshot();
  }
  if (page_.is_outdated())
    page_.Show(rows_, Facts());
  Redraw();
}

// True: rows have other names.
bool TopRun::LookForNames() {
  names_->Find(trace_.processes());
  return names_->TakeNews(trace_.processes(), MonotonicNs());
}

void TopRun::Look() {
  const Result<bool> has_more = trace_.Update();
  if (!has_more.ok()) {
    status_ = has_more.status();
    is_over_ = true;
    return;
  }
  // Dumps of several processes come one after the other, and are looked at together: when
  // no more come, or have come for too long.
  constexpr uint64_t kLongestNs = 2'000'000'000;
  const uint64_t now_ns = MonotonicNs();
  const bool is_new =
      has_more_ && (!has_more.value() || now_ns - looked_ns_ > kLongestNs);
  has_more_ = has_more.value();
  const bool has_names = LookForNames();
  if (has_names)
    rows_.ForgetNames();
  if (is_new) {
    rows_.Look(trace_.processes(), trace_.latest_ns());
    rows_.LookAtThreads(trace_.Threads());
    looked_ns_ = now_ns;
  } else if (has_names) {
    rows_.GroupByFunction();
  }
  const bool is_waiting = trace_.processes().empty();
  if (is_new || (screen_ && (has_names || is_waiting)))
    Show();
  else if (screen_ && !screen_->is_entered())
    Redraw();  // in front again, maybe
}

void TopRun::Show() {
  if (screen_) {
    if (!page_.is_paused())
      page_.Show(rows_, Facts());
    Redraw();
    return;
  }
  PrintText(PlainTable(rows_, Facts(), options_.rows, options_.style));
  // Nobody reads on when the output is closed.
  is_over_ |= fflush(stdout) != 0 || ++shown_ == options_.count;
}

TopFacts TopRun::Facts() const {
  TopFacts facts{.what = "",
                 .seconds = static_cast<double>(MonotonicNs() - started_ns_) / 1e9,
                 .has_figures = !trace_.processes().empty(),
                 .total = rows_.total()};
  if (trace_.processes().empty())
    facts.what = trace_.has_begun() ? "waiting for the first allocations" : "beginning";
  else
    facts.what = ProcessName(trace_.processes()[0]->profile());
  if (trace_.processes().size() > 1)
    facts.what +=
        " and " + FormatCounted(static_cast<double>(trace_.processes().size() - 1),
                                "more process", "more processes");
  facts.what +=
      options_.interval_bytes == 1
          ? ", every allocation"
          : ", 1 sample per " + FormatBytes(static_cast<double>(options_.interval_bytes));
  return facts;
}

void TopRun::TakeSnapshot() {
  const Result<std::string> name = WriteSnapshot(trace_.processes());
  page_.Say(name.ok() ? "wrote " + Printable(name.value())
                      : Printable(name.status().message()));
}

// What the recording has said at its end, with as many names as there are.
void TopRun::LookAgain() {
  constexpr int kTurns = 50;
  const Result<bool> has_more = trace_.Update();
  if (has_more_ || (has_more.ok() && has_more.value()))
    rows_.Look(trace_.processes(), trace_.latest_ns());
  for (int turn = 0; turn < kTurns && names_->HasMore(trace_.processes()); ++turn)
    names_->Find(trace_.processes());
  rows_.ForgetNames();
  rows_.GroupByFunction();
  if (!trace_.processes().empty())
    PrintText(PlainTable(rows_, Facts(), options_.rows, options_.style));
}

// The terminal is the caller's again before anything else: what is left may take a while.
int TopRun::End() {
  if (screen_)
    screen_->Leave();
  if (!is_told_)
    recorder_->Stop();
  recorder_->AwaitEnd();
  if (status_.ok() && signal_ == 0 && (screen_ || shown_ != options_.count))
    LookAgain();
  Print(stderr, "%s", PrintableLines(recorder_->Messages()).c_str());
  if (signal_ != 0)
    return kExitSignalBase + signal_;
  return status_.ok() ? recorder_->exit_code() : Fail(status_);
}

}  // namespace heapprofd
