// Work that takes long is done on a thread of its own, one piece after another, while the
// server goes on to serve: pieces can be taken back, and nobody waits for one that does
// not end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

namespace heapprofd {

class AnsweringThread {
 public:
  using Work = std::function<void()>;

  // At most `most` pieces are there at a time. `cancel` tells the one at work that it is
  // to end.
  AnsweringThread(size_t most, std::atomic<bool>* cancel);
  ~AnsweringThread();
  AnsweringThread(const AnsweringThread&) = delete;
  AnsweringThread& operator=(const AnsweringThread&) = delete;

  // The number of the piece of work; 0: there are too many.
  uint64_t Submit(Work work);

  // Pieces that are at work or wait before this one.
  size_t CountAhead(uint64_t number) const;

  // Tells it to end, or takes it back if it has not begun.
  void Cancel(uint64_t number);

  // Cancels everything. False: what is at work has not ended in time; the thread goes on
  // with it, and what that needs must stay.
  bool Stop(std::chrono::milliseconds patience);

 private:
  struct State;

  static void Run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace heapprofd
