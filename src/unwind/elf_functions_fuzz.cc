// The files behind a target's mappings are whatever the target has put there.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "unwind/elf_functions.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != static_cast<ssize_t>(size))
    return 0;
  heapprofd::ReadElf(
      fd, [](std::string_view) { return true; }, /*use_full_table=*/true);
  close(fd);
  return 0;
}
