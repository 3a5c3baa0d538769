// Records in the ring: what the client tells the engine. Every record begins on 8 bytes
// with a RecordHeader; its length is a multiple of 8.
//
// The writer is the target, so the reader copies a record out before it believes a field,
// and checks every length in the copy (ring_reader.h). A struct crosses here, never a
// pointer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/allocation_function.h"

namespace heapprofd {

enum class RecordType : uint8_t {
  kSample = 1,          // SampleRecord, then its labels, its frames, its stack copy
  kFree = 2,            // FreeRecord
  kModulesChanged = 3,  // no payload: a module was unloaded before this point
  kReallocFailed = 4,   // FreeRecord: undoes the kFree that preceded it
  kMark = 5,            // MarkRecord: the program names this moment
  kDumpNow = 6,         // MarkRecord: the program asks for a dump as of this moment
};

enum class RecordState : uint8_t {
  kFree = 0,
  kReserved = 1,   // the writer is filling it
  kCommitted = 2,  // complete
};

// Read and written as one 64-bit word. `tag` is made from the record's position, so that
// stale bytes of an earlier lap are not taken for a record.
struct RecordHeader {
  uint32_t tag;
  uint16_t words;  // length of the whole record in units of 8 bytes
  RecordType type;
  RecordState state;
};

static_assert(sizeof(RecordHeader) == 8);

inline uint32_t RecordTag(uint64_t position) {
  return static_cast<uint32_t>((position / 8 + 1) * 0x9e3779b97f4a7c15u >> 32);
}

inline constexpr size_t kMaxFrames = 512;
inline constexpr size_t kMaxStackCopy = size_t{256} * 1024;  // bytes
inline constexpr size_t kMaxRecordSize = size_t{65535} * 8;

// Larger numbers in a sample are made up: no process has more memory, no session a longer
// interval. Keeps sums of weights far away from the limits of a double.
inline constexpr uint64_t kMaxAllocation = uint64_t{1} << 56;       // bytes
inline constexpr uint64_t kMaxInterval = uint64_t{1} << 40;         // bytes
inline constexpr uint64_t kIntervalBits = (uint64_t{1} << 56) - 1;  // of a SampleRecord

enum SampleFlags : uint8_t {
  kSampleHasStackCopy = 1,  // a StackCopyHeader and bytes follow the frames
  kSampleIsCheck = 2,  // frames are complete, the copy is there to be compared with them
  kSampleTooDeep = 4,  // more than kMaxFrames frames: the outermost are missing
  kSampleForeignStack =
      8,  // not the thread's own stack and its bounds were unknown: copy is cut
  kSampleBadMemory = 16,  // the walk left the stack: the outermost frames are missing
  kSampleCut = 32,  // code without unwind information: the outermost frames are missing
  kSampleHasLabels = 64,  // 8 bytes of label ids follow the SampleRecord
};

struct SampleRecord {
  uint64_t address;
  uint64_t size;           // bytes the program asked for
  uint64_t tsc;            // time stamp counter at the call
  uint64_t outer_hash;     // of the outer frames that the engine knows already
                           // (walk/stack_hash.h); 0: none, and no complete walk
  uint64_t interval : 56;  // sampling interval in force, bytes
  uint64_t function : 8;   // AllocationFunction that was called
  uint32_t thread_id;      // kernel tid, 0 when unknown
  uint16_t frame_count;    // keys that follow, innermost first: the frames inside those
  uint8_t heap_id;
  uint8_t flags;  // SampleFlags
};

static_assert(sizeof(SampleRecord) == 48);

// Registers where the walk stopped (or began, for a check) and `size` bytes of stack from
// `sp` upward. Where the sample has an outer_hash and is no check, the copy ends at the
// innermost of those outer frames, whose registers are the anchor: an unwinder that comes
// to just these has the whole stack.
struct StackCopyHeader {
  uint64_t key;
  uint64_t sp;
  uint64_t bp;
  uint64_t size;  // multiple of 8
  uint64_t anchor_key = 0;
  uint64_t anchor_sp = 0;
  uint64_t anchor_bp = 0;  // 0: any
  uint64_t link = 0;       // LinkOf() of the first frame (walk/step.h)
};

struct FreeRecord {
  uint64_t address;
  uint64_t tsc;
  uint32_t thread_id;
  uint8_t heap_id;
  uint8_t is_realloc;  // 1: the block may come back by a kReallocFailed
  uint16_t reserved;
};

static_assert(sizeof(FreeRecord) == 24);

inline constexpr size_t kMarkNameSize = 64;  // with the terminating zero

struct MarkRecord {
  uint64_t tsc;
  char name[kMarkNameSize];
};

}  // namespace heapprofd
