// Counters of what was wrong or noteworthy in a trace: the rows of the SQL table `stats`,
// under the names that Perfetto's trace processor gives them where it has such a counter.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heapprofd {

enum class StatId : uint8_t {
  kHeapprofdBufferCorrupted,
  kHeapprofdBufferOverran,
  kHeapprofdClientError,
  kHeapprofdClientDisconnected,
  kHeapprofdHitGuardrail,
  kHeapprofdRejectedConcurrent,
  kHeapprofdMalformedPacket,
  kHeapprofdMissingPacket,
  kHeapprofdNonFinalizedProfile,
  kHeapprofdSamplingIntervalAdjusted,
  kHeapprofdUnwindTimeUs,
  kHeapprofdUnwindSamples,
  kHeapprofdClientSpinlockBlocked,
  kHeapprofdLastProfileTimestamp,
  kStackprofileEmptyCallstack,
  kStackprofileInvalidStringId,
  kStackprofileInvalidMappingId,
  kStackprofileInvalidFrameId,
  kStackprofileInvalidCallstackId,
  kStackprofileParserError,
  kHeapGraphInvalidStringId,
  kHeapGraphMalformedPacket,
  kHeapGraphMissingPacket,
  kHeapGraphNonFinalizedGraph,
  kSmapsParserErrors,
  kInternedDataMissingSequenceId,
  kInternedDataSkippedIncrementalStateInvalid,
  kIncrementalStateClearedMissingSequenceId,
  kInternedDataDuplicateId,
  kClockSyncFailure,
  kPacketParserError,
  kCompressedPacketError,
  kUnpackLimit,
  kTraceTruncatedBytes,
  kUnknownSymbolsModule,
  kTmpBuildIdNotFound,
  kUnsupportedPacket,
  kTracedBufAbiViolations,
  kTracedBufChunksDiscarded,
  kTracedBufChunksOverwritten,
  kTracedBufPacketLoss,
  kTracedBufPatchesFailed,
  kTracedFinalFlushFailed,
  kTracedFlushesFailed,
  kCount,
};

enum class StatSeverity : uint8_t { kInfo, kDataLoss, kError };

enum class StatKey : uint8_t {
  kNone,    // one value for the trace
  kPid,     // one value per process: idx is its pid
  kUpid,    // idx is its upid
  kField,   // idx is the number of the field in TracePacket
  kBuffer,  // idx is the number of the tracing service's buffer
};

struct StatDescription {
  StatId id;
  const char* name;
  StatKey key;
  StatSeverity severity;
  const char* description;
};

// One per StatId, in its order.
std::span<const StatDescription> StatDescriptions();

// The values. Most traces have few that are not 0.
class TraceStats {
 public:
  // `idx` is 0 for those with StatKey::kNone.
  void Add(StatId id, int64_t idx, int64_t value) { values_[{id, idx}] += value; }

  void Set(StatId id, int64_t idx, int64_t value) { values_[{id, idx}] = value; }

  void Count(StatId id) { Add(id, 0, 1); }

  // 0 when it was never counted.
  int64_t Get(StatId id, int64_t idx = 0) const {
    const auto value = values_.find({id, idx});
    return value == values_.end() ? 0 : value->second;
  }

  // Over all keys.
  int64_t Sum(StatId id) const {
    int64_t sum = 0;
    for (const auto& [key, value] : values_)
      sum += key.first == id ? value : 0;
    return sum;
  }

  const std::map<std::pair<StatId, int64_t>, int64_t>& values() const { return values_; }

 private:
  std::map<std::pair<StatId, int64_t>, int64_t> values_;
};

// What a reader of the trace should know before trusting it, a line each: what was lost,
// left out or damaged, in which process, and what to do about it. Empty: nothing.
std::vector<std::string> TraceWarnings(const TraceStats& stats);

// Whether such a line is of a flag that a recording of ours tells in more words by its
// figures of quality (profile/figures.h). What the reader of a file has noticed no figure
// tells.
bool IsToldByFigures(std::string_view warning);

}  // namespace heapprofd
