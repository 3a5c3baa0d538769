#include "engine/own_malloc.h"

#include <sys/stat.h>

#include <algorithm>

#include "attach/allocators.h"
#include "unwind/elf_functions.h"

namespace heapprofd {
namespace {

// What is looked into takes time that all programs of the session wait for.
constexpr size_t kMaxSeen = 256;                     // files
constexpr uint64_t kMaxTables = uint64_t{16} << 20;  // bytes of a file's symbol tables

bool HasMalloc(int fd) {
  const ElfContents contents = ReadElf(
      fd, [](std::string_view name) { return name == "malloc" || name == "free"; },
      /*use_full_table=*/false, kMaxTables);
  return HasWholeAllocator(contents);
}

}  // namespace

bool OwnMallocs::IsIn(const Target& target) {
  const TargetProfile& profile = target.profile();
  const auto executable =
      std::ranges::find(profile.mappings, profile.process.executable, &Mapping::path);
  if (executable == profile.mappings.end())
    return false;
  const ScopedFd fd = target.address_space().known().OpenFileOf(*executable);

  struct stat status {};

  if (!fd.valid() || fstat(fd.get(), &status) != 0)
    return false;
  const std::pair file(status.st_dev, status.st_ino);
  if (const auto seen = seen_.find(file); seen != seen_.end())
    return seen->second;
  return seen_.size() < kMaxSeen && (seen_[file] = HasMalloc(fd.get()));
}

}  // namespace heapprofd
