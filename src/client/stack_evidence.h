// What a sample says about its stack: the keys that the engine does not know yet, a copy
// where the rules do not suffice or are to be checked, and the hash of the frames outside
// of these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/session.h"
#include "client/stack.h"
#include "wire/records.h"

namespace heapprofd {

// What of a stack goes into the record.
struct StackEvidence {
  StackMemo* memo = nullptr;  // holds the keys
  uint16_t key_count = 0;
  uint64_t hash = 0;        // of a complete walk, else 0
  uint64_t outer_hash = 0;  // of its frames outside of the keys
  Cursor copy_from;
  uint64_t copy_size = 0;
  Cursor anchor;
  uint8_t flags = 0;
  uint64_t labels = 0;

  size_t PayloadSize() const {
    return sizeof(SampleRecord) + (labels != 0 ? sizeof(labels) : 0) +
           size_t{key_count} * 8 +
           ((flags & kSampleHasStackCopy) != 0 ? sizeof(StackCopyHeader) + copy_size : 0);
  }
};

// Takes the calling thread's stack from `caller` outward. `memo`: nullptr when there is
// none to be had. `is_check`: a copy goes with a complete walk, too.
StackEvidence TakeStack(const Cursor& caller,
                        const ThreadSlot& slot,
                        StackMemo* memo,
                        bool is_check);

// Asks early for the memory that LeaveOutKnownFrames will need.
void PrefetchKnownStack(const StackEvidence& evidence);

// Leaves only those keys in the record that the engine does not have yet.
void LeaveOutKnownFrames(StackEvidence& evidence);

// The record, which ends at this ring position, is there: later ones can refer to its
// frames.
void RememberSent(const StackEvidence& evidence, uint64_t record_end);

}  // namespace heapprofd
