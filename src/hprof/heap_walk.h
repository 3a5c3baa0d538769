// Walks the sub-records of a heap dump at the speed of memory. Every length is checked
// before it is used; the caller learns where and why the walk ended.
#pragma once

#include <cstdint>

#include "hprof/format.h"

namespace heapprofd::hprof {

enum class WalkEnd : uint8_t {
  kWhole,        // all of the range
  kNextRecord,   // a record begins here, in a range whose length nobody has written
  kTruncated,    // the file ends within a sub-record, which begins here
  kUnknownTag,   // of the sub-record that begins here
  kUnknownType,  // of a value in the sub-record that begins here
};

struct WalkResult {
  const uint8_t* at;  // where it ended
  WalkEnd end;
};

struct HeapRange {
  const uint8_t* begin = nullptr;
  const uint8_t* end = nullptr;       // sub-records that begin before this are part of it
  const uint8_t* file_end = nullptr;  // a sub-record may go past `end`, not past this
  bool is_open_ended = false;         // goes on to where another record begins
};

struct RootRecord {
  uint8_t tag;
  uint64_t id;
  uint32_t thread;  // serial number; 0: this kind of root has none
  uint32_t frame;   // of the thread's stack; UINT32_MAX: none, or empty frame
};

struct ClassRecord {
  uint64_t id = 0;
  uint64_t super = 0;
  uint64_t loader = 0;
  uint64_t signers = 0;
  uint64_t domain = 0;
  uint32_t instance_bytes = 0;
  uint16_t static_count = 0;
  const uint8_t* statics = nullptr;  // (name, type, value) each: ForEachStatic
  const uint8_t* statics_end = nullptr;
  uint16_t field_count = 0;
  const uint8_t* fields = nullptr;  // (name, type) each
};

struct InstanceRecord {
  uint64_t id;
  uint64_t class_id;
  uint32_t byte_count;  // of the values: own fields first, then the superclass's
  const uint8_t* values;
};

struct ObjectArrayRecord {
  uint64_t id;
  uint64_t class_id;
  uint32_t length;
  const uint8_t* elements;
};

struct PrimitiveArrayRecord {
  uint64_t id;
  uint8_t type;
  uint32_t length;
  const uint8_t* data;  // nullptr: not recorded
};

// Does nothing with what is found; visitors derive from it.
struct HeapVisitor {
  void Root(const RootRecord&) {}

  void Class(const ClassRecord&) {}

  void Instance(const InstanceRecord&) {}

  void ObjectArray(const ObjectArrayRecord&) {}

  void PrimitiveArray(const PrimitiveArrayRecord&) {}
};

// Sizes of a root's sub-record behind its tag; 0: it is no root.
constexpr uint32_t RootBytes(uint8_t tag, uint32_t id_bytes) {
  switch (tag) {
    case kRootUnknown:
    case kRootStickyClass:
    case kRootMonitorUsed:
    case kRootInternedString:
    case kRootFinalizing:
    case kRootDebugger:
    case kRootReferenceCleanup:
    case kRootVmInternal:
    case kUnreachableObject:
      return id_bytes;
    case kRootJniGlobal:
      return 2 * id_bytes;
    case kRootJniLocal:
    case kRootJavaFrame:
    case kRootThreadObject:
    case kRootJniMonitor:
      return id_bytes + 8;
    case kRootNativeStack:
    case kRootThreadBlock:
      return id_bytes + 4;
    default:
      return 0;
  }
}

template <size_t kIdBytes, typename Visitor>
class HeapWalk {
 public:
  HeapWalk(const HeapRange& range, Visitor& visitor) : range_(range), visitor_(visitor) {}

  WalkResult Run() {
    const uint8_t* at = range_.begin;
    while (at < range_.end) {
      if (range_.is_open_ended && BeginsRecord(*at))
        return {at, WalkEnd::kNextRecord};
      end_ = WalkEnd::kTruncated;
      const uint8_t* const next = One(at);
      if (next == nullptr)
        return {at, end_};
      at = next;
    }
    return {at, WalkEnd::kWhole};
  }

 private:
  // These are tags of records and of no sub-record.
  static bool BeginsRecord(uint8_t tag) {
    return tag == kHeapDumpSegment || tag == kHeapDumpEnd || tag == kHeapDump;
  }

  // Where the next one begins; nullptr: see end_.
  const uint8_t* One(const uint8_t* at) {
    const uint8_t tag = *at++;
    switch (tag) {
      case kInstanceDump:
        return Instance(at);
      case kObjectArrayDump:
        return ObjectArray(at);
      case kPrimitiveArrayDump:
      case kPrimitiveArrayNoData:
        return PrimitiveArray(at, tag == kPrimitiveArrayDump);
      case kClassDump:
        return Class(at);
      case kHeapDumpInfo:
        return Has(at, kIdBytes + 4) ? at + kIdBytes + 4 : nullptr;
      default:
        return Root(at, tag);
    }
  }

  bool Has(const uint8_t* at, uint64_t bytes) const {
    return static_cast<uint64_t>(range_.file_end - at) >= bytes;
  }

  const uint8_t* Instance(const uint8_t* at) {
    constexpr size_t kFixed = 2 * kIdBytes + 8;
    if (!Has(at, kFixed))
      return nullptr;
    const uint32_t bytes = Get32(at + 2 * kIdBytes + 4);
    if (!Has(at + kFixed, bytes))
      return nullptr;
    visitor_.Instance(InstanceRecord{
        GetId<kIdBytes>(at), GetId<kIdBytes>(at + kIdBytes + 4), bytes, at + kFixed});
    return at + kFixed + bytes;
  }

  const uint8_t* ObjectArray(const uint8_t* at) {
    constexpr size_t kFixed = 2 * kIdBytes + 8;
    if (!Has(at, kFixed))
      return nullptr;
    const uint32_t length = Get32(at + kIdBytes + 4);
    const uint64_t bytes = uint64_t{length} * kIdBytes;
    if (!Has(at + kFixed, bytes))
      return nullptr;
    visitor_.ObjectArray(ObjectArrayRecord{
        GetId<kIdBytes>(at), GetId<kIdBytes>(at + kIdBytes + 8), length, at + kFixed});
    return at + kFixed + bytes;
  }

  const uint8_t* PrimitiveArray(const uint8_t* at, bool has_data) {
    constexpr size_t kFixed = kIdBytes + 9;
    if (!Has(at, kFixed))
      return nullptr;
    const uint32_t length = Get32(at + kIdBytes + 4);
    const uint8_t type = at[kIdBytes + 8];
    if (type == kObject || ValueBytes(type, kIdBytes) == 0)
      return UnknownType();
    const uint64_t bytes = has_data ? uint64_t{length} * ValueBytes(type, kIdBytes) : 0;
    if (!Has(at + kFixed, bytes))
      return nullptr;
    visitor_.PrimitiveArray(PrimitiveArrayRecord{GetId<kIdBytes>(at), type, length,
                                                 has_data ? at + kFixed : nullptr});
    return at + kFixed + bytes;
  }

  const uint8_t* Class(const uint8_t* at) {
    constexpr size_t kFixed = 7 * kIdBytes + 8;
    if (!Has(at, kFixed + 2))
      return nullptr;
    ClassRecord record;
    record.id = GetId<kIdBytes>(at);
    const uint8_t* const ids = at + kIdBytes + 4;
    record.super = GetId<kIdBytes>(ids);
    record.loader = GetId<kIdBytes>(ids + kIdBytes);
    record.signers = GetId<kIdBytes>(ids + 2 * kIdBytes);
    record.domain = GetId<kIdBytes>(ids + 3 * kIdBytes);
    record.instance_bytes = Get32(ids + 6 * kIdBytes);
    at += kFixed;
    const uint8_t* ignored = nullptr;
    uint16_t constants = 0;
    if (!Values(&at, 2, &constants, &ignored) ||
        !Values(&at, kIdBytes, &record.static_count, &record.statics) || !Has(at, 2))
      return nullptr;
    record.statics_end = at;
    record.field_count = Get16(at);
    record.fields = at + 2;
    if (!Has(record.fields, uint64_t{record.field_count} * (kIdBytes + 1)))
      return nullptr;
    for (uint32_t i = 0; i < record.field_count; ++i) {
      if (ValueBytes(record.fields[i * (kIdBytes + 1) + kIdBytes], kIdBytes) == 0)
        return UnknownType();
    }
    visitor_.Class(record);
    return record.fields + size_t{record.field_count} * (kIdBytes + 1);
  }

  // A count and so many (key, type, value).
  bool Values(const uint8_t** at,
              uint32_t key_bytes,
              uint16_t* count,
              const uint8_t** first) {
    if (!Has(*at, 2))
      return false;
    *count = Get16(*at);
    *at += 2;
    *first = *at;
    for (uint32_t i = 0; i < *count; ++i) {
      if (!Has(*at, key_bytes + 1))
        return false;
      const uint32_t bytes = ValueBytes((*at)[key_bytes], kIdBytes);
      if (bytes == 0)
        return UnknownType() != nullptr;
      if (!Has(*at, key_bytes + 1 + bytes))
        return false;
      *at += key_bytes + 1 + bytes;
    }
    return true;
  }

  const uint8_t* Root(const uint8_t* at, uint8_t tag) {
    const uint32_t bytes = RootBytes(tag, kIdBytes);
    if (bytes == 0) {
      end_ = WalkEnd::kUnknownTag;
      return nullptr;
    }
    if (!Has(at, bytes))
      return nullptr;
    const bool has_thread = bytes != kIdBytes && tag != kRootJniGlobal;
    const bool has_frame =
        tag == kRootJniLocal || tag == kRootJavaFrame || tag == kRootJniMonitor;
    visitor_.Root(RootRecord{tag, GetId<kIdBytes>(at),
                             has_thread ? Get32(at + kIdBytes) : 0,
                             has_frame ? Get32(at + kIdBytes + 4) : UINT32_MAX});
    return at + bytes;
  }

  const uint8_t* UnknownType() {
    end_ = WalkEnd::kUnknownType;
    return nullptr;
  }

  const HeapRange range_;
  Visitor& visitor_;
  WalkEnd end_ = WalkEnd::kWhole;
};

// use(static, type, value), a static being its (name, type, value). Bounded by itself:
// the file may have been changed since the walk has looked at the types.
template <typename Use>
void ForEachStatic(const ClassRecord& record, uint32_t id_bytes, Use use) {
  const uint8_t* at = record.statics;
  for (uint32_t i = 0; i < record.static_count; ++i) {
    const auto left = static_cast<uint64_t>(record.statics_end - at);
    if (left <= id_bytes)
      return;
    const uint8_t type = at[id_bytes];
    const uint8_t* const value = at + id_bytes + 1;
    const uint32_t bytes = ValueBytes(type, id_bytes);
    if (bytes == 0 || left - id_bytes - 1 < bytes)
      return;
    use(at, type, value);
    at = value + bytes;
  }
}

template <typename Visitor>
WalkResult WalkHeap(const HeapRange& range, uint32_t id_bytes, Visitor& visitor) {
  return id_bytes == 4 ? HeapWalk<4, Visitor>(range, visitor).Run()
                       : HeapWalk<8, Visitor>(range, visitor).Run();
}

}  // namespace heapprofd::hprof
