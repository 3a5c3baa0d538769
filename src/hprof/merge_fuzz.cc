// The two files of a hostile dump of Dalvik: byte 0 says which comes first, bytes 1 and 2
// where the second one begins.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/fd_path.h"
#include "base/scoped_fd.h"
#include "base/status.h"
#include "hprof/merge.h"

namespace {

heapprofd::ScopedFd FileOf(const uint8_t* data, size_t size) {
  heapprofd::ScopedFd fd(memfd_create("fuzz", MFD_CLOEXEC));
  HPD_CHECK(write(fd.get(), data, size) == static_cast<ssize_t>(size));
  return fd;
}

std::string PathOf(const heapprofd::ScopedFd& fd) {
  return heapprofd::FdPath(fd.get());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kOwnBytes = 3;
  if (size < kOwnBytes)
    return 0;
  const size_t middle = std::min<size_t>(data[1] | data[2] << 8, size - kOwnBytes);
  const uint8_t* const bytes = data + kOwnBytes;
  const heapprofd::ScopedFd one = FileOf(bytes, middle);
  const heapprofd::ScopedFd other = FileOf(bytes + middle, size - kOwnBytes - middle);
  const auto pair = data[0] % 2 == 0
                        ? heapprofd::hprof::OpenPair(PathOf(one), PathOf(other))
                        : heapprofd::hprof::OpenPair(PathOf(other), PathOf(one));
  if (pair.ok())
    HPD_CHECK(pair.value().tail.Check().ok());
  return 0;
}
