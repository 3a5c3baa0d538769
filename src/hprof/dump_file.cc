#include "hprof/dump_file.h"

#include <algorithm>
#include <cstdio>

#include "base/utf8.h"
#include "profile/java_classes.h"

namespace heapprofd::hprof {
namespace {

constexpr size_t kMaxFrameText = 1000;    // a hostile file's names may be longer
constexpr size_t kStackHeaderBytes = 12;  // numbers of stack and thread, count of frames

const char* PrimitiveName(char letter) {
  switch (letter) {
    case 'Z':
      return "boolean";
    case 'C':
      return "char";
    case 'F':
      return "float";
    case 'D':
      return "double";
    case 'B':
      return "byte";
    case 'S':
      return "short";
    case 'I':
      return "int";
    case 'J':
      return "long";
    default:
      return nullptr;
  }
}

template <typename Value>
Value Find(const std::vector<std::pair<uint64_t, Value>>& sorted, uint64_t key) {
  const auto found =
      std::lower_bound(sorted.begin(), sorted.end(), key,
                       [](const auto& entry, uint64_t k) { return entry.first < k; });
  return found != sorted.end() && found->first == key ? found->second : Value{};
}

template <typename Value>
void SortByFirst(std::vector<std::pair<uint64_t, Value>>* entries) {
  std::stable_sort(entries->begin(), entries->end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
}

}  // namespace

std::string HexOf(uint64_t number) {
  char text[24];
  snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

std::string JavaName(std::string_view name) {
  size_t dimensions = 0;
  while (dimensions < name.size() && name[dimensions] == '[')
    ++dimensions;
  std::string_view element = name.substr(dimensions);
  std::string result;
  if (dimensions > 0 && element.size() > 2 && element.front() == 'L' &&
      element.back() == ';')
    element = element.substr(1, element.size() - 2);
  if (dimensions > 0 && element.size() == 1 && PrimitiveName(element[0]) != nullptr)
    result = PrimitiveName(element[0]);
  else
    result = element;
  std::replace(result.begin(), result.end(), '/', '.');
  if (const size_t plus = result.rfind("+0x"); plus != std::string::npos)
    result[plus] = '/';  // a hidden class: what follows is no part of its name
  for (size_t i = 0; i < dimensions; ++i)
    result += "[]";
  return result;
}

Result<DumpFile> DumpFile::Read(std::string_view bytes, const std::string& name) {
  DumpFile file;
  file.bytes_ = bytes;
  file.end_ = reinterpret_cast<const uint8_t*>(bytes.data()) + bytes.size();
  HPD_TRY(file.ReadHeader(name));
  file.ReadRecords();
  SortByFirst(&file.strings_);
  SortByFirst(&file.class_names_);
  SortByFirst(&file.class_serials_);
  SortByFirst(&file.frames_);
  SortByFirst(&file.stacks_);
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
  else if (tag == kStackFrame || tag == kStackTrace)
    ReadStack(body, tag, length);
  else
    ReadName(body, tag, length);
  return body + length;
}

void DumpFile::ReadName(const uint8_t* body, uint8_t tag, uint64_t length) {
  if (tag == kUtf8 && length >= id_bytes_)
    strings_.emplace_back(
        GetId(body, id_bytes_),
        CutUtf8({reinterpret_cast<const char*>(body) + id_bytes_, length - id_bytes_},
                kMostJavaNameBytes));
  if (tag == kLoadClass && length >= 8 + 2 * id_bytes_) {
    class_names_.emplace_back(GetId(body + 4, id_bytes_),
                              GetId(body + 8 + id_bytes_, id_bytes_));
    class_serials_.emplace_back(Get32(body), GetId(body + 4, id_bytes_));
  }
}

void DumpFile::ReadStack(const uint8_t* body, uint8_t tag, uint64_t length) {
  const std::string_view bytes(reinterpret_cast<const char*>(body), length);
  if (tag == kStackFrame && length >= 4 * id_bytes_ + 8)
    frames_.emplace_back(GetId(body, id_bytes_), bytes);
  if (tag == kStackTrace && length >= kStackHeaderBytes && Get32(body + 4) != 0)
    stacks_.emplace_back(Get32(body + 4), bytes);
}

std::vector<uint64_t> DumpFile::StackOf(uint32_t thread) const {
  const std::string_view stack = Find(stacks_, thread);
  std::vector<uint64_t> frames;
  if (stack.empty())
    return frames;
  const auto* at = reinterpret_cast<const uint8_t*>(stack.data());
  const uint64_t count =
      std::min<uint64_t>(Get32(at + 8), (stack.size() - kStackHeaderBytes) / id_bytes_);
  for (uint64_t i = 0; i < count; ++i)
    frames.push_back(GetId(at + kStackHeaderBytes + i * id_bytes_, id_bytes_));
  return frames;
}

std::string DumpFile::DescribeFrame(uint64_t id) const {
  constexpr int32_t kNativeMethod = -3;
  const std::string_view frame = Find(frames_, id);
  if (frame.empty())
    return "(unknown)";
  const auto* at = reinterpret_cast<const uint8_t*>(frame.data());
  const auto text_at = [&](uint32_t place) {
    return std::string(StringOf(GetId(at + size_t{place} * id_bytes_, id_bytes_))
                           .substr(0, kMaxFrameText));
  };
  const auto line = static_cast<int32_t>(Get32(at + size_t{4} * id_bytes_ + 4));
  std::string place = text_at(3);
  if (line == kNativeMethod)
    place = "Native Method";
  else if (place.empty())
    place = "Unknown Source";
  else if (line > 0)
    place += ":" + std::to_string(line);
  const std::string owner =
      ClassName(Find(class_serials_, Get32(at + size_t{4} * id_bytes_)));
  return owner.substr(0, kMaxFrameText) + "." + text_at(1) + "(" + place + ")";
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

std::string_view DumpFile::StringOf(uint64_t id) const {
  return Find(strings_, id);
}

std::string DumpFile::ClassName(uint64_t class_id) const {
  const std::string_view name = StringOf(Find(class_names_, class_id));
  return name.empty() ? "class " + HexOf(class_id) : JavaName(name);
}

bool DumpFile::HasName(uint64_t class_id) const {
  return !StringOf(Find(class_names_, class_id)).empty();
}

}  // namespace heapprofd::hprof
