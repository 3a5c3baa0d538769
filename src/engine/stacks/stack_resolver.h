// From what the client says about a stack to a callsite; learning rules, comparing them
// with full unwinding, and forgetting what was derived from code that is gone.
//
// One thread: the session's. The client reads the rules and epochs while they are
// written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/stacks/called_functions.h"
#include "engine/stacks/code_watch.h"
#include "engine/stacks/labels.h"
#include "engine/stacks/shown_regions.h"
#include "engine/stacks/stack_interner.h"
#include "engine/target/sample_parts.h"
#include "engine/tsc_clock.h"
#include "profile/callsite_interner.h"
#include "profile/model.h"
#include "unwind/address_space.h"
#include "unwind/stack_unwinder.h"
#include "walk/rule_writer.h"
#include "wire/memory_files.h"
#include "wire/ring_reader.h"

namespace heapprofd {

class StackResolver {
 public:
  // What a resolver works on; all outlive it. `profile` gets frames, callsites, and what
  // `quality` says about stacks.
  struct Parts {
    TargetProfile* profile;
    SharedMemory* memory;
    const RingReader* reader;  // that records come from
    AddressSpace* code;
    const TscClock* clock;
  };

  explicit StackResolver(const Parts& parts);

  // The callsite of a sample, with the function that was called and its labels.
  // `may_grow`: its user has memory for more stacks. `is_settled`: most code has been
  // seen.
  CallsiteId CallsiteOf(const SampleParts& sample, bool may_grow, bool is_settled) {
    CallsiteId callsite =
        IsFull() || !may_grow ? TooManyStacks() : StackOf(sample, is_settled);
    if (!IsFull())
      callsite = called_.Intern(callsite, sample.record.function);
    if (sample.labels != 0 && !IsFull())
      callsite = labels_.Intern(callsite, sample.labels, memory_->client());
    return callsite;
  }

  // Stands for stacks that there is no room for.
  CallsiteId TooManyStacks() { return stacks_.Named("[too many stacks]"); }

  // The client has unloaded modules.
  void OnModulesChanged();

  // The same when that could not be looked at before.
  void LookAtLateChange();

  // Tells the client which memory may hold stacks.
  void ShowRegions();

  // Lets the processor fetch what a sample of a stack with this hash will read.
  void Prefetch(uint64_t hash) const { stacks_.Prefetch(hash); }

  // Grows with each record that took long to resolve.
  uint64_t dear_steps() const { return copies_ + code_->refreshes(); }

  // What it takes of our memory, beside the profile.
  size_t bytes() const { return stacks_.bytes(); }

 private:
  static constexpr size_t kMaxCallsites = 8'000'000;

  bool IsFull() const { return profile_->callsites.size() > kMaxCallsites; }

  CallsiteId StackOf(const SampleParts& sample, bool is_settled);
  CallsiteId UnwindCopy(const SampleParts& sample, bool is_settled);
  UnwoundStack UnwindAndLearn(const SampleParts& sample);
  void CheckAgreement(const SampleParts& sample);
  void ForgetReplacedCode();
  void ForgetCode();

  TargetProfile* profile_;
  SharedMemory* memory_;
  AddressSpace* code_;
  StackUnwinder unwinder_;
  CallsiteInterner interner_;
  CalledFunctions called_;
  LabelledCallsites labels_;
  CodeWatch watch_;
  ShownRegions regions_;
  StackInterner stacks_;
  RuleWriter rules_;
  uint64_t copies_ = 0;  // of stacks that were sent
};

}  // namespace heapprofd
