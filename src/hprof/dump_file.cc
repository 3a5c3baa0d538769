#include "hprof/dump_file.h"

#include <algorithm>

namespace heapprofd::hprof {

Result<DumpFile> DumpFile::Read(std::string_view bytes, const std::string& name) {
  DumpFile file;
  file.bytes_ = bytes;
  file.end_ = reinterpret_cast<const uint8_t*>(bytes.data()) + bytes.size();
  HPD_TRY(file.ReadHeader(name));
  file.names_ = DumpNames(file.id_bytes_);
  file.ReadRecords();
  file.names_.Sort();
  return file;
}

Status DumpFile::ReadHeader(const std::string& name) {
  if (!bytes_.starts_with(kMagic))
    return Status(
        StatusCode::kCorrupt,
        "cannot read " + name + ": it does not begin with \"" + std::string(kMagic) +
            "\", so it is no hprof dump" +
            (!bytes_.empty() && (bytes_[0] == kHeapDump || bytes_[0] == kHeapDumpSegment)
                 ? "; it may be the tail of one: heap_profile hprof merge "
                   "joins it with its head"
                 : ""));
  if (bytes_.size() < kHeaderBytes)
    return Status(StatusCode::kCorrupt, "cannot read " + name + ": its header of " +
                                            std::to_string(kHeaderBytes) +
                                            " bytes is cut at byte " +
                                            std::to_string(bytes_.size()));
  if (bytes_.substr(kVersionBytes - 1).starts_with(", created"))
    return Status(StatusCode::kCorrupt,
                  "cannot read " + name +
                      ": it is a heap dump as text (java -agentlib:hprof); jcmd PID "
                      "GC.heap_dump x.hprof makes one that can be read");
  is_android_ = bytes_.starts_with(kAndroidVersion);
  const auto* at = reinterpret_cast<const uint8_t*>(bytes_.data());
  id_bytes_ = Get32(at + kVersionBytes);
  time_ms_ = Get64(at + kVersionBytes + 4);
  if (bytes_[kVersionBytes - 1] != '\0' || (id_bytes_ != 4 && id_bytes_ != 8))
    return Status(StatusCode::kCorrupt,
                  "cannot read " + name + ": its header names ids of " +
                      std::to_string(id_bytes_) + " bytes, and only 4 and 8 exist");
  return {};
}

void DumpFile::ReadRecords() {
  const uint8_t* at = reinterpret_cast<const uint8_t*>(bytes_.data()) + kHeaderBytes;
  while (at != nullptr && at < end_)
    at = ReadRecord(at);
  if (damage_.empty() && !dumps_.empty() && !dumps_.back().is_ended)
    damage_ = "it ends at byte " + std::to_string(bytes_.size()) +
              " without the mark that ends a dump";
}

const uint8_t* DumpFile::ReadRecord(const uint8_t* at) {
  const auto left = static_cast<uint64_t>(end_ - at);
  const bool has_header = left >= kRecordHeaderBytes;
  const uint8_t tag = *at;
  const uint64_t length = has_header ? Get32(at + 5) : 0;
  const uint8_t* const body = at + kRecordHeaderBytes;
  if (has_header && (tag == kHeapDump || tag == kHeapDumpSegment))
    return ReadHeap(body, tag, length);
  if (has_header && tag != kHeapDumpEnd && (tag == 0 || tag > kControlSettings)) {
    if (const uint8_t* const behind = BehindOvershoot(at); behind != nullptr)
      return behind;
    damage_ = "there is no record " + HexOf(tag) + ", as there should be at byte " +
              std::to_string(OffsetOf(at));
    return nullptr;
  }
  if (!has_header || left - kRecordHeaderBytes < length) {
    damage_ = "it is cut at byte " + std::to_string(bytes_.size()) +
              ", in the record that begins at byte " + std::to_string(OffsetOf(at));
    return nullptr;
  }
  if (tag == kHeapDumpEnd && !dumps_.empty())
    dumps_.back().is_ended = true;
  else
    names_.Read(tag, {reinterpret_cast<const char*>(body), length});
  return body + length;
}

// A length has 32 bits. Virtual machines write larger dumps as one record all the same,
// and leave a zero when they are interrupted.
HeapRange DumpFile::RangeOf(const uint8_t* body, uint8_t tag, uint64_t length) const {
  const auto left = static_cast<uint64_t>(end_ - body);
  HeapRange range{body, body + std::min(length, left), end_, false};
  if (tag == kHeapDump && left > UINT32_MAX && (left & UINT32_MAX) == length) {
    range.end = end_;
  } else if (length == 0) {
    range.end = end_;
    range.is_open_ended = true;
  }
  return range;
}

// Where a sub-record ends that goes past the end of its record, which is `at`; nullptr:
// there is none.
const uint8_t* DumpFile::BehindOvershoot(const uint8_t* at) const {
  if (dumps_.empty() || dumps_.back().ranges.back().end != at)
    return nullptr;
  HeapVisitor nobody;
  const WalkResult walk = WalkHeap(dumps_.back().ranges.back(), id_bytes_, nobody);
  return walk.end == WalkEnd::kWhole && walk.at > at ? walk.at : nullptr;
}

// One whose length is not written.
const uint8_t* DumpFile::ReadOpenHeap(HeapRange range) {
  HeapVisitor nobody;
  const WalkResult walk = WalkHeap(range, id_bytes_, nobody);
  const bool is_whole = walk.end == WalkEnd::kWhole || walk.end == WalkEnd::kNextRecord;
  range.is_open_ended = false;
  range.end = is_whole ? walk.at : end_;
  dumps_.back().ranges.push_back(range);
  dumps_.back().is_ended = dumps_.back().is_ended && is_whole;
  if (is_whole)
    return range.end;
  damage_ = DescribeWalk(walk);
  return nullptr;
}

std::string DumpFile::DescribeWalk(const WalkResult& walk) const {
  const std::string at = "byte " + std::to_string(OffsetOf(walk.at));
  if (walk.end == WalkEnd::kTruncated)
    return "it is cut at byte " + std::to_string(bytes_.size()) +
           ", in the part of the heap dump that begins at " + at;
  if (walk.end == WalkEnd::kUnknownType)
    return "the part of the heap dump at " + at + " has a value of an unknown type";
  return "there is no kind " + HexOf(*walk.at) +
         " of parts of a heap dump, as there should be at " + at;
}

const uint8_t* DumpFile::ReadHeap(const uint8_t* body, uint8_t tag, uint64_t length) {
  const HeapRange range = RangeOf(body, tag, length);
  const bool is_cut = length > static_cast<uint64_t>(end_ - body);
  const bool is_segment = tag == kHeapDumpSegment;
  if (!is_segment || dumps_.empty() || !dumps_.back().is_segmented ||
      dumps_.back().is_ended)
    dumps_.push_back({{}, is_segment, !is_segment && !is_cut});
  if (range.is_open_ended)
    return ReadOpenHeap(range);
  dumps_.back().ranges.push_back(range);
  if (!is_cut)
    return range.end;
  damage_ = "it is cut at byte " + std::to_string(bytes_.size()) +
            ", in the heap dump record that begins at byte " +
            std::to_string(OffsetOf(body) - kRecordHeaderBytes);
  return nullptr;
}

}  // namespace heapprofd::hprof
