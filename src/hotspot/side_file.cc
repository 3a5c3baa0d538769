#include "hotspot/side_file.h"

#include <cstdlib>
#include <string_view>

#include "base/format.h"
#include "hotspot/dump_room.h"

namespace heapprofd {
namespace {

// An object that is small has twice its size in a dump, in which references have 8 bytes
// and headers 25.
constexpr uint64_t kDumpPerHeap = 2;

// "12M" is 12 MiB; 0: no number with a unit begins at `at`.
uint64_t SizeAt(const std::string& text, size_t at) {
  char* end = nullptr;
  const uint64_t number = strtoull(text.c_str() + at, &end, 10);
  constexpr std::string_view kUnits = "BKMGT";
  const size_t unit = kUnits.find(*end);
  return *end == '\0' || unit == std::string_view::npos ? 0 : number << (10 * unit);
}

}  // namespace

bool HasSideFiles(const std::string& help) {
  return help.find("-parallel") != std::string::npos;
}

// "used 12M" (a generation of Serial and Parallel, all of G1 and Z), "12M used"
// (Shenandoah); shares of parts of them have a % in that place. Metaspace is none of it.
uint64_t UsedHeapIn(const std::string& heap_info) {
  const std::string text = heap_info.substr(0, heap_info.find("Metaspace"));
  constexpr std::string_view kUsed = "used";
  uint64_t bytes = 0;
  for (size_t at = text.find(kUsed); at != std::string::npos;
       at = text.find(kUsed, at + 1)) {
    const uint64_t behind = SizeAt(text, at + kUsed.size());
    const size_t before = text.find_last_of(" \n", at < 2 ? 0 : at - 2);
    bytes += behind != 0 || before == std::string::npos ? behind : SizeAt(text, before);
  }
  return bytes;
}

Status CheckRoomBeside(const Attachment& attachment) {
  HPD_TRY_ASSIGN(const std::string info,
                 AskMachine(attachment, {"jcmd", "GC.heap_info"}));
  const uint64_t used = UsedHeapIn(info);
  if (used == 0)
    return Status(StatusCode::kUnavailable,
                  "it does not say how large its heap is, and would first collect the "
                  "dump in its /tmp; it answers \"" +
                      info + "\"");
  const uint64_t room =
      RoomInTemporary(attachment.temporary.get(), attachment.process.pid);
  if (used <= room / kDumpPerHeap)
    return {};
  return Status(StatusCode::kUnavailable,
                "it would first collect the dump (of up to " +
                    FormatBytes(static_cast<double>(used * kDumpPerHeap)) +
                    ") in its /tmp, in which it may have " +
                    FormatBytes(static_cast<double>(room)) +
                    "; make room there, or run jcmd " +
                    std::to_string(attachment.process.pid) +
                    " GC.heap_dump FILE with a FILE where there is room");
}

void SideProgress::Look(const DumpPipe& pipe, const Sender& sender) {
  const uint64_t bytes = pipe.BytesBeside();
  if (bytes == bytes_)
    return;
  bytes_ = bytes;
  sender.Tell("collecting in its /tmp, " + FormatBytes(static_cast<double>(bytes)));
}

}  // namespace heapprofd
