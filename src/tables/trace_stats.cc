#include "tables/trace_stats.h"

#include <algorithm>

namespace heapprofd {
namespace {

constexpr StatKey kNoKey = StatKey::kNone;
constexpr StatKey kByPid = StatKey::kPid;
constexpr StatSeverity kInfo = StatSeverity::kInfo;
constexpr StatSeverity kLoss = StatSeverity::kDataLoss;
constexpr StatSeverity kError = StatSeverity::kError;

// clang-format off
constexpr StatDescription kDescriptions[] = {
    {StatId::kHeapprofdBufferCorrupted, "heapprofd_buffer_corrupted", kByPid, kError,
     "Dumps of a process whose ring buffer held what no client writes."},
    {StatId::kHeapprofdBufferOverran, "heapprofd_buffer_overran", kByPid, kLoss,
     "Dumps of a process that allocated faster than it could be profiled: a larger --shmem-size or --interval helps."},
    {StatId::kHeapprofdClientError, "heapprofd_client_error", kByPid, kError,
     "1: the client waited too long for buffer space; 2: a thread ran on a stack that is not its own."},
    {StatId::kHeapprofdClientDisconnected, "heapprofd_client_disconnected", kByPid, kInfo,
     "Dumps written after the process had left, usually because it ended."},
    {StatId::kHeapprofdHitGuardrail, "heapprofd_hit_guardrail", kByPid, kError,
     "Dumps of a session that ended because the profiler reached its limit of memory or CPU time."},
    {StatId::kHeapprofdRejectedConcurrent, "heapprofd_rejected_concurrent", kByPid, kError,
     "The process was not profiled: another session already did."},
    {StatId::kHeapprofdMalformedPacket, "heapprofd_malformed_packet", StatKey::kUpid, kError,
     "Samples left out because cumulative figures fell."},
    {StatId::kHeapprofdMissingPacket, "heapprofd_missing_packet", kNoKey, kError,
     "Gaps in the numbers of profile packets: part of the profile was lost while tracing."},
    {StatId::kHeapprofdNonFinalizedProfile, "heapprofd_non_finalized_profile", kNoKey, kError,
     "Dumps whose last packet is missing; what arrived of them is shown."},
    {StatId::kHeapprofdSamplingIntervalAdjusted, "heapprofd_sampling_interval_adjusted", kByPid, kInfo,
     "By how many bytes the sampling interval was raised while profiling."},
    {StatId::kHeapprofdUnwindTimeUs, "heapprofd_unwind_time_us", kByPid, kInfo,
     "Microseconds spent on unwinding."},
    {StatId::kHeapprofdUnwindSamples, "heapprofd_unwind_samples", kByPid, kInfo,
     "Allocations sampled."},
    {StatId::kHeapprofdClientSpinlockBlocked, "heapprofd_client_spinlock_blocked", kByPid, kInfo,
     "Microseconds for which the process waited for the ring buffer's lock."},
    {StatId::kHeapprofdLastProfileTimestamp, "heapprofd_last_profile_timestamp", kByPid, kInfo,
     "Time of the latest dump."},
    {StatId::kStackprofileEmptyCallstack, "stackprofile_empty_callstack", kNoKey, kError,
     "Stacks without a frame, left out."},
    {StatId::kStackprofileInvalidStringId, "stackprofile_invalid_string_id", kNoKey, kError,
     "References to texts that the trace does not have."},
    {StatId::kStackprofileInvalidMappingId, "stackprofile_invalid_mapping_id", kNoKey, kError,
     "References to mappings that the trace does not have."},
    {StatId::kStackprofileInvalidFrameId, "stackprofile_invalid_frame_id", kNoKey, kError,
     "References to frames that the trace does not have."},
    {StatId::kStackprofileInvalidCallstackId, "stackprofile_invalid_callstack_id", kNoKey, kError,
     "Samples left out because the trace does not have their stack."},
    {StatId::kStackprofileParserError, "stackprofile_parser_error", kNoKey, kError,
     "Stack tables that could not be decoded to their end."},
    {StatId::kHeapGraphInvalidStringId, "heap_graph_invalid_string_id", kByPid, kError,
     "Java heap: references to texts that the trace does not have."},
    {StatId::kHeapGraphMalformedPacket, "heap_graph_malformed_packet", kByPid, kError,
     "Java heap: objects and roots that refer to nothing, left out."},
    {StatId::kHeapGraphMissingPacket, "heap_graph_missing_packet", kByPid, kError,
     "Java heap: gaps in the numbers of packets; the graph is truncated."},
    {StatId::kHeapGraphNonFinalizedGraph, "heap_graph_non_finalized_graph", kNoKey, kLoss,
     "Java heap: dumps whose last packet is missing; what arrived of them is shown."},
    {StatId::kSmapsParserErrors, "smaps_parser_errors", kNoKey, kError,
     "Memory map packets whose columns do not fit together."},
    {StatId::kInternedDataMissingSequenceId, "interned_data_missing_sequence_id", kNoKey, kError,
     "Packets with interned data but without a sequence, left out."},
    {StatId::kInternedDataSkippedIncrementalStateInvalid, "interned_data_skipped_incremental_state_invalid", kNoKey,
     kError, "Packets whose interned data came before the sequence's state began, or after a loss; left out."},
    {StatId::kIncrementalStateClearedMissingSequenceId, "incremental_state_cleared_missing_sequence_id", kNoKey,
     kError, "Packets that begin the state of no sequence."},
    {StatId::kInternedDataDuplicateId, "interned_data_duplicate_id", kNoKey, kError,
     "Interned ids that were given a second meaning; the first is used."},
    {StatId::kClockSyncFailure, "clock_sync_failure", kNoKey, kError,
     "Times that could not be converted because no clock snapshot has both clocks; they are shown unconverted."},
    {StatId::kPacketParserError, "packet_parser_error", kNoKey, kError,
     "Packets that could not be decoded to their end; what came before is used."},
    {StatId::kCompressedPacketError, "compressed_packet_error", kNoKey, kError,
     "Compressed packets that could not be unpacked to their end."},
    {StatId::kUnpackLimit, "compressed_packet_limit", kNoKey, kError,
     "Compressed packets left out: the file inflates to far more than its size, as no recording does; "
     "HEAPPROFD_MAX_UNPACK_RATIO=0 lifts this limit."},
    {StatId::kTraceTruncatedBytes, "trace_truncated_bytes", kNoKey, kLoss,
     "Bytes at the end of a file that are no whole packet."},
    {StatId::kUnknownSymbolsModule, "symbols_of_unknown_module", kNoKey, kInfo,
     "Addresses with symbols that no frame of the trace has."},
    {StatId::kTmpBuildIdNotFound, "symbolization_tmp_build_id_not_found", kNoKey, kError,
     "Files in /data/local/tmp without a build id, which no symbols can be found for."},
    {StatId::kUnsupportedPacket, "unsupported_packet", StatKey::kField, kInfo,
     "Packets of kinds that are not read, by their field number."},
    {StatId::kTracedBufAbiViolations, "traced_buf_abi_violations", StatKey::kBuffer, kLoss,
     "Tracing service: chunks that broke its protocol."},
    {StatId::kTracedBufChunksDiscarded, "traced_buf_chunks_discarded", StatKey::kBuffer, kLoss,
     "Tracing service: chunks that came when the buffer was full."},
    {StatId::kTracedBufChunksOverwritten, "traced_buf_chunks_overwritten", StatKey::kBuffer, kLoss,
     "Tracing service: chunks that newer ones replaced: a larger buffer helps."},
    {StatId::kTracedBufPacketLoss, "traced_buf_trace_writer_packet_loss", StatKey::kBuffer, kLoss,
     "Tracing service: packets that writers could not hand over."},
    {StatId::kTracedBufPatchesFailed, "traced_buf_patches_failed", StatKey::kBuffer, kLoss,
     "Tracing service: packets that could not be completed."},
    {StatId::kTracedFinalFlushFailed, "traced_final_flush_failed", kNoKey, kLoss,
     "Tracing service: 1 when data were still missing at the end."},
    {StatId::kTracedFlushesFailed, "traced_flushes_failed", kNoKey, kLoss,
     "Tracing service: times it waited in vain for data."},
};
// clang-format on

static_assert(std::size(kDescriptions) == static_cast<size_t>(StatId::kCount));

}  // namespace

std::span<const StatDescription> StatDescriptions() {
  return kDescriptions;
}

std::vector<std::string> TraceWarnings(const TraceStats& stats) {
  std::vector<std::string> warnings;
  for (const auto& [key, value] : stats.values()) {
    const StatDescription& stat = StatDescriptions()[static_cast<size_t>(key.first)];
    if (stat.severity == StatSeverity::kInfo || value == 0)
      continue;
    std::string line = std::string(stat.name) + " " + std::to_string(value);
    if (stat.key == StatKey::kPid)
      line += " (pid " + std::to_string(key.second) + ")";
    warnings.push_back(line + ": " + stat.description);
  }
  return warnings;
}

bool IsToldByFigures(std::string_view warning) {
  constexpr StatId kTold[] = {
      StatId::kHeapprofdBufferCorrupted, StatId::kHeapprofdBufferOverran,
      StatId::kHeapprofdClientError, StatId::kHeapprofdHitGuardrail};
  return std::ranges::any_of(kTold, [warning](StatId id) {
    return warning.starts_with(
        std::string(StatDescriptions()[static_cast<size_t>(id)].name) + " ");
  });
}

}  // namespace heapprofd
