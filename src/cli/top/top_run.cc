#include "cli/top/top_run.h"

#include <signal.h>

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

SymbolizeOptions GivenUpFor(int wake_fd, SymbolizeOptions symbols) {
  symbols.cancel_fd = wake_fd;
  return symbols;
}

}  // namespace

TopRun::TopRun(RecorderProcess* recorder, TopOptions options)
    : recorder_(recorder),
      options_(std::move(options)),
      view_(recorder->trace_fd(), GivenUpFor(events_.wake_fd(), options_.symbols)),
      page_(options_.style),
      started_ns_(MonotonicNs()) {
  if (options_.has_screen)
    screen_.emplace(events_.wake_fd());
}

int TopRun::Run() {
  if (screen_)
    screen_->Enter();
  while (!IsOver()) {
    events_.Wait(screen_ ? &*screen_ : nullptr, MillisecondsToNext());
    TakeSignals();
    TakeKeys();
    const uint64_t now = MonotonicNs();
    if (!IsOver() && now >= look_ns_) {
      look_ns_ = now + kLookNs;
      Look();
    }
    // Before there is anything nobody listens; a view that stands asks for nothing.
    if (view_.trace().has_begun() && now >= request_ns_ && !page_.is_paused()) {
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

void TopRun::TakeSignals() {
  while (const std::optional<signalfd_siginfo> info = events_.NextSignal()) {
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
  if (!events_.TakeResized() || !screen_ || IsOver())
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
    page_.Show(view_.rows(), Facts());
  Redraw();
}

void TopRun::Look() {
  const Result<LiveHeapView::News> news = view_.Look();
  if (!news.ok()) {
    status_ = news.status();
    is_over_ = true;
    return;
  }
  const auto [has_dumps, has_names] = news.value();
  const bool is_waiting = view_.processes().empty();
  if (has_dumps || (screen_ && (has_names || is_waiting)))
    Show();
  else if (screen_ && !screen_->is_entered())
    Redraw();  // in front again, maybe
}

void TopRun::Show() {
  if (screen_) {
    if (!page_.is_paused())
      page_.Show(view_.rows(), Facts());
    Redraw();
    return;
  }
  PrintLines(stdout, PlainTable(view_.rows(), Facts(), options_.rows, options_.style));
  // Nobody reads on when the output is closed.
  is_over_ |= !FlushOutput().ok() || ++shown_ == options_.count;
}

TopFacts TopRun::Facts() const {
  TopFacts facts{.what = "",
                 .seconds = static_cast<double>(MonotonicNs() - started_ns_) / 1e9,
                 .has_figures = !view_.processes().empty(),
                 .total = view_.rows().total()};
  if (view_.processes().empty())
    facts.what =
        view_.trace().has_begun() ? "waiting for the first allocations" : "beginning";
  else
    facts.what = ProcessName(view_.processes()[0]->profile());
  if (view_.processes().size() > 1)
    facts.what +=
        " and " + FormatCounted(static_cast<double>(view_.processes().size() - 1),
                                "more process", "more processes");
  facts.what +=
      options_.interval_bytes == 1
          ? ", every allocation"
          : ", 1 sample per " + FormatBytes(static_cast<double>(options_.interval_bytes));
  return facts;
}

void TopRun::TakeSnapshot() {
  const Result<std::string> name = WriteSnapshot(view_.processes());
  page_.Say(name.ok() ? "wrote " + Printable(name.value())
                      : Printable(name.status().message()));
}

// What the recording has said at its end, with as many names as there are.
void TopRun::LookAgain() {
  view_.LookForLastTime();
  if (!view_.processes().empty())
    PrintLines(stdout, PlainTable(view_.rows(), Facts(), options_.rows, options_.style));
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
  PrintLines(stderr, recorder_->Messages());
  if (signal_ != 0)
    return kExitSignalBase + signal_;
  return status_.ok() ? recorder_->exit_code() : Fail(status_);
}

}  // namespace heapprofd
