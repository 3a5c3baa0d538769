#include "tables/decode_queue.h"

#include <utility>

#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

// Packets hold hundreds of kB. So many steps are a file of tiny ones, whose steps would
// need several times the memory of the file.
constexpr size_t kMaxSteps = size_t{1} << 17;

}  // namespace

void DecodeQueue::Push(std::shared_ptr<Decoder> decoder, DecodeStep step) {
  if (std::holds_alternative<StackStep>(step))
    ++stack_steps_;
  steps_.push_back({std::move(decoder), std::move(step)});
  if (steps_.size() >= kMaxSteps)
    Run();
}

bool DecodeQueue::Run(const std::atomic<bool>& is_cancelled) {
  while (!steps_.empty()) {
    if (is_cancelled.load(std::memory_order_relaxed))
      return false;
    DoFirst();
  }
  return true;
}

bool DecodeQueue::RunStacks(const std::atomic<bool>& is_cancelled) {
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

void DecodeQueue::DoFirst() {
  const Entry& entry = steps_.front();
  if (std::holds_alternative<StackStep>(entry.step))
    --stack_steps_;
  entry.decoder->Do(entry.step);
  steps_.pop_front();
}

void DecodeQueue::Run() {
  const std::atomic<bool> is_cancelled = false;
  Run(is_cancelled);
}

}  // namespace heapprofd
