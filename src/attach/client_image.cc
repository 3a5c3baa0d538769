#include "attach/client_image.h"

#include <algorithm>
#include <cstring>

#include "attach/prologue.h"
#include "rt/machine.h"

extern "C" const uint8_t hpd_client_image[];
extern "C" const uint8_t hpd_client_image_end[];

namespace heapprofd {
namespace {

constexpr uint64_t kMargin = uint64_t{1} << 16;  // bytes kept free around a mapping

constexpr uint64_t kHeapRoom = uint64_t{1} << 30;     // bytes behind the heap
constexpr uint64_t kStackRoom = uint64_t{256} << 20;  // bytes below the main stack

bool IsPlausible(const AttachHeader& header, const MapEntry& entry) {
  return header.magic == kAttachMagic && header.code_size == entry.end - entry.start &&
         header.state >= header.code_size && header.total_size > header.state &&
         header.total_size - header.state >= sizeof(AttachState) &&
         header.gates < header.code_size;
}

bool HasOurCode(const RemoteProcess& process, uint64_t base) {
  const std::span<const uint8_t> ours = ClientImage().first(ClientHeader().gates);
  std::vector<uint8_t> bytes(ours.size());
  return process.Read(base, bytes.data(), bytes.size()) &&
         std::equal(ours.begin(), ours.end(), bytes.begin());
}

uint64_t DistanceBetween(uint64_t a, uint64_t b) {
  return a > b ? a - b : b - a;
}

}  // namespace

std::span<const uint8_t> ClientImage() {
  return {hpd_client_image, hpd_client_image_end};
}

const AttachHeader& ClientHeader() {
  static const AttachHeader header = [] {
    AttachHeader copy;
    memcpy(&copy, hpd_client_image, sizeof(copy));
    return copy;
  }();
  return header;
}

std::vector<FoundImage> FindImages(const RemoteProcess& process,
                                   const std::vector<MapEntry>& maps) {
  std::vector<FoundImage> images;
  for (const MapEntry& entry : maps) {
    const bool is_candidate =
        entry.executable && !entry.writable && entry.inode == 0 && entry.path.empty();
    FoundImage image{.base = entry.start};
    if (!is_candidate || !process.ReadObject(entry.start, &image.header) ||
        !IsPlausible(image.header, entry))
      continue;
    image.is_ours = HasOurCode(process, entry.start);
    images.push_back(image);
  }
  return images;
}

bool IsInReach(uint64_t from, uint64_t begin, uint64_t size) {
  const auto reach = static_cast<uint64_t>(kJumpReach);
  return DistanceBetween(from, begin) < reach &&
         DistanceBetween(from, begin + size) < reach;
}

std::optional<uint64_t> FindGap(const std::vector<MapEntry>& maps,
                                uint64_t near,
                                uint64_t size) {
  constexpr uint64_t kPage = rt::kLargestPage;
  std::optional<uint64_t> best;
  for (size_t i = 0; i + 1 < maps.size(); ++i) {
    const uint64_t low = maps[i].end + kMargin;
    const uint64_t high = maps[i + 1].start;
    if (high < low || high - low < size + kMargin)
      continue;
    // The heap grows up and the stack grows down into their gaps. A heap that has grown
    // by its room goes on elsewhere (malloc does without brk then).
    const bool is_behind_heap = maps[i].path == "[heap]";
    const uint64_t highest_start = high - size - kMargin;
    const uint64_t lowest =
        is_behind_heap ? std::min(low + kHeapRoom, highest_start) : low;
    const uint64_t highest = maps[i + 1].path == "[stack]" ? low : highest_start;
    if (maps[i + 1].path == "[stack]" && high - low < size + kStackRoom)
      continue;
    for (const uint64_t start : {lowest & ~(kPage - 1), highest & ~(kPage - 1)}) {
      if (!best || DistanceBetween(start, near) < DistanceBetween(*best, near))
        best = start;
    }
  }
  return best && IsInReach(near, *best, size) ? best : std::nullopt;
}

}  // namespace heapprofd
