// The hprof format: what a virtual machine writes when it is asked for its heap. Numbers
// are big-endian; an id has 4 or 8 bytes, as the header says.
//
// A file is a header and records (tag, time, length, body). The records of a heap dump
// consist of sub-records: roots, classes, instances and arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace heapprofd::hprof {

// Versions: a text that ends with a zero byte.
inline constexpr std::string_view kMagic = "JAVA PROFILE 1.0.";
inline constexpr std::string_view kAndroidVersion = "JAVA PROFILE 1.0.3";
inline constexpr size_t kVersionBytes = 19;
inline constexpr size_t kHeaderBytes = kVersionBytes + 4 + 8;  // size of ids, time in ms
inline constexpr size_t kRecordHeaderBytes = 9;                // tag, time in us, length

enum RecordTag : uint8_t {
  kUtf8 = 0x01,
  kLoadClass = 0x02,
  kStackFrame = 0x04,
  kStackTrace = 0x05,
  kHeapDump = 0x0C,
  kControlSettings = 0x0E,  // the last of the lower ones
  kHeapDumpSegment = 0x1C,
  kHeapDumpEnd = 0x2C,
};

enum HeapTag : uint8_t {
  kRootJniGlobal = 0x01,
  kRootJniLocal = 0x02,
  kRootJavaFrame = 0x03,
  kRootNativeStack = 0x04,
  kRootStickyClass = 0x05,
  kRootThreadBlock = 0x06,
  kRootMonitorUsed = 0x07,
  kRootThreadObject = 0x08,
  kClassDump = 0x20,
  kInstanceDump = 0x21,
  kObjectArrayDump = 0x22,
  kPrimitiveArrayDump = 0x23,
  kRootUnknown = 0xFF,
  // Android's:
  kRootInternedString = 0x89,
  kRootFinalizing = 0x8A,
  kRootDebugger = 0x8B,
  kRootReferenceCleanup = 0x8C,
  kRootVmInternal = 0x8D,
  kRootJniMonitor = 0x8E,
  kUnreachableObject = 0x90,
  kPrimitiveArrayNoData = 0xC3,
  kHeapDumpInfo = 0xFE,
};

enum BasicType : uint8_t {
  kObject = 2,
  kBoolean = 4,
  kChar,
  kFloat,
  kDouble,
  kByte,
  kShort,
  kInt,
  kLong,
};

inline constexpr uint8_t kBasicTypeCount = 12;

// Bytes of a value; 0: there is no such type.
constexpr uint32_t ValueBytes(uint8_t type, uint32_t id_bytes) {
  constexpr uint8_t kBytes[kBasicTypeCount] = {0, 0, 0, 0, 1, 2, 4, 8, 1, 2, 4, 8};
  return type == kObject ? id_bytes : type < kBasicTypeCount ? kBytes[type] : 0;
}

inline uint16_t Get16(const uint8_t* at) {
  return static_cast<uint16_t>(at[0] << 8 | at[1]);
}

inline uint32_t Get32(const uint8_t* at) {
  uint32_t value = 0;
  memcpy(&value, at, sizeof(value));
  return __builtin_bswap32(value);
}

inline uint64_t Get64(const uint8_t* at) {
  uint64_t value = 0;
  memcpy(&value, at, sizeof(value));
  return __builtin_bswap64(value);
}

template <size_t kIdBytes>
uint64_t GetId(const uint8_t* at) {
  static_assert(kIdBytes == 4 || kIdBytes == 8);
  if constexpr (kIdBytes == 4)
    return Get32(at);
  else
    return Get64(at);
}

inline uint64_t GetId(const uint8_t* at, uint32_t id_bytes) {
  return id_bytes == 4 ? Get32(at) : Get64(at);
}

}  // namespace heapprofd::hprof
