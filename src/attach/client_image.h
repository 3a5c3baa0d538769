// The attached client as it is to lie in a process, and finding it there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attach/remote_process.h"
#include "wire/attached_client.h"

namespace heapprofd {

// Contents of the image, header first.
std::span<const uint8_t> ClientImage();

const AttachHeader& ClientHeader();

struct FoundImage {
  uint64_t base = 0;
  AttachHeader header{};
  bool is_ours = false;  // the same build: it can be used again
};

// Images that lie in the process, from earlier sessions.
std::vector<FoundImage> FindImages(const RemoteProcess& process,
                                   const std::vector<MapEntry>& maps);

// Room for `size` bytes, not mapped, within the reach of a jump from `near`; nullopt:
// there is none.
std::optional<uint64_t> FindGap(const std::vector<MapEntry>& maps,
                                uint64_t near,
                                uint64_t size);

// True when a jump at `from` reaches every byte of [begin, begin + size).
bool IsInReach(uint64_t from, uint64_t begin, uint64_t size);

}  // namespace heapprofd
