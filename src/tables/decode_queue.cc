#include "tables/decode_queue.h"

#include <utility>

#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

// Packets hold hundreds of kB. So many steps are a file of tiny ones, whose steps would
// need several times the memory of the file.
constexpr size_t kMaxSteps = size_t{1} << 17;

}  // namespace

void DecodeQueue::BeginMeanwhile() {
  is_meanwhile_ = true;
  meanwhile_ =
      std::async(std::launch::async | std::launch::deferred, [this] { DoMeanwhile(); });
}

void DecodeQueue::DoMeanwhile() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    pushed_.wait(lock, [this] { return is_ending_ || !steps_.empty(); });
    if (is_ending_ || std::holds_alternative<SampleStep>(steps_.front().step))
      return;
    const Entry entry = TakeFirst();
    lock.unlock();
    entry.decoder->Do(entry.step);
    lock.lock();
  }
}

// What is left is for this thread.
void DecodeQueue::EndMeanwhile() {
  if (!meanwhile_.valid())
    return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_ending_ = true;
  }
  pushed_.notify_one();
  meanwhile_.get();
  is_meanwhile_ = false;
  for (const auto& [key, value] : stats_meanwhile_.values())
    stats_->Add(key.first, key.second, value);
}

void DecodeQueue::Push(std::shared_ptr<Decoder> decoder, DecodeStep step) {
  bool is_full = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::holds_alternative<StackStep>(step))
      ++stack_steps_;
    steps_.push_back({std::move(decoder), std::move(step)});
    is_full = steps_.size() >= kMaxSteps;
  }
  pushed_.notify_one();
  if (is_full)
    Run();
}

bool DecodeQueue::Run(const std::atomic<bool>& is_cancelled) {
  EndMeanwhile();
  while (!steps_.empty()) {
    if (is_cancelled.load(std::memory_order_relaxed))
      return false;
    DoFirst();
  }
  return true;
}

bool DecodeQueue::RunStacks(const std::atomic<bool>& is_cancelled) {
  EndMeanwhile();
  while (stack_steps_ > 0) {
    if (is_cancelled.load(std::memory_order_relaxed))
      return false;
    DoFirst();
  }
  return true;
}

bool DecodeQueue::Finish(TraceBuilder& builder, const std::atomic<bool>& is_cancelled) {
  if (!RunStacks(is_cancelled))
    return false;
  while (!steps_.empty()) {
    if (is_cancelled.load(std::memory_order_relaxed))
      return false;
    builder.ForgetCallsites();
    steps_.front().decoder->ForgetStacks();
    DoFirst();
  }
  return true;
}

DecodeQueue::Entry DecodeQueue::TakeFirst() {
  Entry first = std::move(steps_.front());
  steps_.pop_front();
  if (std::holds_alternative<StackStep>(first.step))
    --stack_steps_;
  return first;
}

void DecodeQueue::DoFirst() {
  const Entry entry = TakeFirst();
  entry.decoder->Do(entry.step);
}

void DecodeQueue::Run() {
  const std::atomic<bool> is_cancelled = false;
  Run(is_cancelled);
}

}  // namespace heapprofd
