#include "attach/entry/file_code.h"

#include <unistd.h>

#include <algorithm>

#include "unwind/elf_functions.h"
#include "unwind/module.h"

namespace heapprofd {

const MapEntry* FileCode::MappingAt(uint64_t address) const {
  const auto found = std::ranges::find_if(maps_, [address](const MapEntry& entry) {
    return entry.executable && entry.inode != 0 && address >= entry.start &&
           address < entry.end;
  });
  return found != maps_.end() ? &*found : nullptr;
}

const ForeignFile& FileCode::FileOf(const MapEntry& entry) {
  const auto known = files_.find(entry.start);
  if (known != files_.end())
    return known->second;
  return files_.emplace(entry.start, OpenMappedFile(view_, entry)).first->second;
}

std::vector<uint8_t> FileCode::Read(uint64_t address, size_t size) {
  const MapEntry* entry = MappingAt(address);
  if (entry == nullptr)
    return {};
  const ForeignFile& file = FileOf(*entry);
  std::vector<uint8_t> bytes(std::min<uint64_t>(size, entry->end - address));
  const ssize_t got =
      file.fd.valid() ? pread(file.fd.get(), bytes.data(), bytes.size(),
                              static_cast<off_t>(entry->offset + address - entry->start))
                      : 0;
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

std::vector<uint64_t> FileCode::PlacesInside(std::span<const uint64_t> functions,
                                             uint64_t reach) {
  std::vector<uint64_t> places;
  for (const MapEntry& entry : maps_) {
    std::vector<uint64_t> offsets;
    for (const uint64_t function : functions) {
      if (MappingAt(function) == &entry)
        offsets.push_back(entry.offset + function - entry.start);
    }
    if (offsets.empty())
      continue;
    for (const uint64_t offset : ReadPlaces(FileOf(entry).fd.get(), offsets, reach))
      places.push_back(offset - entry.offset + entry.start);
  }
  return places;
}

}  // namespace heapprofd
