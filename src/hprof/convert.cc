#include "hprof/convert.h"

#include <algorithm>
#include <array>

#include "hprof/dump_file.h"

namespace heapprofd::hprof {
namespace {

constexpr uint32_t kZygoteHeap = 'Z';
constexpr uint32_t kImageHeap = 'I';

const uint8_t* Bytes(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

std::string_view Text(const uint8_t* begin, const uint8_t* end) {
  return {reinterpret_cast<const char*>(begin), static_cast<size_t>(end - begin)};
}

// The body of one record of a heap dump. It is gone through twice, because its length is
// written before it.
class HeapConverter {
 public:
  HeapConverter(const DumpFile& file, const HeapRange& range, bool app_heap_only)
      : file_(file), range_(range), app_heap_only_(app_heap_only) {}

  // Calls use(bytes) -> Status for what is kept.
  template <typename Use>
  Status ForEachKept(Use use) {
    is_in_dropped_heap_ = false;         // an Android heap ends with its record
    const uint8_t* kept = range_.begin;  // what is kept since then is in one piece
    const uint8_t* at = range_.begin;
    HeapVisitor nobody;
    while (at < range_.end) {
      const WalkResult one =
          WalkHeap({at, at + 1, range_.file_end, false}, file_.id_bytes(), nobody);
      if (one.end != WalkEnd::kWhole || one.at > range_.end)
        return Status(StatusCode::kCorrupt, one.end == WalkEnd::kWhole
                                                ? "the part of the heap dump at byte " +
                                                      std::to_string(file_.OffsetOf(at)) +
                                                      " goes past the end of its record"
                                                : file_.DescribeWalk(one));
      if (!IsCopied(at)) {
        HPD_TRY(use(Text(kept, at)));
        HPD_TRY(use(Replacement(at)));
        kept = one.at;
      }
      at = one.at;
    }
    return use(Text(kept, at));
  }

 private:
  bool IsCopied(const uint8_t* at) {
    switch (*at) {
      case kHeapDumpInfo:
        is_in_dropped_heap_ = app_heap_only_ && (Get32(at + 1) == kZygoteHeap ||
                                                 Get32(at + 1) == kImageHeap);
        return false;
      case kInstanceDump:
      case kObjectArrayDump:
      case kPrimitiveArrayDump:
        return !is_in_dropped_heap_;
      default:
        return *at <= kPrimitiveArrayDump || *at == kRootUnknown;
    }
  }

  std::string_view Replacement(const uint8_t* at) {
    const uint32_t id_bytes = file_.id_bytes();
    size_t size = 0;
    if (*at == kPrimitiveArrayNoData) {
      if (is_in_dropped_heap_)
        return {};
      size = 1 + id_bytes + 9;
      std::copy_n(at, size, replacement_.begin());
      replacement_[0] = kPrimitiveArrayDump;
      std::fill_n(replacement_.begin() + 1 + id_bytes + 4, 4, uint8_t{0});
    } else if (*at > kPrimitiveArrayDump && *at != kHeapDumpInfo) {
      size = 1 + id_bytes;  // a root of a kind that others do not know
      std::copy_n(at, size, replacement_.begin());
      replacement_[0] = kRootUnknown;
    }
    return Text(replacement_.data(), replacement_.data() + size);
  }

  const DumpFile& file_;
  const HeapRange& range_;
  const bool app_heap_only_;
  bool is_in_dropped_heap_ = false;
  std::array<uint8_t, 32> replacement_{};
};

Status WriteHeapRecord(HeapConverter converter,
                       std::string_view record_header,
                       const Output& output) {
  uint64_t length = 0;
  HPD_TRY(converter.ForEachKept([&](std::string_view bytes) {
    length += bytes.size();
    return Status();
  }));
  std::string header(record_header);
  for (size_t i = 0; i < 4; ++i)
    header[5 + i] = static_cast<char>(length >> (24 - 8 * i));
  HPD_TRY(output(header));
  return converter.ForEachKept(output);
}

Status Write(const DumpFile& file,
             std::string_view bytes,
             const ConvertOptions& options,
             const Output& output) {
  std::string version(kAndroidVersion);
  version.back() = '2';
  HPD_TRY(output(version));
  const uint8_t* copied = Bytes(bytes) + version.size();
  for (const HeapDump& dump : file.dumps()) {
    for (const HeapRange& range : dump.ranges) {
      const uint8_t* const header = range.begin - kRecordHeaderBytes;
      HPD_TRY(output(Text(copied, header)));
      HPD_TRY(WriteHeapRecord(HeapConverter(file, range, options.app_heap_only),
                              Text(header, range.begin), output));
      copied = range.end;
    }
  }
  return output(Text(copied, Bytes(bytes) + bytes.size()));
}

}  // namespace

Result<ConvertReport> Convert(std::string_view bytes,
                              const std::string& name,
                              const ConvertOptions& options,
                              const Output& output) {
  HPD_TRY_ASSIGN(const DumpFile file, DumpFile::Read(bytes, name));
  const auto cannot = [&](const std::string& why) {
    return Status(StatusCode::kCorrupt, "cannot convert " + name + ": " + why +
                                            "; heap_profile hprof histogram " + name +
                                            " reads what is there");
  };
  if (!file.damage().empty())
    return cannot(file.damage());
  if (!file.is_android()) {
    HPD_TRY(output(bytes));
    return ConvertReport{true};
  }
  const Status status = Write(file, bytes, options, output);
  if (status.code() == StatusCode::kCorrupt)
    return cannot(status.message());
  HPD_TRY(status);
  return ConvertReport{};
}

}  // namespace heapprofd::hprof
