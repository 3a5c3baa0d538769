// The figures of a recording and of each dump, each told once: here is its member, and its
// row in a table. Whatever shows or keeps them goes through the tables: the trace's writer
// and reader, SQL, the figures in JSON, the comments of pprof files.
#pragma once

#include <array>
#include <cstdint>

namespace heapprofd {

// Times of unwinding: [i] those of less than 2^i us, the last one all others.
inline constexpr size_t kUnwindTimeBuckets = 20;
using UnwindTimes = std::array<uint64_t, kUnwindTimeBuckets>;

// How far the recording can be trusted: counts since the session's start, which kFigures
// explains.
struct Quality {
  uint64_t samples = 0;
  uint64_t walked_samples = 0;
  uint64_t copied_samples = 0;
  uint64_t checked_samples = 0;
  uint64_t agreed_samples = 0;
  uint64_t settled_samples = 0;
  uint64_t settled_copies = 0;
  uint64_t lost_records = 0;
  uint64_t lost_samples = 0;
  uint64_t corrupt_records = 0;
  uint64_t cut_records = 0;
  uint64_t truncated_stacks = 0;
  uint64_t unknown_stacks = 0;
  uint64_t unmapped_frames = 0;
  uint64_t postponed_frames = 0;
  uint64_t late_files = 0;
  uint64_t gone_files = 0;
  uint64_t unwind_errors = 0;
  uint64_t late_stacks = 0;
  uint64_t hidden_stacks = 0;
  uint64_t unwind_time_us = 0;
  UnwindTimes unwind_times = {};
  uint64_t map_reparses = 0;
  uint64_t threads_without_slot = 0;
  uint64_t reports_without_slot = 0;
  uint64_t refused_samples = 0;
  uint64_t refused_dumps = 0;
  uint64_t refused_marks = 0;
  uint64_t unshaped_blocks = 0;
  uint64_t unlisted_blocks = 0;
  uint64_t deepbind_opens = 0;
  uint64_t namespace_opens = 0;
  uint64_t unsampled_calls = 0;
  uint64_t unsampled_bytes = 0;
};

struct Figure {
  const char* name;  // in SQL and JSON
  uint32_t field;    // of ProcessHeapSamples.Quality in proto/trace.proto
  uint64_t Quality::*value;
  const char* meaning;
  bool is_fault = false;  // more than 0: something is missing, or worse than it could be
};

constexpr bool kIsFault = true;

constexpr auto kFigures = std::to_array<Figure>({
    {"samples", 1, &Quality::samples, "allocations that were sampled"},
    {"walked_samples", 2, &Quality::walked_samples,
     "samples whose stack the program walked itself"},
    {"copied_samples", 3, &Quality::copied_samples,
     "samples whose stack was copied and unwound by the profiler"},
    {"checked_samples", 4, &Quality::checked_samples,
     "samples for which both ways were compared"},
    {"agreed_samples", 5, &Quality::agreed_samples,
     "compared samples for which both ways gave the same stack"},
    {"settled_samples", 19, &Quality::settled_samples,
     "samples taken after the program's first second"},
    {"settled_copies", 20, &Quality::settled_copies,
     "settled samples whose stack was copied"},
    {"lost_records", 6, &Quality::lost_records,
     "records that did not fit into the buffer", kIsFault},
    {"lost_samples", 7, &Quality::lost_samples, "lost records that were samples"},
    {"corrupt_records", 8, &Quality::corrupt_records, "records that made no sense",
     kIsFault},
    {"cut_records", 17, &Quality::cut_records,
     "records that a thread was writing when its process ended"},
    {"truncated_stacks", 9, &Quality::truncated_stacks,
     "stacks whose outermost frames are missing", kIsFault},
    {"unknown_stacks", 10, &Quality::unknown_stacks, "samples whose stack never arrived",
     kIsFault},
    {"unmapped_frames", 11, &Quality::unmapped_frames,
     "return addresses outside every known file"},
    {"postponed_frames", 16, &Quality::postponed_frames,
     "return addresses that were not looked up at once: the memory map is too long to be "
     "read for each"},
    {"late_files", 18, &Quality::late_files,
     "mapped files that did not open in time at first: code of theirs was unknown until "
     "they did",
     kIsFault},
    {"gone_files", 29, &Quality::gone_files,
     "mapped files of code that were gone, or could not be opened, when they were first "
     "looked at: stacks may end there",
     kIsFault},
    {"unwind_errors", 12, &Quality::unwind_errors,
     "copied stacks that could not be unwound", kIsFault},
    {"late_stacks", 30, &Quality::late_stacks,
     "of these: their process had ended before its code was looked at", kIsFault},
    {"hidden_stacks", 33, &Quality::hidden_stacks,
     "stacks that end at a return probe of the kernel, which hides the callers",
     kIsFault},
    {"unwind_time_us", 13, &Quality::unwind_time_us,
     "time spent unwinding copied stacks"},
    {"map_reparses", 21, &Quality::map_reparses, "times the memory map was read again"},
    {"threads_without_slot", 14, &Quality::threads_without_slot,
     "threads beyond the number that can be profiled", kIsFault},
    {"reports_without_slot", 22, &Quality::reports_without_slot,
     "reported allocations of threads beyond the number that can be profiled", kIsFault},
    {"refused_samples", 15, &Quality::refused_samples,
     "samples left out because too many were live", kIsFault},
    {"refused_dumps", 23, &Quality::refused_dumps,
     "dumps that the program asked for and that were not made", kIsFault},
    {"refused_marks", 24, &Quality::refused_marks,
     "marks that the program set and that were not kept", kIsFault},
    {"unshaped_blocks", 25, &Quality::unshaped_blocks,
     "sizes and times of sampled blocks that histograms have of the heap alone, not of "
     "their stacks: there are too many",
     kIsFault},
    {"unlisted_blocks", 26, &Quality::unlisted_blocks,
     "live sampled blocks that a list of them, where one was asked for, does not have: "
     "there are too many",
     kIsFault},
    {"deepbind_opens", 31, &Quality::deepbind_opens,
     "calls of dlopen with RTLD_DEEPBIND that lead past the profiler to the C library",
     kIsFault},
    {"namespace_opens", 32, &Quality::namespace_opens,
     "calls of dlmopen into another namespace, whose C library is not recorded",
     kIsFault},
    {"unsampled_calls", 27, &Quality::unsampled_calls,
     "allocations of a forked child that were counted, but came too early to be sampled",
     kIsFault},
    {"unsampled_bytes", 28, &Quality::unsampled_bytes, "bytes of these"},
});

static_assert(sizeof(Quality) == sizeof(UnwindTimes) + kFigures.size() * sizeof(uint64_t),
              "every counter of Quality has its row");

// What is counted of one heap, in each of its dumps.
struct HeapCounts {
  uint64_t exact_alloc_bytes = 0;  // all that were allocated: counted, not sampled
  uint64_t exact_alloc_calls = 0;
};

struct HeapCount {
  const char* column;  // of heap_dump in SQL
  uint32_t field;      // of ProcessHeapSamples in proto/trace.proto
  uint64_t HeapCounts::*value;
};

constexpr auto kHeapCounts = std::to_array<HeapCount>({
    {"exact_alloc_size", 10003, &HeapCounts::exact_alloc_bytes},
    {"exact_alloc_count", 10002, &HeapCounts::exact_alloc_calls},
});

static_assert(sizeof(HeapCounts) == kHeapCounts.size() * sizeof(uint64_t),
              "every count of a heap has its row");

// Over several processes.
inline Quality& operator+=(Quality& sum, const Quality& more) {
  for (const Figure& figure : kFigures)
    sum.*figure.value += more.*figure.value;
  for (size_t i = 0; i < sum.unwind_times.size(); ++i)
    sum.unwind_times[i] += more.unwind_times[i];
  return sum;
}

}  // namespace heapprofd
