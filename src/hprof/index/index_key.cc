#include "hprof/index/index_key.h"

#include <algorithm>
#include <optional>

#include "base/checksum.h"

namespace heapprofd::hprof {
namespace {

// The beginning, the end, and pieces evenly between them: a dump that was written anew
// has other addresses everywhere.
uint64_t SampleOf(std::string_view bytes) {
  constexpr size_t kPieces = 64;
  constexpr size_t kPieceBytes = 1024;
  uint64_t hash = bytes.size();
  for (size_t i = 0; i <= kPieces; ++i) {
    const size_t last = bytes.size() - std::min(bytes.size(), kPieceBytes);
    const size_t at = last / kPieces * i + (i == kPieces ? last % kPieces : 0);
    hash = Checksum(bytes.substr(at, kPieceBytes), hash);
  }
  return hash;
}

}  // namespace

Result<IndexKey> KeyOf(const MappedInput& input) {
  const std::optional<struct stat>& file = input.file();
  if (!file)
    return Status(StatusCode::kUnavailable,
                  "it is compressed, comes through a pipe, or may be changed by another "
                  "user, and a copy of it is read");
  IndexKey key;
  key.size = static_cast<uint64_t>(file->st_size);
  key.inode = file->st_ino;
  key.changed_s = file->st_mtim.tv_sec;
  key.changed_ns = file->st_mtim.tv_nsec;
  key.sample = SampleOf(input.bytes());
  return key;
}

uint64_t CheckOf(IndexHeader header, std::span<const std::string_view> sections) {
  header.check = 0;
  uint64_t hash = Checksum({reinterpret_cast<const char*>(&header), sizeof(header)});
  for (const IndexSection section : kCheckedSections)
    hash = Checksum(sections[static_cast<size_t>(section)], hash);
  return hash;
}

}  // namespace heapprofd::hprof
