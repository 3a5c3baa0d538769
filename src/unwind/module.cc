#include "unwind/module.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>

#include <array>
#include <cstdio>

namespace heapprofd {
namespace {

// libdw keeps every FDE it has decoded; past this many look-ups its cache is dropped and
// built anew.
constexpr uint64_t kMaxLookups = 50'000;
constexpr size_t kMaxVdso = size_t{64} * 1024;

bool IsNativeImage(Elf* elf) {
  GElf_Ehdr header;
  return elf != nullptr && elf_kind(elf) == ELF_K_ELF &&
         gelf_getehdr(elf, &header) != nullptr && header.e_machine == EM_X86_64 &&
         header.e_ident[EI_CLASS] == ELFCLASS64;
}

uint64_t LoadBias(Elf* elf) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0)
    return 0;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) != nullptr &&
        segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
      return segment.p_vaddr - segment.p_offset;
  }
  return 0;
}

std::string BuildId(Elf* elf) {
  const void* bytes = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf, &bytes);
  return size > 0 && size <= 64
             ? std::string(static_cast<const char*>(bytes), static_cast<size_t>(size))
             : std::string();
}

std::string ProcPath(pid_t pid, const std::string& rest) {
  return "/proc/" + std::to_string(pid) + "/" + rest;
}

ScopedFd OpenMapped(pid_t pid, const MapEntry& entry) {
  std::array<char, 64> range{};
  snprintf(range.data(), range.size(), "map_files/%llx-%llx",
           static_cast<unsigned long long>(entry.start),
           static_cast<unsigned long long>(entry.end));
  ScopedFd fd(
      open(ProcPath(pid, range.data()).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.valid())
    return fd;
  // map_files needs privileges; the path may lead elsewhere in the meantime, so the inode
  // is compared.
  fd = ScopedFd(open(ProcPath(pid, "root" + entry.path).c_str(),
                     O_RDONLY | O_CLOEXEC | O_NONBLOCK));

  struct stat status {};

  if (fd.valid() && (fstat(fd.get(), &status) != 0 || status.st_ino != entry.inode))
    return {};
  return fd;
}

std::shared_ptr<Module> ReadVdso(pid_t pid, const MapEntry& entry) {
  const size_t size = entry.end - entry.start;
  const ScopedFd memory(open(ProcPath(pid, "mem").c_str(), O_RDONLY | O_CLOEXEC));
  if (!memory.valid() || size > kMaxVdso)
    return nullptr;
  std::vector<char> image(size);
  if (pread(memory.get(), image.data(), size, static_cast<off_t>(entry.start)) !=
      static_cast<ssize_t>(size))
    return nullptr;
  return Module::FromMemory(std::move(image));
}

}  // namespace

std::shared_ptr<Module> Module::Open(ScopedFd fd) {
  elf_version(EV_CURRENT);
  std::shared_ptr<Module> module(new Module());
  module->elf_ = elf_begin(fd.get(), ELF_C_READ_MMAP, nullptr);
  module->fd_ = std::move(fd);
  return module->Load() ? module : nullptr;
}

std::shared_ptr<Module> Module::FromMemory(std::vector<char> image) {
  elf_version(EV_CURRENT);
  std::shared_ptr<Module> module(new Module());
  module->memory_ = std::move(image);
  module->elf_ = elf_memory(module->memory_.data(), module->memory_.size());
  return module->Load() ? module : nullptr;
}

bool Module::Load() {
  if (!IsNativeImage(elf_))
    return false;
  build_id_ = BuildId(elf_);
  load_bias_ = LoadBias(elf_);
  GElf_Ehdr header;
  if (gelf_getehdr(elf_, &header) != nullptr)
    entry_ = header.e_entry;
  OpenCfi();
  return true;
}

void Module::OpenCfi() {
  eh_frame_ = dwarf_getcfi_elf(elf_);
  dwarf_ = dwarf_begin_elf(elf_, DWARF_C_READ, nullptr);
  debug_frame_ = dwarf_ != nullptr ? dwarf_getcfi(dwarf_) : nullptr;
  lookups_ = 0;
}

void Module::CloseCfi() {
  if (eh_frame_ != nullptr)
    dwarf_cfi_end(eh_frame_);
  if (dwarf_ != nullptr)
    dwarf_end(dwarf_);
  eh_frame_ = nullptr;
  debug_frame_ = nullptr;
  dwarf_ = nullptr;
}

bool Module::IsEntryCode(uint64_t rel_pc) const {
  constexpr uint64_t kEntrySize =
      128;  // bytes; _start and what the loader's entry falls into
  return entry_ != 0 && rel_pc >= entry_ && rel_pc - entry_ < kEntrySize;
}

Module::~Module() {
  CloseCfi();
  if (elf_ != nullptr)
    elf_end(elf_);
}

void Module::TrimCache() {
  if (lookups_ < kMaxLookups)
    return;
  CloseCfi();
  OpenCfi();
}

Dwarf_Frame* Module::FindFrame(uint64_t rel_pc) {
  ++lookups_;
  Dwarf_Frame* frame = nullptr;
  for (Dwarf_CFI* cfi : {eh_frame_, debug_frame_}) {
    if (cfi != nullptr && dwarf_cfi_addrframe(cfi, rel_pc, &frame) == 0)
      return frame;
  }
  return nullptr;
}

std::shared_ptr<Module> ModuleCache::Get(pid_t pid, const MapEntry& entry) {
  if (entry.path == "[vdso]")
    return ReadVdso(pid, entry);
  if (entry.inode == 0)
    return nullptr;
  ScopedFd fd = OpenMapped(pid, entry);

  struct stat status {};

  if (!fd.valid() || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return nullptr;
  const Key key{status.st_dev, status.st_ino, status.st_size,
                status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
  const auto found = modules_.find(key);
  if (found != modules_.end())
    return found->second;
  std::shared_ptr<Module> module = Module::Open(std::move(fd));
  modules_.emplace(key, module);
  return module;
}

}  // namespace heapprofd
