#include "unwind/elf_image.h"

#include <gelf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "rt/machine.h"

namespace heapprofd {
namespace {

constexpr uint64_t kMaxFile = uint64_t{64} << 30;  // bytes, reserved and not used

bool IsNativeImage(Elf* elf) {
  GElf_Ehdr header;
  return elf != nullptr && elf_kind(elf) == ELF_K_ELF &&
         gelf_getehdr(elf, &header) != nullptr && header.e_machine == rt::kElfMachine &&
         header.e_ident[EI_CLASS] == ELFCLASS64;
}

bool IsEhFrame(std::string_view section) {
  return section == ".eh_frame";
}

bool IsNeeded(std::string_view section, const GElf_Shdr& header) {
  return header.sh_type == SHT_NOTE || IsEhFrame(section) || section == ".eh_frame_hdr" ||
         section == ".debug_frame" || section == ".zdebug_frame";
}

}  // namespace

CodeSegments CodeSegmentsOf(Elf* elf) {
  CodeSegments segments;
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0)
    return segments;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) != nullptr &&
        segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
      segments.Add({.offset = segment.p_offset,
                    .address = segment.p_vaddr,
                    .file_size = segment.p_filesz,
                    .alignment = std::max<uint64_t>(segment.p_align, 1)});
  }
  return segments;
}

std::unique_ptr<ElfImage> ElfImage::Reserve(uint64_t size) {
  if (size < sizeof(Elf64_Ehdr) || size > kMaxFile)
    return nullptr;
  void* bytes =
      mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes == MAP_FAILED)
    return nullptr;
  return std::unique_ptr<ElfImage>(new ElfImage({static_cast<char*>(bytes), size}));
}

std::unique_ptr<ElfImage> ElfImage::Read(int fd, uint64_t max_copied) {
  struct stat status {};

  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= 0)
    return nullptr;
  std::unique_ptr<ElfImage> image = Reserve(static_cast<uint64_t>(status.st_size));
  if (image == nullptr)
    return nullptr;
  image->max_copied_ = max_copied;
  if (!image->CopyHeaders(fd) || !image->OpenElf())
    return nullptr;
  image->CopySegments(fd, image->CopySections(fd));
  return image;
}

std::unique_ptr<ElfImage> ElfImage::FromMemory(std::span<const char> bytes) {
  std::unique_ptr<ElfImage> image = Reserve(bytes.size());
  if (image == nullptr || !image->MakeWritable(0, bytes.size()))
    return nullptr;
  std::copy(bytes.begin(), bytes.end(), image->bytes_.begin());
  image->copied_ = bytes.size();
  return image->OpenElf() ? std::move(image) : nullptr;
}

ElfImage::~ElfImage() {
  elf_end(without_sections_);
  elf_end(elf_);
  munmap(bytes_.data(), bytes_.size());
}

bool ElfImage::OpenElf() {
  elf_version(EV_CURRENT);
  elf_ = elf_memory(bytes_.data(), bytes_.size());
  return IsNativeImage(elf_);
}

bool ElfImage::MakeWritable(uint64_t offset, uint64_t size) {
  const uint64_t first = offset / rt::kLargestPage * rt::kLargestPage;
  return mprotect(bytes_.data() + first, offset - first + size, PROT_READ | PROT_WRITE) ==
         0;
}

// False when not all of it could be had.
bool ElfImage::Copy(int fd, uint64_t offset, uint64_t size) {
  if (offset > bytes_.size() || size > bytes_.size() - offset ||
      size > max_copied_ - copied_ || !MakeWritable(offset, size))
    return false;
  copied_ += size;
  while (size > 0) {
    const ssize_t got =
        pread(fd, bytes_.data() + offset, size, static_cast<off_t>(offset));
    if (got <= 0)
      return false;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<uint64_t>(got);
  }
  return true;
}

// The file header and the two tables that it points to.
bool ElfImage::CopyHeaders(int fd) {
  Elf64_Ehdr header;
  if (!Copy(fd, 0, sizeof(header)))
    return false;
  memcpy(&header, bytes_.data(), sizeof(header));
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return false;
  // Files without one of the tables are files too.
  (void)Copy(fd, header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  (void)Copy(fd, header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  return true;
}

// True when there is an .eh_frame among them.
bool ElfImage::CopySections(int fd) {
  size_t names = 0;
  GElf_Shdr header;
  if (elf_getshdrstrndx(elf_, &names) != 0 ||
      gelf_getshdr(elf_getscn(elf_, names), &header) == nullptr ||
      header.sh_type != SHT_STRTAB || !Copy(fd, header.sh_offset, header.sh_size))
    return false;
  bool has_eh_frame = false;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_, section)) != nullptr;) {
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS ||
        elf_ndxscn(section) == names)
      continue;
    const char* name = elf_strptr(elf_, names, header.sh_name);
    if (name != nullptr && IsNeeded(name, header) &&
        Copy(fd, header.sh_offset, header.sh_size)) {
      has_eh_frame |= IsEhFrame(name);
      continue;
    }
    header.sh_type = SHT_NOBITS;
    (void)gelf_update_shdr(section, &header);
  }
  return has_eh_frame;
}

// What the sections did not say: a file may have none.
void ElfImage::CopySegments(int fd, bool has_eh_frame) {
  size_t count = 0;
  if (elf_getphdrnum(elf_, &count) != 0)
    return;
  uint64_t table = UINT64_MAX;  // offset of the look-up table of an .eh_frame to be found
  GElf_Phdr segment;
  for (size_t i = 0; i < count; ++i) {
    if (gelf_getphdr(elf_, static_cast<int>(i), &segment) == nullptr)
      return;
    if (segment.p_type == PT_NOTE)
      (void)Copy(fd, segment.p_offset, segment.p_filesz);
    else if (segment.p_type == PT_GNU_EH_FRAME && !has_eh_frame)
      table = segment.p_offset;
  }
  for (size_t i = 0; i < count && table != UINT64_MAX; ++i) {
    if (gelf_getphdr(elf_, static_cast<int>(i), &segment) != nullptr &&
        segment.p_type == PT_LOAD && table >= segment.p_offset &&
        table - segment.p_offset < segment.p_filesz)
      (void)Copy(fd, segment.p_offset, segment.p_filesz);
  }
}

// libdw asks sections first and then uses the look-up table only where the linker has put
// it before .eh_frame. gold puts it behind: then the first address that is not found
// makes libdw read and keep all of .eh_frame, 20 ms and 7.4 MB for libLLVM. So it is
// shown an image without sections.
Dwarf_CFI* ElfImage::OpenEhFrame() {
  Elf64_Ehdr header;
  memcpy(&header, bytes_.data(), sizeof(header));
  Elf64_Ehdr hidden = header;
  hidden.e_shoff = 0;
  hidden.e_shnum = 0;
  hidden.e_shstrndx = SHN_UNDEF;
  memcpy(bytes_.data(), &hidden, sizeof(hidden));
  if (without_sections_ == nullptr)
    without_sections_ = elf_memory(bytes_.data(), bytes_.size());
  Dwarf_CFI* cfi = dwarf_getcfi_elf(without_sections_);
  memcpy(bytes_.data(), &header, sizeof(header));
  return cfi != nullptr ? cfi : dwarf_getcfi_elf(elf_);
}

}  // namespace heapprofd
