// What a profile is, in memory: mappings, frames, callsites and the estimates that hang
// on them. No I/O.
//
// One TargetProfile per profiled process image (an exec starts a new one). Ids are dense
// indices into its vectors and never change, so writers can keep maps from id to what
// they have already written.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/shared_text.h"
#include "profile/callsite_rows.h"
#include "profile/figures.h"
#include "profile/told_figures.h"

namespace heapprofd {

using MappingId = uint32_t;
using FrameId = uint32_t;
using CallsiteId = uint32_t;
using ThreadId = uint32_t;  // index in TargetProfile::threads, not the kernel's

inline constexpr uint32_t kNoId = UINT32_MAX;

// Stands for the threads that nothing is known about, and for those beyond the limit.
inline constexpr ThreadId kUnknownThread = 0;

// An executable mapping of the target, with the meanings that Perfetto gives to these
// fields.
struct Mapping {
  uint64_t start = 0;         // first address of the executable mapping
  uint64_t end = 0;           // one past its last address
  uint64_t exact_offset = 0;  // file offset of `start`
  uint64_t start_offset =
      0;  // file offset at which the ELF image begins (0 but for images inside archives)
  uint64_t load_bias = 0;  // p_vaddr - p_offset of the PT_LOAD that is mapped here
  std::string path;        // as the target sees it; "[vdso]", "" when anonymous
  std::string build_id;    // raw bytes, empty when the image has none

  // The address inside the ELF image, as symbol tables and DWARF use it.
  uint64_t ToRelPc(uint64_t pc) const {
    return pc - start + exact_offset - start_offset + load_bias;
  }
};

// One function at one address; an address with inlined calls has several, the innermost
// first.
struct SourceLine {
  SharedText function;     // demangled for people
  SharedText system_name;  // as the linker knows it; empty for inlined functions without
                           // one
  SharedText file;         // empty when unknown
  uint32_t line = 0;       // 0 when unknown
};

struct Frame {
  MappingId mapping = kNoId;  // kNoId: no mapping held this address
  uint64_t rel_pc =
      0;  // ELF address inside the instruction; absolute address without mapping
  std::vector<SourceLine> lines;  // filled by symbolization; empty: unknown
  bool is_label = false;  // no code: the first line's function is a label, "key=value"
  bool is_allocator = false;  // no code: the first line is the allocation function that
                              // the program called, the innermost frame of its stacks
};

// Node of the callsite tree: a stack is a leaf and its parents. Parents have smaller ids
// than children.
struct Callsite {
  CallsiteId parent = kNoId;
  FrameId frame = kNoId;
};

// Unbiased estimate of a sum over allocations, from samples with known inclusion
// probability p: each sample adds 1/p to the count and size/p to the bytes, and (1-p)/p²
// and size²(1-p)/p² to the variances (Horvitz-Thompson estimator for Poisson sampling).
struct Estimate {
  double bytes = 0;
  double count = 0;
  double bytes_variance = 0;
  double count_variance = 0;

  Estimate& operator+=(const Estimate& other) {
    bytes += other.bytes;
    count += other.count;
    bytes_variance += other.bytes_variance;
    count_variance += other.count_variance;
    return *this;
  }

  Estimate& operator-=(const Estimate& other) {
    bytes -= other.bytes;
    count -= other.count;
    bytes_variance -= other.bytes_variance;
    count_variance -= other.count_variance;
    return *this;
  }

  friend Estimate operator+(Estimate a, const Estimate& b) { return a += b; }

  friend Estimate operator-(Estimate a, const Estimate& b) { return a -= b; }
};

// A figure as it is shown: with limits that hold it with 95 % probability, equal to it
// when nothing is left to chance (profile/limits.h).
struct BoundedBytes {
  double bytes = 0;
  double low = 0;
  double high = 0;
};

// Cumulative since the session's start; never decrease.
struct CallsiteTotals {
  Estimate allocated;
  Estimate freed;

  Estimate live() const { return allocated - freed; }
};

enum class ShapeKind : uint8_t {
  kAllocatedSize = 0,  // bytes asked for, of all blocks
  kLifetime = 1,       // ns, of freed blocks
  kTemporary = 2,      // freed by the thread that allocated them within kTemporaryNs
  kLiveSize = 3,       // bytes asked for, of live blocks
  kAge = 4,            // ns, of live blocks
};

// The blocks of a callsite whose size or time is at least 2^log2 and less than twice
// that; 0 counts as 1, and all temporary blocks are in one row.
struct ShapeRow {
  CallsiteId callsite = 0;  // kNoId: all for which there was no room
  ShapeKind kind = ShapeKind::kAllocatedSize;
  uint8_t log2 = 0;
  ThreadId thread = kUnknownThread;  // that allocated them; only sizes have it
  Estimate estimate = {};
};

// A sampled block that is live.
struct LiveBlock {
  uint64_t address = 0;
  uint64_t size = 0;  // bytes asked for
  CallsiteId callsite = 0;
};

// What of live blocks nobody has touched from `since_ns` to `until_ns`, by the kernel's
// idle page tracking.
struct IdleBlocks {
  bool was_asked_for = false;
  uint64_t since_ns = 0;    // CLOCK_MONOTONIC; 0: it is not known what is idle
  uint64_t until_ns = 0;    // when it was looked at
  double unseen_bytes = 0;  // estimate of what may be idle as well: not to be looked at
  CallsiteRows<Estimate> callsites = {};  // bytes; only those with some
};

// What one heap of one process looked like at one moment.
struct HeapDump : HeapCounts {
  std::string heap_name;                    // "libc.malloc"
  uint64_t sampling_interval = 0;           // bytes, at the dump
  uint64_t original_sampling_interval = 0;  // bytes, at the start
  uint64_t start_ns =
      0;  // CLOCK_MONOTONIC: the previous dump of this heap, or the start of profiling
  uint64_t end_ns = 0;                     // CLOCK_MONOTONIC: the moment of the dump
  CallsiteRows<CallsiteTotals> callsites;  // only those that ever had a sample
  // Live estimate per callsite when total live was highest; of peak_total.
  CallsiteRows<Estimate> peak;
  uint64_t peak_ns = 0;  // CLOCK_MONOTONIC, 0 when nothing was ever live
  BoundedBytes peak_total;
  double certain_live = 0;  // bytes of live allocations that could not miss being sampled
  double possible_live =    // bytes: by exact counts no more can be live
      std::numeric_limits<double>::infinity();
  IdleBlocks idle;
  std::vector<CallsiteTotals> threads;  // by ThreadId of who allocated, whoever freed
  std::vector<ShapeRow> shapes;   // in the last dump only, in order of their members
  std::vector<LiveBlock> blocks;  // as well, and only when asked for; by address
  double unsampled_bytes = 0;  // of exact_alloc_bytes: no sample could be taken of them
  ToldFigures told;            // files of others may give fewer
};

// Why and how a target left, and how the session went for it.
enum class TargetEnd : uint8_t {
  kRunning,  // still alive at the dump
  kExited,   // process gone
  kExeced,   // became another program
};

// What the client reported about itself; Perfetto's numbers.
enum class ClientFault : uint8_t {
  kNone = 0,
  kHitTimeout = 1,  // an allocation waited for space in vain
};

// The process's memory as the kernel and its allocator count it, at the latest dump. KiB
// and bytes; 0 throughout: unknown.
struct MemoryContext {
  uint64_t rss_kib = 0;
  uint64_t anonymous_kib = 0;
  uint64_t swap_kib = 0;
  uint64_t pss_kib = 0;
  uint64_t private_dirty_kib = 0;
  double requested = 0;           // live bytes by our estimate at that moment
  std::string allocator;          // "glibc", "jemalloc"; empty: it was not asked
  uint64_t allocator_system = 0;  // bytes it holds from the system
  uint64_t allocator_in_use = 0;  // bytes in blocks that it has handed out
  uint64_t allocator_free = 0;    // bytes it holds back
};

// Forked children of a process that have not been recorded, because they took no sample:
// they ended before, or could not be. Their allocations are counted.
struct ForkedChildren {
  uint64_t count = 0;
  uint64_t uncounted = 0;  // of these: there were too many at once
  uint64_t alloc_calls = 0;
  uint64_t alloc_bytes = 0;
};

struct ProcessDescription {
  int32_t pid = 0;
  int32_t parent_pid = 0;
  uint32_t uid = 0;
  std::vector<std::string> cmdline;  // argv; {comm} when unreadable
  std::string executable;            // path, as the target sees it
  std::string comm;                  // the kernel's name for it: at most 15 bytes
  uint64_t start_ns = 0;             // CLOCK_MONOTONIC: start of profiling
};

// A thread that has allocated. One that has ended and another that got its id are told
// apart by nothing.
struct ThreadDescription {
  uint32_t tid = 0;  // as the process itself knows it; 0: unknown
  std::string name;  // that it had last; empty when unknown
};

// A moment that the program has named.
struct Mark {
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::string name;
};

struct TargetProfile {
  ProcessDescription process;
  bool from_startup = true;
  TargetEnd end = TargetEnd::kRunning;
  bool rejected_concurrent = false;  // another session profiles it: nothing else is set
  bool hit_guardrail = false;
  bool hooks_malloc = true;     // false: only heaps that the program reports can be seen
  std::string unhooked;         // the first function without a hook, and why; empty: none
  bool has_own_malloc = false;  // in its executable, where no preloaded library sees it
  ClientFault client_fault = ClientFault::kNone;
  std::string reason;  // why there are no samples, for people; empty: there are some
  MemoryContext memory;
  std::vector<Mapping> mappings;
  std::vector<Frame> frames;
  std::vector<Callsite> callsites;
  std::vector<ThreadDescription> threads;     // by ThreadId
  std::vector<HeapDump> heaps;                // state of the latest dump, one per heap
  std::vector<std::string> unrecorded_heaps;  // registered, but not selected
  std::vector<std::vector<HeapDump>>
      requested_dumps;  // that the program asked for and nobody has taken yet, in order;
                        // each like `heaps`
  std::vector<Mark> marks;  // in order
  ForkedChildren forked;
  std::vector<std::string> late_files;  // see Quality; paths as the process sees them
  Quality quality;
};

// Stands for the mapping of label frames (Frame::is_label) where every frame needs one.
inline constexpr char kLabelMappingName[] = "[label]";

// "libc.malloc", the name of the heap behind malloc & co.
inline constexpr char kMallocHeapName[] = "libc.malloc";

}  // namespace heapprofd
