// ELF images and their unwind information are the target's: looks rules up in damaged
// images.
//
// An input is an image, or else a list of changes to the vdso, a small and real one that
// every process has: each four bytes are an offset (24 bits) and the new byte there.
#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "unwind/cfi_rules.h"
#include "unwind/module.h"
#include "unwind/names_copy.h"

namespace heapprofd {
namespace {

constexpr size_t kImageSize = 2 * 4096;  // all of it, with the section table

std::vector<char> ImageOf(const uint8_t* data, size_t size) {
  if (size >= SELFMAG && memcmp(data, ELFMAG, SELFMAG) == 0)
    return {data, data + size};
  const auto* original = reinterpret_cast<const char*>(getauxval(AT_SYSINFO_EHDR));
  std::vector<char> image(original, original + kImageSize);
  for (size_t i = 0; i + 4 <= size; i += 4) {
    const size_t offset =
        size_t{data[i]} | size_t{data[i + 1]} << 8 | size_t{data[i + 2]} << 16;
    image[offset % image.size()] = static_cast<char>(data[i + 3]);
  }
  return image;
}

void OpenDamaged(const uint8_t* data, size_t size) {
  const std::vector<char> image = ImageOf(data, size);
  ScopedFd fd(memfd_create("fuzz", MFD_CLOEXEC));
  if (write(fd.get(), image.data(), image.size()) != static_cast<ssize_t>(image.size()))
    abort();
  if (CopyForNames(fd.get(), 1 << 16).bytes > 1 << 16)
    abort();
  const std::shared_ptr<Module> module = Module::Open(std::move(fd));
  if (module == nullptr)
    return;
  if (module->build_id().size() > 64)
    abort();
  for (uint64_t address = 0; address < 8192; address += 61)
    RuleForAddress(*module, address);
  for (const uint64_t address : {UINT64_MAX, uint64_t{1} << 63})
    RuleForAddress(*module, address);
}

}  // namespace
}  // namespace heapprofd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heapprofd::OpenDamaged(data, size);
  return 0;
}
