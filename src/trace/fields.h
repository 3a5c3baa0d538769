// Field numbers of the Perfetto messages that we write, as the .proto files in proto/
// define them.
#pragma once

#include <cstdint>

namespace heapprofd::field {

enum Trace : uint32_t { kTracePacket = 1 };

enum Packet : uint32_t {
  kPacketProcessTree = 2,
  kPacketClockSnapshot = 6,
  kPacketProcessStats = 9,
  kPacketTimestamp = 8,
  kPacketSequenceId = 10,
  kPacketInternedData = 12,
  kPacketSequenceFlags = 13,
  kPacketTraceConfig = 33,
  kPacketSynchronizationMarker = 36,
  kPacketProfilePacket = 37,
  kPacketTrackEvent = 11,
  kPacketSystemInfo = 45,
  kPacketTimestampClockId = 58,
  kPacketTrackDescriptor = 60,
  kPacketModuleSymbols = 61,
  kPacketStreamingAllocation = 74,
  kPacketStreamingFree = 75,
  kPacketTrustedPid = 79,
  kPacketTraceUuid = 89,
};

enum Interned : uint32_t {
  kInternedFunctionNames = 5,
  kInternedFrames = 6,
  kInternedCallstacks = 7,
  kInternedBuildIds = 16,
  kInternedMappingPaths = 17,
  kInternedMappings = 19,
};

enum TrackEvent : uint32_t {
  kEventType = 9,
  kEventTrackUuid = 11,
  kEventName = 23,
};

enum TrackDescriptor : uint32_t {
  kTrackUuid = 1,
  kTrackName = 2,
  kTrackProcess = 3,
  kTrackParentUuid = 5,
};

enum Profile : uint32_t {
  kProfileProcessDumps = 5,
  kProfileContinued = 6,
  kProfileIndex = 7
};

enum ProcessDump : uint32_t {
  kDumpPid = 1,
  kDumpSamples = 2,
  kDumpFromStartup = 3,
  kDumpRejectedConcurrent = 4,
  kDumpStats = 5,
  kDumpDisconnected = 6,
  kDumpBufferOverran = 7,
  kDumpBufferCorrupted = 8,
  kDumpTimestamp = 9,
  kDumpHitGuardrail = 10,
  kDumpHeapName = 11,
  kDumpSamplingInterval = 12,
  kDumpOriginalInterval = 13,
  kDumpClientError = 14,
  kDumpStartTimestamp = 15,
  // Ours; Perfetto's readers skip them.
  kDumpQuality = 10001,
  kDumpExactAllocCalls = 10002,
  kDumpExactAllocBytes = 10003,
  kDumpPeakBytes = 10004,
  kDumpPeakTimestamp = 10005,
  kDumpAllocator = 10006,
  kDumpLabel = 10007,
  kDumpReason = 10008,
};

enum Sample : uint32_t {
  kSampleCallstack = 1,
  kSampleAllocated = 2,
  kSampleFreed = 3,
  kSampleAllocCount = 5,
  kSampleFreeCount = 6,
  kSampleMax = 8,
  kSampleMaxCount = 9,
  // Ours: standard errors, in bytes and in allocations.
  kSampleLiveBytesError = 10001,
  kSampleLiveCountError = 10002,
  kSampleAllocatedBytesError = 10003,
  kSampleAllocCountError = 10004,
  kSamplePeakBytes = 10005,
  kSamplePeakCount = 10006,
  kSampleCumulativeAllocated = 10007,
  kSampleCumulativeFreed = 10008,
  kSampleCumulativeAllocCount = 10009,
  kSampleCumulativeFreeCount = 10010,
};

enum Stats : uint32_t {
  kStatsUnwindingErrors = 1,
  kStatsHeapSamples = 2,
  kStatsMapReparses = 3,
  kStatsUnwindingTime = 5,
};

}  // namespace heapprofd::field
