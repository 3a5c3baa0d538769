// Texts of /proc have names in them that the process has chosen.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/files/memory_limits.h"
#include "base/files/mount_info.h"
#include "base/files/proc_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heapprofd;
  const std::string text(data, data + size);
  if (StatusField(text, "State").find('\n') != std::string::npos)
    abort();
  StatusIds(text, "Uid");
  InnerIdIn(text);
  StatFields(text, 4, 22);
  IsMemoryLimited(text, text, 1 << 20);
  for (const Mount& mount : ParseMountInfo(text)) {
    if (mount.point.size() > size || mount.type.size() > size)
      abort();
  }
  return 0;
}
