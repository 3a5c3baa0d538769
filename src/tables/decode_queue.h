// What of a trace is still to be decoded. The queue belongs to the tables, which cannot
// be asked before it is empty; what decodes, to the format.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "tables/imported_trace.h"

namespace heapprofd {

class TraceBuilder;

// The ids of the interned data begin anew; those of ProfilePackets stay.
struct NewGeneration {};

// Frames that are known from here on, and callstacks that may refer to them.
struct StackStep {
  struct FrameId {
    uint64_t iid;
    uint32_t row;
  };

  bool is_interned_data = true;  // else of a ProfilePacket, whose ids are others
  std::vector<FrameId> frames;
  std::string message;  // holds the callstacks; empty: there are none
};

// A serialized ProcessHeapSamples, and what the headers of its dump say.
struct SampleStep {
  uint32_t dump = 0;
  uint32_t upid = 0;
  StringId heap_name = kEmptyString;
  bool frees_are_unknown = false;      // ART reports none
  bool peak_counts_are_wrong = false;  // those of writers that do not tell their interval
  std::string message;
};

using DecodeStep = std::variant<NewGeneration, StackStep, SampleStep>;

// Of one packet sequence.
class Decoder {
 public:
  virtual ~Decoder() = default;

  virtual void Do(const DecodeStep& step) = 0;

  // No StackStep follows: what only they need is freed.
  virtual void ForgetStacks() = 0;
};

class DecodeQueue {
 public:
  // `stats`: of the trace; they outlive it.
  explicit DecodeQueue(TraceStats* stats) : stats_(stats) {}

  ~DecodeQueue() { EndMeanwhile(); }

  // For decoders. What is noticed meanwhile is part of the trace's after that: what is told
  // of a trace that was read is the same however far a thread has come.
  TraceStats& stats() { return is_meanwhile_ ? stats_meanwhile_ : *stats_; }

  // Not while steps are done on another thread.
  bool empty() const { return steps_.empty(); }

  // From here on steps are done as they are pushed, on a thread of its own where there is
  // one to be had: those before the first SampleStep, which concern tables that whoever
  // reads packets does not touch. For who will decode in any case.
  void BeginMeanwhile();

  // The queue keeps the decoder as long as it needs it.
  void Push(std::shared_ptr<Decoder> decoder, DecodeStep step);

  // Does the steps in their order. False: `is_cancelled` was set meanwhile; what is left
  // can be done later.
  bool Run(const std::atomic<bool>& is_cancelled);
  void Run();

  // The same, and no more than the last StackStep takes: stacks do not change after that.
  bool RunStacks(const std::atomic<bool>& is_cancelled);

  // Run() when nothing will be pushed or interned after that: what only stacks need is
  // freed before the first step that comes after the last of them. `builder` is that of
  // the decoders.
  bool Finish(TraceBuilder& builder, const std::atomic<bool>& is_cancelled);

 private:
  struct Entry {
    std::shared_ptr<Decoder> decoder;
    DecodeStep step;
  };

  void DoFirst();
  Entry TakeFirst();
  void DoMeanwhile();
  void EndMeanwhile();

  std::deque<Entry> steps_;
  size_t stack_steps_ = 0;
  std::future<void> meanwhile_;  // has a state while a thread may work on the steps
  std::mutex mutex_;             // of all that follows and precedes, until then
  std::condition_variable pushed_;
  bool is_ending_ = false;
  bool is_meanwhile_ = false;  // changes only while there is no thread
  TraceStats stats_meanwhile_;
  TraceStats* stats_;
};

}  // namespace heapprofd
