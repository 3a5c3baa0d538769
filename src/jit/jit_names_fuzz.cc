// perf maps and jitdumps are written by the target: byte 0 chooses the kind.
#include <sys/mman.h>
#include <unistd.h>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "jit/jit_names.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0)
    return 0;
  const heapprofd::ScopedFd fd(memfd_create("fuzz", MFD_CLOEXEC));
  HPD_CHECK(write(fd.get(), data + 1, size - 1) == static_cast<ssize_t>(size - 1));
  heapprofd::JitNames names({0, 1, 0x1000, 0x1008, 0x7fffffffffff, UINT64_MAX});
  if (data[0] % 2 == 0)
    names.ReadPerfMap(fd.get());
  else
    names.ReadJitdump(fd.get());
  names.Find(0x1000);
  return 0;
}
