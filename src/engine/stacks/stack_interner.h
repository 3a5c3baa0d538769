// Gives stacks, which clients tell by the keys of their frames, their callsites. Clients
// name what they have told before by its hash: every stack, and the outer parts of each.
//
// One thread: the session's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "engine/stacks/known_stacks.h"
#include "profile/callsite_interner.h"
#include "profile/model.h"
#include "unwind/address_space.h"
#include "wire/ring_reader.h"
#include "wire/shared_memory.h"

namespace heapprofd {

class StackInterner {
 public:
  // What it works on; all outlive it. `profile` gets what its quality says about stacks
  // that are lost and frames that are nowhere.
  struct Parts {
    TargetProfile* profile;
    CallsiteInterner* interner;
    AddressSpace* code;
    const RingReader* reader;  // that records come from
    SessionControl* control;
    // The maps may have been read anew. Calls ForgetCode if other code lies where code was.
    std::function<void()> look_at_code;
  };

  explicit StackInterner(Parts parts) : parts_(std::move(parts)) {}

  // The callsite of `keys`, innermost first.
  CallsiteId Intern(std::span<const uint64_t> keys);

  // The same inside of the stack with this hash. One that never arrived has clients send
  // every stack anew.
  CallsiteId InternInside(uint64_t outer_hash, std::span<const uint64_t> keys);

  // A stack of one frame that is no code: "[stack lost]" and the like.
  CallsiteId Named(const std::string& name);

  // Keys may mean something else from now on. Clients send all frames of every stack
  // again.
  void ForgetCode();

  // Lets the processor fetch what a sample of a stack with this hash will read.
  void Prefetch(uint64_t hash) const { stacks_.Prefetch(hash); }

  // What it takes of our memory, beside the profile.
  size_t bytes() const { return stacks_.bytes() + frames_.bytes(); }

 private:
  void AskForAllStacks();
  CallsiteId Extend(CallsiteId outer, std::span<const uint64_t> keys);
  CallsiteId ExtendKnown(CallsiteId outer,
                         uint64_t outer_hash,
                         std::span<const uint64_t> keys);
  FrameId FrameOf(uint64_t key);
  void ForgetStacks();

  Parts parts_;
  KnownStacks stacks_;
  std::vector<uint64_t> prefix_hashes_;  // of ExtendKnown, to keep its memory
  FlatMap<FrameId> frames_;              // by key
  uint64_t forgotten_codes_ = 0;         // how often ForgetCode was called
  uint32_t stacks_epoch_ = 0;            // as it was published last
};

}  // namespace heapprofd
