#include "web/answering_thread.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace heapprofd {

struct AnsweringThread::State {
  struct Piece {
    uint64_t number = 0;
    Work work;
  };

  size_t most = 0;
  std::atomic<bool>* cancel = nullptr;
  std::mutex mutex;  // of all below
  std::condition_variable changed;
  std::deque<Piece> waiting;
  uint64_t last_number = 0;
  uint64_t at_work = 0;  // 0: none
  bool is_stopping = false;
  bool has_ended = false;
};

AnsweringThread::AnsweringThread(size_t most, std::atomic<bool>* cancel)
    : state_(std::make_shared<State>()) {
  state_->most = most;
  state_->cancel = cancel;
  thread_ = std::thread([state = state_] { Run(state); });
}

AnsweringThread::~AnsweringThread() {
  if (thread_.joinable())
    Stop(std::chrono::hours(24));
}

void AnsweringThread::Run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (true) {
    state->changed.wait(lock,
                        [&] { return state->is_stopping || !state->waiting.empty(); });
    if (state->is_stopping)
      break;
    State::Piece piece = std::move(state->waiting.front());
    state->waiting.pop_front();
    state->at_work = piece.number;
    state->cancel->store(false);
    lock.unlock();
    piece.work();
    piece.work = nullptr;  // what it holds goes before the next one comes
    lock.lock();
    state->at_work = 0;
  }
  state->has_ended = true;
  state->changed.notify_all();
}

uint64_t AnsweringThread::Submit(Work work) {
  const std::lock_guard lock(state_->mutex);
  if (state_->is_stopping ||
      state_->waiting.size() + (state_->at_work != 0 ? 1 : 0) >= state_->most)
    return 0;
  state_->waiting.push_back({++state_->last_number, std::move(work)});
  state_->changed.notify_all();
  return state_->last_number;
}

size_t AnsweringThread::CountAhead(uint64_t number) const {
  const std::lock_guard lock(state_->mutex);
  const auto waiting = std::count_if(
      state_->waiting.begin(), state_->waiting.end(),
      [number](const State::Piece& piece) { return piece.number < number; });
  const bool is_behind_another = state_->at_work != 0 && state_->at_work < number;
  return static_cast<size_t>(waiting) + (is_behind_another ? 1 : 0);
}

void AnsweringThread::Cancel(uint64_t number) {
  const std::lock_guard lock(state_->mutex);
  if (state_->at_work == number)
    state_->cancel->store(true);
  std::erase_if(state_->waiting,
                [number](const State::Piece& piece) { return piece.number == number; });
}

bool AnsweringThread::Stop(std::chrono::milliseconds patience) {
  std::unique_lock lock(state_->mutex);
  state_->is_stopping = true;
  state_->waiting.clear();
  state_->cancel->store(true);
  state_->changed.notify_all();
  const bool has_ended =
      state_->changed.wait_for(lock, patience, [this] { return state_->has_ended; });
  lock.unlock();
  if (has_ended)
    thread_.join();
  else
    thread_.detach();
  return has_ended;
}

}  // namespace heapprofd
