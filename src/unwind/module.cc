#include "unwind/module.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/files/proc_files.h"
#include "base/page_size.h"
#include "unwind/elf_functions.h"
#include "unwind/names_copy.h"

namespace heapprofd {
namespace {

// libdw keeps every FDE it has decoded; past this many look-ups its cache is dropped and
// built anew.
constexpr uint64_t kMaxLookups = 50'000;
constexpr size_t kMaxVdso = size_t{64} * 1024;

// Of CopyForNames: for one file, which is made while others wait, and for all of a process
// of ours. Where there is more, names need the file to be where it was.
constexpr uint64_t kMaxNames = uint64_t{64} << 20;
constexpr uint64_t kMaxAllNames = uint64_t{256} << 20;
std::atomic<uint64_t> g_names{};  // bytes

std::string BuildId(Elf* elf) {
  const void* bytes = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf, &bytes);
  return size > 0 && size <= 64
             ? std::string(static_cast<const char*>(bytes), static_cast<size_t>(size))
             : std::string();
}

bool IsNameOfExit(std::string_view name) {
  return name == "exit" || name == "pthread_exit" || name == "__pthread_exit";
}

}  // namespace

// map_files needs privileges and the root a living process. A path may lead elsewhere in
// the meantime, so the inode is compared; not the device, for which the kernel shows
// another number in maps than in stat on some file systems (btrfs, overlays).
ForeignFile OpenMappedFile(pid_t pid, const MapEntry& entry, uint64_t patience_ns) {
  std::array<char, 64> range{};
  snprintf(range.data(), range.size(), "map_files/%llx-%llx",
           static_cast<unsigned long long>(entry.start),
           static_cast<unsigned long long>(entry.end));
  constexpr uint64_t kMinorBits = 20;
  ForeignRequest request;
  request.paths = {ProcPath(pid, range.data()), ProcPath(pid, "root" + entry.path),
                   entry.path};
  request.inode = entry.inode;
  request.device =
      makedev(static_cast<unsigned>(entry.device >> kMinorBits),
              static_cast<unsigned>(entry.device) & ((1u << kMinorBits) - 1));
  request.process = pid;
  return OpenForeign(request, patience_ns);
}

namespace {

// All processes of a machine have the same one, so it is read here: the kernel reads the
// memory of another under a lock that its user can hold for as long as he likes. Those of
// 32-bit programs differ in size, and theirs are no targets; in other time name spaces
// the data differs and not the code. Null: the one at `entry` is another.
std::shared_ptr<Module> OwnVdso(const MapEntry& entry) {
  const uint64_t address = getauxval(AT_SYSINFO_EHDR);
  if (address == 0)
    return nullptr;
  const char* const begin = reinterpret_cast<const char*>(address);
  Elf64_Ehdr header;
  memcpy(&header, begin, sizeof(header));
  // The kernel's build puts the sections' headers last.
  const size_t size = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
  const size_t page = PageSize();
  if (size > kMaxVdso || entry.end - entry.start != (size + page - 1) / page * page)
    return nullptr;
  return Module::FromMemory({begin, begin + size});
}

}  // namespace

std::shared_ptr<Module> Module::Open(ScopedFd fd, uint64_t max_bytes) {
  std::unique_ptr<ElfImage> image = ElfImage::Read(fd.get(), max_bytes);
  if (image == nullptr)
    return nullptr;
  return std::shared_ptr<Module>(new Module(std::move(fd), std::move(image)));
}

std::shared_ptr<Module> Module::FromMemory(const std::vector<char>& bytes) {
  std::unique_ptr<ElfImage> image = ElfImage::FromMemory(bytes);
  if (image == nullptr)
    return nullptr;
  return std::shared_ptr<Module>(new Module(ScopedFd(), std::move(image)));
}

Module::Module(ScopedFd fd, std::unique_ptr<ElfImage> image)
    : fd_(std::move(fd)),
      image_(std::move(image)),
      build_id_(BuildId(image_->elf())),
      code_(CodeSegmentsOf(image_->elf())) {
  GElf_Ehdr header;
  if (gelf_getehdr(image_->elf(), &header) != nullptr)
    entry_ = header.e_entry;
  OpenCfi();
}

void Module::OpenCfi() {
  eh_frame_ = image_->OpenEhFrame();
  dwarf_ = dwarf_begin_elf(image_->elf(), DWARF_C_READ, nullptr);
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

ScopedFd Module::OpenFile() const {
  for (const ScopedFd* fd : {&fd_, &names_}) {
    if (fd->valid())
      return ScopedFd(fcntl(fd->get(), F_DUPFD_CLOEXEC, 0));
  }
  if (place_.path.empty())
    return {};
  ForeignRequest request;
  request.paths = {place_.path};
  request.inode = place_.inode;
  request.device = place_.device;
  request.user = place_.user;
  ForeignFile file = OpenForeign(request, kOwnPatienceNs);
  return file.device == place_.device ? std::move(file.fd) : ScopedFd();
}

void Module::Reopen(ScopedFd fd) {
  if (names_.valid())
    fd_ = std::move(fd);
}

std::shared_ptr<const Module> Module::Use(const std::shared_ptr<Module>& module) {
  std::shared_ptr<const Module> use = module->use_.lock();
  if (use == nullptr) {
    use = std::shared_ptr<const Module>(
        module.get(), [module](const Module* /*used*/) { module->EndUse(); });
    module->use_ = use;
  }
  return use;
}

void Module::EndUse() {
  if (!fd_.valid() || copied_file_ != 0 || IsOnRootMount(fd_.get()))
    return;
  if (!names_.valid()) {
    NamesCopy copy = CopyForNames(
        fd_.get(),
        std::min(kMaxNames, kMaxAllNames - std::min(kMaxAllNames, g_names.load())));
    names_ = std::move(copy.fd);
    names_bytes_ = copy.bytes;
    g_names += copy.bytes;
  }
  fd_.reset();
}

bool Module::IsEntryCode(uint64_t rel_pc) const {
  constexpr uint64_t kEntrySize =
      128;  // bytes; _start and what the loader's entry falls into
  return entry_ != 0 && rel_pc >= entry_ && rel_pc - entry_ < kEntrySize;
}

bool Module::ReadCode(uint64_t rel_pc, std::span<char> code) const {
  for (const CodeSegment& segment : code_.all()) {
    const uint64_t begin = rel_pc - segment.address;  // in the segment
    if (rel_pc < segment.address || begin >= segment.file_size ||
        segment.file_size - begin < code.size())
      continue;
    const uint64_t offset = segment.offset + begin;
    const std::span<const char> image = image_->bytes();
    if (image_->copied() < image.size())
      return fd_.valid() &&
             pread(fd_.get(), code.data(), code.size(), static_cast<off_t>(offset)) ==
                 static_cast<ssize_t>(code.size());
    if (offset >= image.size() || image.size() - offset < code.size())
      return false;
    memcpy(code.data(), image.data() + offset, code.size());
    return true;
  }
  return false;
}

bool Module::BeginsExit(uint64_t rel_pc) {
  // Of a program that is linked statically; a C library's have a tenth.
  constexpr uint64_t kMaxTables = uint64_t{16} << 20;
  if (!exits_) {
    exits_.emplace();
    if (fd_.valid()) {
      const ElfContents contents =
          ReadElf(fd_.get(), IsNameOfExit, /*use_full_table=*/true, kMaxTables);
      for (const auto& [name, symbol] : contents.symbols)
        exits_->push_back(symbol.address);
    }
  }
  return std::ranges::find(*exits_, rel_pc) != exits_->end();
}

Module::~Module() {
  CloseCfi();
  g_names -= names_bytes_;
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

ModuleCache::ModuleCache(uint64_t patience_ns) : patience_ns_(patience_ns) {
  PrepareForeignFiles();
}

std::shared_ptr<Module> ModuleCache::Get(pid_t pid,
                                         const MapEntry& entry,
                                         FileState* state) {
  FileState unwanted{};
  FileState& found_state = state != nullptr ? *state : unwanted;
  found_state = FileState::kFound;
  if (entry.path == "[vdso]")
    return OwnVdso(entry);
  if (entry.inode == 0)
    return nullptr;
  const GuardedUser user = UserOf(pid);  // while we know that it is there
  ForeignFile file = OpenMappedFile(pid, entry, patience_ns_);
  if (!file.fd.valid()) {
    found_state = file.is_late ? FileState::kLate : FileState::kGone;
    return nullptr;
  }
  const Key key{file.device, file.inode, static_cast<int64_t>(file.size),
                file.changed_ns};
  const auto found = modules_.find(key);
  if (found != modules_.end()) {
    if (std::shared_ptr<Module> module = found->second.lock()) {
      module->Reopen(std::move(file.fd));
      return module;
    }
  }
  uint64_t used = 0;
  uint64_t copies = file.is_copy ? file.size : 0;
  size_t open_files = 0;
  std::erase_if(modules_, [&](const auto& item) {
    const std::shared_ptr<Module> module = item.second.lock();
    used += module != nullptr ? module->bytes() : 0;
    copies += module != nullptr ? module->copied_file() : 0;
    open_files += module != nullptr && module->has_open_file() ? 1u : 0u;
    return module == nullptr;
  });
  const uint64_t left = kMaxBytes - std::min(kMaxBytes, used);
  std::shared_ptr<Module> module =
      Module::Open(std::move(file.fd), std::min(left, Module::kMaxBytes));
  if (module == nullptr)
    return nullptr;
  if (file.is_copy)
    module->set_copied_file(file.size);
  module->set_place({.path = file.is_copy ? "" : entry.path,
                     .device = file.device,
                     .inode = file.inode,
                     .user = user});
  if (file.is_copy ? copies > kMaxCopies : open_files >= max_open_files_)
    module->CloseFile();
  modules_.emplace(key, module);
  return module;
}

// A quarter of what this process may have.
size_t ModuleCache::MaxOpenFiles() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0
             ? static_cast<size_t>(std::min<rlim_t>(limit.rlim_cur / 4, 8192))
             : 256;
}

}  // namespace heapprofd
