// Field numbers of the Perfetto messages that we write and read, as proto/trace.proto
// defines them.
#pragma once

#include <cstdint>

namespace heapprofd::field {

enum Trace : uint32_t { kTracePacket = 1 };

enum Packet : uint32_t {
  kPacketFtraceEvents = 1,
  kPacketProcessTree = 2,
  kPacketTrustedUid = 3,
  kPacketClockSnapshot = 6,
  kPacketSystemStats = 7,
  kPacketTimestamp = 8,
  kPacketProcessStats = 9,
  kPacketSequenceId = 10,
  kPacketInternedData = 12,
  kPacketSequenceFlags = 13,
  kPacketTraceConfig = 33,
  kPacketTraceStats = 35,
  kPacketSynchronizationMarker = 36,
  kPacketProfilePacket = 37,
  kPacketTrackEvent = 11,
  kPacketIncrementalStateCleared = 41,
  kPacketPreviousPacketDropped = 42,
  kPacketSystemInfo = 45,
  kPacketTrigger = 46,
  kPacketPackagesList = 47,
  kPacketCompressedPackets = 50,
  kPacketHeapGraph = 56,
  kPacketTimestampClockId = 58,
  kPacketDefaults = 59,
  kPacketTrackDescriptor = 60,
  kPacketModuleSymbols = 61,
  kPacketDeobfuscationMapping = 64,
  kPacketSmaps = 68,
  kPacketServiceEvent = 69,
  kPacketStreamingAllocation = 74,
  kPacketStreamingFree = 75,
  kPacketTrustedPid = 79,
  kPacketFirstOnSequence = 87,
  kPacketTraceUuid = 89,
  kPacketMachineId = 98,
  kPacketArtProcessMetadata = 131,
  kPacketZstdCompressedPackets = 133,
  kPacketUnsampledChildren = 10001,  // ours
};

enum SequenceFlag : uint64_t { kIncrementalStateCleared = 1 };

enum Interned : uint32_t {
  kInternedFunctionNames = 5,
  kInternedFrames = 6,
  kInternedCallstacks = 7,
  kInternedBuildIds = 16,
  kInternedMappingPaths = 17,
  kInternedSourcePaths = 18,
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

// Of every interned message.
inline constexpr uint32_t kIid = 1;

enum InternedText : uint32_t { kStringText = 2 };

enum InternedMapping : uint32_t {
  kMappingBuildId = 2,
  kMappingStartOffset = 3,
  kMappingStart = 4,
  kMappingEnd = 5,
  kMappingLoadBias = 6,
  kMappingPathIds = 7,
  kMappingExactOffset = 8,
};

enum InternedFrame : uint32_t {
  kFrameFunctionName = 2,
  kFrameMapping = 3,
  kFrameRelPc = 4,
  kFrameSourcePath = 5,
  kFrameLine = 6,
  kFrameKind = 7,
  kFrameKindText = 8,
};

enum InternedCallstack : uint32_t { kCallstackFrames = 2 };

enum Profile : uint32_t {
  // Android 10's tables, inside the packet.
  kProfileStrings = 1,
  kProfileFrames = 2,
  kProfileCallstacks = 3,
  kProfileMappings = 4,
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
  kDumpProfilingStart = 10006,
  kDumpLabel = 10007,
  kDumpReason = 10008,
  kDumpAllocator = 10009,
  kDumpThreads = 10010,
  // 95 % limits, in bytes.
  kDumpLiveLow = 10011,
  kDumpLiveHigh = 10012,
  kDumpPeakLow = 10013,
  kDumpPeakHigh = 10014,
  kDumpShapes = 10015,
};

enum BlockShape : uint32_t {  // ours
  kShapeCallstack = 1,
  kShapeKind = 2,
  kShapeLog2 = 3,
  kShapeBytes = 4,
  kShapeCount = 5,
  kShapeBytesError = 6,
  kShapeCountError = 7,
};

enum ThreadTotals : uint32_t {  // ours
  kThreadId = 1,
  kThreadName = 2,
  kThreadAllocated = 3,
  kThreadFreed = 4,
  kThreadAllocCount = 5,
  kThreadFreeCount = 6,
  kThreadLiveBytesError = 7,
  kThreadLiveCountError = 8,
  kThreadAllocatedBytesError = 9,
  kThreadAllocCountError = 10,
};

enum Allocator : uint32_t {  // ours
  kAllocatorName = 1,
  kAllocatorSystem = 2,
  kAllocatorInUse = 3,
  kAllocatorFree = 4,
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
  kStatsUnwindingTimes = 4,
  kStatsUnwindingTime = 5,
  kStatsSpinlockBlocked = 6,
};

enum Histogram : uint32_t {
  kHistogramBuckets = 1,
  kBucketUpperLimit = 1,
  kBucketIsLast = 2,
  kBucketCount = 3,
};

enum Module : uint32_t {
  kModulePath = 1,
  kModuleBuildId = 2,
  kModuleAddresses = 3,
};

enum Address : uint32_t { kAddressValue = 1, kAddressLines = 2 };

enum Process : uint32_t {
  kProcessPid = 1,
  kProcessParent = 2,
  kProcessCmdline = 3,
  kProcessUid = 5,
  kProcessStart = 7,
  kProcessCmdlineIsComm = 9,
  kProcessProfilingStart = 10001,  // ours
};

enum UnsampledChildren : uint32_t {
  kChildrenPid = 1,
  kChildrenProfilingStart = 2,
  kChildrenCount = 3,
  kChildrenUncounted = 4,
  kChildrenAllocCalls = 5,
  kChildrenAllocBytes = 6,
};

enum Line : uint32_t { kLineFunction = 1, kLineFile = 2, kLineNumber = 3 };

}  // namespace heapprofd::field
