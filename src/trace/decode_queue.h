// What of a trace is still to be decoded.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>

#include "trace/profile_decoder.h"

namespace heapprofd {

class DecodeQueue {
 public:
  bool empty() const { return steps_.empty(); }

  // The queue keeps the decoder as long as it needs it.
  void Push(std::shared_ptr<ProfileDecoder> decoder, DecodeStep step);

  // Does the steps in their order. False: `is_cancelled` was set meanwhile; what is left
  // can be done later.
  bool Run(const std::atomic<bool>& is_cancelled);
  void Run();

  // The same when nothing will be pushed or interned after that: what only stacks need is
  // freed before the first step that comes after the last of them. `builder` is that of
  // the decoders.
  bool Finish(TraceBuilder& builder, const std::atomic<bool>& is_cancelled);

 private:
  struct Entry {
    std::shared_ptr<ProfileDecoder> decoder;
    DecodeStep step;
  };

  void DoFirst();

  std::deque<Entry> steps_;
  size_t stack_steps_ = 0;
};

}  // namespace heapprofd
