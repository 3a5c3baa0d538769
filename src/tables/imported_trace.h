// A trace in memory, as tables: what the reader makes of a file, and what conversions and
// SQL queries read.
//
// Large tables are columns; ids are row numbers, dense, from 0, and kNoId
// (profile/model.h) stands for NULL. Names and meanings are those of Perfetto's SQL
// tables where it has such a table; what only our own traces have is marked so. Times are
// nanoseconds of the trace clock (CLOCK_BOOTTIME unless the trace says otherwise). Text
// is as the trace has it: any bytes, function names mangled.
//
// Filled through TraceBuilder (tables/trace_builder.h), by whoever reads a format; not
// changed after that. Texts and rows are interned: the same mapping, frame or callsite is
// one row, whatever process or packet it came from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/column.h"
#include "base/small_numbers.h"
#include "base/string_pool.h"
#include "profile/model.h"
#include "profile/recording_end.h"
#include "tables/clock_table.h"
#include "tables/heap_graph.h"
#include "tables/trace_stats.h"

namespace heapprofd {

inline constexpr size_t kMostTableRows = kNoId - 1;  // their numbers are ids

// `process`. Row 0 stands for the kernel's idle process and for what belongs to none.
struct ImportedProcess {
  int64_t pid = 0;
  StringId name = kNoId;     // first element of the command line
  StringId cmdline = kNoId;  // all elements, joined by blanks
  std::optional<int64_t> start_ts;
  std::optional<int64_t> uid;
  uint32_t parent_upid = kNoId;
  bool name_is_comm = false;  // cut at 15 bytes by the kernel
  uint32_t end = kNoId;       // ours: -> ImportedTrace::process_ends
};

// `thread`. Row 0 is the idle thread.
struct ImportedThread {
  int64_t tid = 0;
  uint32_t upid = kNoId;
  StringId name = kNoId;
  bool is_main = false;
};

// `stack_profile_mapping`.
struct ImportedMapping {
  StringId build_id = kEmptyString;  // lower-case hexadecimal
  StringId name = kEmptyString;      // "/usr/lib/libc.so.6", "/[vdso]", "" when anonymous
  uint64_t exact_offset = 0;
  uint64_t start_offset = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t load_bias = 0;
};

// `stack_profile_frame`.
struct FrameTable {
  Column<StringId> name;  // as linkers know it; kEmptyString: unknown
  Column<uint32_t> mapping;
  Column<uint64_t> rel_pc;
  Column<uint32_t> symbol_set;         // first row in SymbolTable; kNoId: not symbolized
  Column<StringId> deobfuscated_name;  // kNoId: NULL
  Column<StringId> type;               // "native", "jit", ...; kNoId: NULL

  size_t row_count() const { return name.size(); }

  // The name that people gave the function, where it is known.
  StringId ShownName(size_t row) const {
    return deobfuscated_name[row] != kNoId ? deobfuscated_name[row] : name[row];
  }
};

// `stack_profile_callsite`: a stack is a leaf and its parents, which have smaller ids.
struct CallsiteTable {
  Column<uint32_t> parent;  // kNoId at depth 0
  Column<uint32_t> frame;
  SmallNumbers depth;  // 0: outermost

  size_t row_count() const { return parent.size(); }
};

// The other form of callsites, for conversions (TraceBuilder::ReadForConversion): each
// stack as a whole, once.
struct StackTable {
  Column<uint32_t> frames;  // of all stacks; of each the outermost first
  Column<uint32_t> end;     // in `frames`; a stack begins where the row before it ends

  size_t row_count() const { return end.size(); }

  std::span<const uint32_t> FramesOf(uint32_t row) const {
    const uint32_t begin = row == 0 ? 0 : end[row - 1];
    return frames.span().subspan(begin, end[row] - begin);
  }
};

// `stack_profile_symbol`: the functions of one address are consecutive rows with the same
// set, the innermost inlined one first; the set's id is its first row. All but the last
// of a set were inlined.
struct SymbolTable {
  Column<uint32_t> set;
  Column<StringId> name;
  Column<StringId> source_file;  // kNoId: NULL
  Column<uint32_t> line;         // 0: NULL

  size_t row_count() const { return set.size(); }

  // One past the last row of the set that begins at `first`.
  size_t EndOf(uint32_t first) const {
    size_t row = first;
    while (row < set.size() && set[row] == first)
      ++row;
    return row;
  }
};

// `heap_profile_allocation`: what changed at one callsite between two dumps of a heap.
// The rows of a dump are consecutive (ImportedDump::first_allocation), and dumps are in
// the order of the file. Per callsite and dump there is at most one row with what was
// allocated
// (>= 0) and one with what was freed (<= 0) for each stack id of the trace; rows in which
// nothing changed are left out. Sums over all dumps of a heap up to a time are the totals
// at that time. Dumps of the peak (dump_at_max) hold the change of the peak's figures.
// Rows from ImportedDump::first_live_row on are of files of other tools: live memory that
// the file's allocated figures do not include, so that each sum is the file's own.
struct AllocationTable {
  Column<uint32_t> dump;      // -> ImportedTrace::dumps: ts, upid, heap_name
  Column<uint32_t> callsite;  // -> CallsiteTable; for conversions StackTable
  Column<int64_t> count;
  Column<int64_t> size;

  size_t row_count() const { return dump.size(); }
};

// Ours: what estimates are worth, per dump and callsite; no deltas: the state at the
// dump. Not for conversions. Only in our traces, and only for callsites that were
// sampled. The rows of a dump are consecutive (ImportedDump::first_estimate).
struct EstimateTable {
  Column<uint32_t> dump;
  Column<uint32_t> callsite;
  Column<double> live_bytes_error;  // standard errors
  Column<double> live_count_error;
  Column<double> allocated_bytes_error;
  Column<double> alloc_count_error;
  Column<int64_t> peak_bytes;  // live here when the whole heap was largest
  Column<int64_t> peak_count;
  Column<int64_t> idle_bytes;  // not touched since ImportedDump::idle_ts

  size_t row_count() const { return dump.size(); }
};

// Ours: what stands beside a dump of the peak (dump_at_max): the state at its end. The
// rows of a dump are consecutive.
struct CumulativeTable {
  Column<uint32_t> dump;
  Column<uint32_t> callsite;
  Column<int64_t> alloc_size;
  Column<int64_t> alloc_count;
  Column<int64_t> free_size;
  Column<int64_t> free_count;
  Column<double> live_size_error;  // standard errors
  Column<double> live_count_error;
  Column<double> alloc_size_error;
  Column<double> alloc_count_error;

  // Those of a dump.
  std::pair<size_t, size_t> RowsOf(uint32_t id) const {
    const std::span<const uint32_t> dumps = dump.span();
    const auto [first, last] = std::equal_range(dumps.begin(), dumps.end(), id);
    return {static_cast<size_t>(first - dumps.begin()),
            static_cast<size_t>(last - dumps.begin())};
  }

  size_t row_count() const { return dump.size(); }
};

// Ours: the blocks of a callsite in the last dump of a heap whose size or time is at
// least 2^log2 and less than twice that (profile/model.h). Not for conversions.
struct ShapeTable {
  Column<uint32_t> dump;
  Column<uint32_t> callsite;
  Column<uint8_t> kind;  // ShapeKind
  Column<uint8_t> log2;
  Column<int64_t> count;
  Column<int64_t> size;        // bytes
  Column<double> count_error;  // standard errors
  Column<double> size_error;
  Column<uint32_t> utid;  // that allocated them; kNoId: threads are not told apart

  size_t row_count() const { return dump.size(); }
};

// Ours, where it was asked for: sampled blocks that were live at the last dump of a heap.
// Not for conversions. Empty as a rule, for addresses are nobody else's business.
struct LiveBlockTable {
  Column<uint32_t> dump;
  Column<uint32_t> callsite;
  Column<uint64_t> address;
  Column<uint64_t> size;  // bytes asked for

  size_t row_count() const { return dump.size(); }
};

// Ours: what a thread had allocated in a heap up to a dump, and what of that was freed by
// whomever. The rows of a dump are consecutive.
struct ThreadTotals {
  uint32_t dump = 0;
  uint32_t utid = kNoId;  // kNoId: threads that are not told apart
  int64_t alloc_size = 0;
  int64_t alloc_count = 0;
  int64_t free_size = 0;
  int64_t free_count = 0;
  double live_size_error = 0;  // standard errors
  double live_count_error = 0;
  double alloc_size_error = 0;
  double alloc_count_error = 0;
};

// ProfilePacket.ProcessStats: totals since the session's start.
struct DumpStats {
  uint64_t unwinding_errors = 0;
  uint64_t heap_samples = 0;
  uint64_t map_reparses = 0;
  uint64_t total_unwinding_time_us = 0;
  uint64_t client_spinlock_blocked_us = 0;
};

// What the C library said about its heap at a dump, in bytes.
struct ImportedAllocator {
  StringId name = kNoId;  // kNoId: it was not asked, the figures mean nothing
  uint64_t system = 0;    // taken from the kernel
  uint64_t in_use = 0;
  uint64_t free = 0;
};

// One dump of one heap of one process: `heap_profile`, and ours. A process without any
// sample has a dump without rows; it says why.
struct ImportedDump : HeapCounts {
  uint32_t upid = 0;
  StringId heap_name = kEmptyString;  // "unknown" when the trace names none
  int64_t ts = 0;                     // trace clock: the moment of the dump
  std::optional<int64_t>
      start_ts;                   // trace clock: the previous dump, or profiling's start
  uint32_t first_allocation = 0;  // rows in AllocationTable
  uint32_t allocation_count = 0;
  uint32_t first_live_row = kNoId;  // of its rows: from here on what is live, and is not
                                    // among what was allocated (`told`)
  uint32_t first_estimate = 0;      // rows in EstimateTable
  uint32_t estimate_count = 0;
  uint64_t sampling_interval = 0;           // bytes; 0: not told
  uint64_t original_sampling_interval = 0;  // bytes
  uint32_t client_error = 0;                // ClientError: 1 timeout, 2 bad stack bounds
  bool from_startup = false;
  bool rejected_concurrent = false;
  bool disconnected = false;
  bool buffer_overran = false;
  bool buffer_corrupted = false;
  bool hit_guardrail = false;
  bool is_peak = false;      // dump_at_max
  bool is_finalized = true;  // false: the end of its packets is missing
  ToldFigures told;          // files of other tools may give fewer
  DumpStats stats;
  uint32_t quality = kNoId;          // ours: -> ImportedTrace::qualities
  std::optional<uint64_t> live_low;  // ours: 95 % limits of the whole heap, bytes
  std::optional<uint64_t> live_high;
  uint64_t peak_bytes = 0;  // ours: of the whole heap
  std::optional<uint64_t> peak_low;
  std::optional<uint64_t> peak_high;
  std::optional<int64_t> peak_ts;  // ours: trace clock
  std::optional<int64_t> idle_ts;  // ours: trace clock; what is idle was so since
  std::optional<int64_t> idle_until_ts;
  std::optional<uint64_t> idle_unseen;  // bytes that may be idle as well
  StringId label = kNoId;               // ours: what `heap_profile mark` named it
  StringId reason = kNoId;              // ours: why there are no samples, for people
  ImportedAllocator allocator;          // ours
};

// `counter`-like: memory of a process over time, from ProcessStats; names are those of
// Perfetto's counters ("mem.rss.anon"), values bytes unless the name says otherwise.
struct ProcessCounter {
  int64_t ts = 0;
  uint32_t upid = 0;
  StringId name = kEmptyString;
  int64_t value = 0;
};

// `heap_profile_unsampled_children`, ours.
struct ImportedChildren {
  uint32_t upid = 0;  // whose
  ForkedChildren counts;
};

// `profiler_smaps`. Columns that the packet did not have are NULL.
struct ImportedSmaps {
  uint32_t upid = 0;
  int64_t ts = 0;
  StringId path = kEmptyString;
  StringId file_name = kNoId;
  StringId module_debugid = kNoId;
  StringId module_debug_path = kNoId;
  std::optional<int64_t> aggregate_count;
  std::optional<int64_t> start_address;
  std::optional<int64_t> module_timestamp;
  std::optional<int64_t> protection_flags;
  std::optional<int64_t> size_kb;
  std::optional<int64_t> rss_kb;
  std::optional<int64_t> anonymous_kb;
  std::optional<int64_t> swap_kb;
  std::optional<int64_t> private_dirty_kb;
  std::optional<int64_t> private_clean_kb;
  std::optional<int64_t> shared_dirty_kb;
  std::optional<int64_t> shared_clean_kb;
  std::optional<int64_t> locked_kb;
  std::optional<int64_t> pss_kb;
  std::optional<int64_t> pss_dirty_kb;
  std::optional<int64_t> swap_pss_kb;
};

// `package_list`.
struct ImportedPackage {
  StringId name = kEmptyString;
  int64_t uid = 0;
  int64_t version_code = 0;
  bool debuggable = false;
  bool profileable_from_shell = false;
};

// `metadata`: a number or a text.
struct ImportedMetadata {
  StringId name = kEmptyString;
  std::optional<int64_t> int_value;
  StringId str_value = kNoId;
};

struct ImportedTrace {
  StringPool strings;
  ClockTable clocks;
  uint32_t trace_clock = kClockBoottime;

  std::vector<ImportedProcess> processes;
  std::vector<uint32_t>
      file_ends;  // by file it is read from: one behind its last process
  std::vector<ImportedThread> threads;
  std::vector<ImportedMapping> mappings;
  FrameTable frames;
  CallsiteTable callsites;
  StackTable stacks;  // instead of callsites, whose ids are then rows here
  SymbolTable symbols;

  std::vector<ImportedDump> dumps;  // in the order of the file
  AllocationTable allocations;
  EstimateTable estimates;
  CumulativeTable cumulative;
  ShapeTable shapes;
  LiveBlockTable live_blocks;
  std::vector<ThreadTotals> thread_totals;
  std::vector<Quality> qualities;

  HeapGraphTables heap_graph;
  std::vector<ProcessCounter> counters;
  std::vector<ImportedChildren> unsampled_children;
  std::vector<ProcessEnd> process_ends;       // ours; in the recorder's order
  uint64_t process_end_bytes = 0;             // memory of all of them
  std::optional<RecordingEnd> recording_end;  // ours; without processes
  bool is_cut = false;                        // a file of it could not be read to its end
  std::string trace_config;  // TraceConfig, serialized; of several files the first
  std::vector<ImportedSmaps> smaps;
  std::vector<ImportedPackage> packages;
  std::vector<ImportedMetadata> metadata;
  TraceStats stats;

  std::string_view Text(StringId id) const { return strings.Get(id); }

  // How many rows a column `callsite` may name: of `callsites`, or of `stacks`.
  size_t callsite_limit() const {
    return stacks.row_count() > 0 ? stacks.row_count() : callsites.row_count();
  }
};

}  // namespace heapprofd
