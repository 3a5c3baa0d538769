#include "unwind/names_copy.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heapprofd {
namespace {

constexpr uint64_t kMaxTable = uint64_t{16} << 20;  // bytes, of headers or their names
constexpr uint64_t kMaxSmallSection = uint64_t{64} << 10;

struct Range {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// Empty: not all of it is there.
std::vector<char> ReadRange(int fd, const Range& range) {
  std::vector<char> bytes(range.size <= kMaxTable ? range.size : 0);
  const ssize_t got =
      pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(range.offset));
  if (got != static_cast<ssize_t>(bytes.size()))
    bytes.clear();
  return bytes;
}

template <typename Entry>
std::vector<Entry> ReadTable(int fd, uint64_t offset, uint64_t count) {
  const std::vector<char> bytes =
      ReadRange(fd, {.offset = offset, .size = count * sizeof(Entry)});
  std::vector<Entry> entries(bytes.size() / sizeof(Entry));
  if (!entries.empty())
    memcpy(entries.data(), bytes.data(), entries.size() * sizeof(Entry));
  return entries;
}

bool IsDebugInfo(std::string_view section) {
  return section.starts_with(".debug_") || section.starts_with(".zdebug_");
}

// Whether names may need what the section holds. Of what is loaded only tables.
bool IsForNames(const Elf64_Shdr& section) {
  if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS)
    return false;
  return (section.sh_flags & SHF_ALLOC) == 0 || section.sh_type != SHT_PROGBITS ||
         section.sh_size <= kMaxSmallSection;
}

class Copier {
 public:
  Copier(int fd, uint64_t max_bytes) : fd_(fd), max_bytes_(max_bytes) {}

  // False: it is no ELF file, or too much of it is needed.
  bool Choose() {
    const std::vector<Elf64_Ehdr> header = ReadTable<Elf64_Ehdr>(fd_, 0, 1);
    if (header.empty() || memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0)
      return false;
    header_ = header[0];
    sections_ = ReadTable<Elf64_Shdr>(fd_, header_.e_shoff, header_.e_shnum);
    if (sections_.empty() || header_.e_shstrndx >= sections_.size())
      return false;
    const Elf64_Shdr& strings = sections_[header_.e_shstrndx];
    names_ = ReadRange(fd_, {.offset = strings.sh_offset, .size = strings.sh_size});
    const uint64_t all = Count();
    if (all <= max_bytes_)
      return true;
    LeaveOutDebugInfo();
    return Count() <= max_bytes_;
  }

  NamesCopy Copy() {
    struct stat status {};

    NamesCopy copy{
        .fd = ScopedFd(memfd_create("heapprofd-names", MFD_CLOEXEC | MFD_ALLOW_SEALING))};
    if (!copy.fd.valid() || fstat(fd_, &status) != 0 ||
        ftruncate(copy.fd.get(), status.st_size) != 0)
      return {};
    to_ = copy.fd.get();
    bool is_whole = CopyRange({.offset = 0, .size = sizeof(header_)}) &&
                    CopyRange({.offset = header_.e_phoff,
                               .size = uint64_t{header_.e_phnum} * sizeof(Elf64_Phdr)});
    for (const Elf64_Shdr& section : sections_) {
      if (IsForNames(section))
        is_whole &= CopyRange({.offset = section.sh_offset, .size = section.sh_size});
    }
    const size_t size = sections_.size() * sizeof(Elf64_Shdr);
    is_whole &= pwrite(to_, sections_.data(), size,
                       static_cast<off_t>(header_.e_shoff)) == static_cast<ssize_t>(size);
    if (!is_whole)
      return {};
    fcntl(to_, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK);
    copy.bytes = Count();
    return copy;
  }

 private:
  uint64_t Count() const {
    uint64_t bytes = sizeof(header_) + sections_.size() * sizeof(Elf64_Shdr) +
                     uint64_t{header_.e_phnum} * sizeof(Elf64_Phdr);
    for (const Elf64_Shdr& section : sections_) {
      if (IsForNames(section))
        bytes += std::min(section.sh_size, max_bytes_ + 1);
    }
    return bytes;
  }

  void LeaveOutDebugInfo() {
    for (Elf64_Shdr& section : sections_) {
      if (section.sh_name < names_.size() &&
          IsDebugInfo({names_.data() + section.sh_name,
                       strnlen(names_.data() + section.sh_name,
                               names_.size() - section.sh_name)}))
        section.sh_type = SHT_NOBITS;
    }
  }

  bool CopyRange(Range range) {
    std::vector<char> chunk(std::min<uint64_t>(range.size, uint64_t{1} << 20));
    while (range.size > 0) {
      const size_t wanted = std::min<uint64_t>(chunk.size(), range.size);
      const auto at = static_cast<off_t>(range.offset);
      const ssize_t got = pread(fd_, chunk.data(), wanted, at);
      if (got <= 0 || pwrite(to_, chunk.data(), static_cast<size_t>(got), at) != got)
        return false;
      range.offset += static_cast<uint64_t>(got);
      range.size -= static_cast<uint64_t>(got);
    }
    return true;
  }

  int fd_;
  int to_ = -1;
  uint64_t max_bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  std::vector<char> names_;
};

}  // namespace

bool IsOnRootMount(int fd) {
  struct statx file {};

  struct statx root {};

  constexpr unsigned kWanted = STATX_MNT_ID;
  constexpr int kFlags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
  if (statx(fd, "", kFlags, kWanted, &file) != 0 ||
      statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, kWanted, &root) != 0)
    return false;
  if ((file.stx_mask & root.stx_mask & STATX_MNT_ID) != 0)
    return file.stx_mnt_id == root.stx_mnt_id;
  return file.stx_dev_major == root.stx_dev_major &&
         file.stx_dev_minor == root.stx_dev_minor;
}

NamesCopy CopyForNames(int fd, uint64_t max_bytes) {
  Copier copier(fd, max_bytes);
  return copier.Choose() ? copier.Copy() : NamesCopy();
}

}  // namespace heapprofd
