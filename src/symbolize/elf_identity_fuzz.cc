// Files in symbol directories, and those whose names a hostile file gives, are looked at
// with the rights of whoever asks.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "symbolize/elf_identity.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const heapprofd::ScopedFd fd(memfd_create("fuzz", MFD_CLOEXEC));
  HPD_CHECK(write(fd.get(), data, size) == static_cast<ssize_t>(size));
  const auto identity = heapprofd::IdentifyElf(fd.get());
  if (identity)
    HPD_CHECK(identity->build_id.size() <= size && identity->debug_link.size() <= size);
  return 0;
}
