#include "symbolize/elf_identity.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"

namespace heapprofd {
namespace {

constexpr uint64_t kMaxHeaderBytes = uint64_t{4} << 20;  // one table
constexpr uint64_t kMaxNoteBytes = uint64_t{64} << 10;   // one segment or section
constexpr int kMaxNotes = 64;
constexpr uint64_t kMaxLinkBytes = 8192;
constexpr size_t kMaxBuildId = 64;  // bytes

// What is there of [offset, offset + size).
std::string ReadAt(int fd, uint64_t offset, uint64_t size) {
  std::string bytes(size, '\0');
  if (offset > INT64_MAX)
    return {};
  const ssize_t got = pread(fd, bytes.data(), size, static_cast<off_t>(offset));
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return bytes;
}

// The build id among the notes of one segment.
std::string FindBuildId(std::string_view notes) {
  ByteReader reader(notes);
  while (reader.left() >= sizeof(Elf64_Nhdr)) {
    const auto header = reader.Read<Elf64_Nhdr>();  // the same in both classes
    const auto name = reader.ReadBytes(header.n_namesz);
    reader.ReadBytes(-header.n_namesz & 3u);
    const auto value = reader.ReadBytes(header.n_descsz);
    if (!reader.ok())
      return {};
    reader.ReadBytes(std::min<size_t>(-header.n_descsz & 3u, reader.left()));
    if (header.n_type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4) &&
        value.size() <= kMaxBuildId)
      return std::string(value);
  }
  return {};
}

template <typename Header, typename Segment, typename Section>
class ElfReader {
 public:
  explicit ElfReader(int fd) : fd_(fd) {}

  std::optional<ElfIdentity> Read() {
    const std::string bytes = ReadAt(fd_, 0, sizeof(Header));
    ByteReader reader(bytes);
    header_ = reader.Read<Header>();
    if (!reader.ok())
      return std::nullopt;
    ReadSegments();
    ReadSections();
    return std::move(identity_);
  }

 private:
  // Entries of a table, as far as they are there.
  template <typename Entry>
  std::vector<Entry> ReadTable(uint64_t offset, uint64_t count, uint64_t entry_size) {
    std::vector<Entry> entries;
    if (entry_size != sizeof(Entry) || offset == 0)
      return entries;
    const std::string bytes =
        ReadAt(fd_, offset, std::min(count * sizeof(Entry), kMaxHeaderBytes));
    ByteReader reader(bytes);
    while (reader.left() >= sizeof(Entry))
      entries.push_back(reader.Read<Entry>());
    return entries;
  }

  void ReadNotes(uint64_t offset, uint64_t size) {
    if (identity_.build_id.empty() && ++notes_ <= kMaxNotes)
      identity_.build_id =
          FindBuildId(ReadAt(fd_, offset, std::min<uint64_t>(size, kMaxNoteBytes)));
  }

  void ReadSegments() {
    for (const Segment& segment :
         ReadTable<Segment>(header_.e_phoff, header_.e_phnum, header_.e_phentsize)) {
      if (segment.p_type == PT_NOTE)
        ReadNotes(segment.p_offset, segment.p_filesz);
      if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
        identity_.code.Add({.offset = segment.p_offset,
                            .address = segment.p_vaddr,
                            .file_size = segment.p_filesz,
                            .alignment = std::max<uint64_t>(segment.p_align, 1)});
    }
  }

  void ReadSections() {
    const auto sections =
        ReadTable<Section>(header_.e_shoff, header_.e_shnum, header_.e_shentsize);
    if (header_.e_shstrndx >= sections.size())
      return;
    const Section& strings = sections[header_.e_shstrndx];
    const std::string names = ReadAt(
        fd_, strings.sh_offset, std::min<uint64_t>(strings.sh_size, kMaxHeaderBytes));
    for (const Section& section : sections) {
      identity_.has_code |=
          section.sh_type == SHT_PROGBITS && (section.sh_flags & SHF_EXECINSTR) != 0;
      if (section.sh_type == SHT_NOTE)
        ReadNotes(section.sh_offset, section.sh_size);
      if (section.sh_type == SHT_NOBITS || section.sh_name >= names.size())
        continue;
      const std::string_view name(names.c_str() + section.sh_name);
      identity_.has_debug_info |= name == ".debug_info" || name == ".zdebug_info";
      identity_.has_split_dwarf |= name.starts_with(".debug_") && name.ends_with(".dwo");
      if (name == ".gnu_debuglink")
        ReadDebugLink(section.sh_offset, section.sh_size);
      if (name == ".gnu_debugaltlink")
        ReadSharedDebugLink(section.sh_offset, section.sh_size);
    }
  }

  // A name that ends in zeros up to a multiple of four, then the CRC.
  void ReadDebugLink(uint64_t offset, uint64_t size) {
    const std::string bytes =
        ReadAt(fd_, offset, std::min<uint64_t>(size, kMaxLinkBytes));
    const size_t end = bytes.find('\0');
    ByteReader reader(bytes);
    reader.ReadBytes((std::min(end, bytes.size()) + 4) & ~size_t{3});
    const auto crc = reader.Read<uint32_t>();
    if (!reader.ok())
      return;
    identity_.debug_link = bytes.substr(0, end);
    identity_.debug_link_crc = crc;
  }

  // A path, a zero, a build id.
  void ReadSharedDebugLink(uint64_t offset, uint64_t size) {
    const std::string bytes =
        ReadAt(fd_, offset, std::min<uint64_t>(size, kMaxLinkBytes));
    const size_t end = bytes.find('\0');
    if (end == std::string::npos || bytes.size() - end - 1 > kMaxBuildId)
      return;
    identity_.shared_debug_link = bytes.substr(0, end);
    identity_.shared_debug_build_id = bytes.substr(end + 1);
  }

  int fd_;
  int notes_ = 0;
  Header header_{};
  ElfIdentity identity_;
};

}  // namespace

std::optional<ElfIdentity> IdentifyElf(int fd) {
  struct stat status {};

  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
    return std::nullopt;
  const std::string ident = ReadAt(fd, 0, EI_NIDENT);
  if (ident.size() != EI_NIDENT || memcmp(ident.data(), ELFMAG, SELFMAG) != 0 ||
      ident[EI_DATA] != ELFDATA2LSB)
    return std::nullopt;
  if (ident[EI_CLASS] == ELFCLASS64)
    return ElfReader<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr>(fd).Read();
  if (ident[EI_CLASS] == ELFCLASS32)
    return ElfReader<Elf32_Ehdr, Elf32_Phdr, Elf32_Shdr>(fd).Read();
  return std::nullopt;
}

}  // namespace heapprofd
