// A ring for tests: the header on the heap and the bytes mapped twice in a row, as in the
// memory that client and engine share.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "wire/ring_reader.h"
#include "wire/ring_writer.h"
#include "wire/shared_memory.h"

namespace heapprofd {

class TestRing {
 public:
  // `size`: a power of two, at least a page.
  explicit TestRing(uint64_t size) : size_(size), bytes_(MapTwice(size)) {}

  ~TestRing() { munmap(bytes_, 2 * size_); }

  TestRing(const TestRing&) = delete;
  TestRing& operator=(const TestRing&) = delete;

  RingHeader& header() { return *header_; }

  std::byte* bytes() { return bytes_; }

  uint64_t size() const { return size_; }

  RingWriter Writer() { return RingWriter(header_.get(), bytes_, size_); }

  RingReader Reader() { return RingReader(header_.get(), bytes_, size_); }

 private:
  static std::byte* MapTwice(uint64_t size) {
    const int fd = memfd_create("test-ring", MFD_CLOEXEC);
    void* base = mmap(nullptr, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fd < 0 || base == MAP_FAILED || ftruncate(fd, static_cast<off_t>(size)) != 0)
      abort();
    auto* start = static_cast<std::byte*>(base);
    for (std::byte* half : {start, start + size}) {
      if (mmap(half, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
          MAP_FAILED)
        abort();
    }
    close(fd);
    return start;
  }

  uint64_t size_;
  std::unique_ptr<RingHeader> header_ = std::make_unique<RingHeader>();
  std::byte* bytes_;
};

}  // namespace heapprofd
