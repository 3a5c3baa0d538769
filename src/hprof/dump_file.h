// The records of an hprof file: which heap dumps it has and where. One file may have
// several dumps; a dump is one record or many segments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hprof/dump_names.h"
#include "hprof/heap_walk.h"

namespace heapprofd::hprof {

struct HeapDump {
  std::vector<HeapRange> ranges;
  bool is_segmented = false;
  bool is_ended = false;  // by its own end mark, or because it is one record
};

class DumpFile {
 public:
  // `bytes` must outlive this. kCorrupt: it is no hprof file. A file that is cut is read
  // up to there.
  static Result<DumpFile> Read(std::string_view bytes, const std::string& name);

  uint32_t id_bytes() const { return id_bytes_; }

  bool is_android() const { return is_android_; }

  // Milliseconds since 1970.
  uint64_t time_ms() const { return time_ms_; }

  const std::vector<HeapDump>& dumps() const { return dumps_; }

  // Where the file was cut or cannot be read further, in words; empty: nowhere.
  const std::string& damage() const { return damage_; }

  // What names the things in the dumps.
  const DumpNames& names() const { return names_; }

  // What ended a walk that is not whole.
  std::string DescribeWalk(const WalkResult& walk) const;

  size_t OffsetOf(const uint8_t* at) const {
    return static_cast<size_t>(at - reinterpret_cast<const uint8_t*>(bytes_.data()));
  }

 private:
  Status ReadHeader(const std::string& name);
  void ReadRecords();
  // Where the next record begins; nullptr: nowhere.
  const uint8_t* ReadRecord(const uint8_t* at);
  const uint8_t* ReadHeap(const uint8_t* body, uint8_t tag, uint64_t length);
  const uint8_t* ReadOpenHeap(HeapRange range);
  const uint8_t* BehindOvershoot(const uint8_t* at) const;
  HeapRange RangeOf(const uint8_t* body, uint8_t tag, uint64_t length) const;

  std::string_view bytes_;
  const uint8_t* end_ = nullptr;
  uint32_t id_bytes_ = 0;
  bool is_android_ = false;
  uint64_t time_ms_ = 0;
  std::vector<HeapDump> dumps_;
  std::string damage_;
  DumpNames names_;
};

}  // namespace heapprofd::hprof
