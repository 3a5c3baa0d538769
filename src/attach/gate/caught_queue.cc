#include "attach/gate/caught_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <utility>

namespace heapprofd {

Status CaughtQueue::Open() {
  event_ = ScopedFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_.valid())
    return Status::FromErrno("cannot watch for new processes", errno);
  return {};
}

bool CaughtQueue::Add(const std::shared_ptr<CaughtProgram>& caught) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopping_)
      return false;
    caught_.push_back(caught);
  }
  Raise();
  return true;
}

void CaughtQueue::Raise() const {
  const uint64_t one = 1;
  const ssize_t ignored = write(event_.get(), &one, sizeof(one));
  static_cast<void>(ignored);
}

void CaughtQueue::NoteProblem(const Status& status) {
  if (status.ok() || status.code() == StatusCode::kNotFound)
    return;
  const std::lock_guard lock(mutex_);
  if (problems_.size() < kMaxProblems)
    problems_.push_back(status.message());
  else if (problems_.size() == kMaxProblems)
    problems_.emplace_back("there were more problems of the kind; not all are shown");
}

void CaughtQueue::NoteEndOfGate() {
  const std::lock_guard lock(mutex_);
  if (is_stopping_ || std::exchange(is_end_noted_, true))
    return;
  std::array<char, 16> since{};
  const time_t now = time(nullptr);
  tm local{};
  strftime(since.data(), since.size(), "%H:%M:%S", localtime_r(&now, &local));
  problems_.push_back(
      std::string("cannot catch programs that have started since ") + since.data() +
      ": the process that gives all programs permission to start has ended, as it is "
      "made to "
      "when it does not answer; attach with -p, or start the recording again");
}

void CaughtQueue::AskToEnd() {
  const std::lock_guard lock(mutex_);
  is_stopping_ = true;
  for (const std::shared_ptr<CaughtProgram>& caught : caught_)
    caught->Refuse();
}

bool CaughtQueue::is_stopping() {
  const std::lock_guard lock(mutex_);
  return is_stopping_;
}

void CaughtQueue::NoteOver() {
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  over_.notify_all();
}

bool CaughtQueue::WaitUntilOver(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return over_.wait_for(lock, time, [this] { return is_over_; });
}

std::vector<std::shared_ptr<CaughtProgram>> CaughtQueue::TakeCaught() {
  uint64_t count = 0;
  const ssize_t ignored = read(event_.get(), &count, sizeof(count));
  static_cast<void>(ignored);
  const std::lock_guard lock(mutex_);
  return std::exchange(caught_, {});
}

std::vector<std::string> CaughtQueue::TakeProblems() {
  const std::lock_guard lock(mutex_);
  return std::exchange(problems_, {});
}

}  // namespace heapprofd
