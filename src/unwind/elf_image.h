// Those parts of an ELF file that unwinding needs, as an ELF image in memory.
//
// Copied, not mapped: whoever may write to the file (also to a library that is running)
// can truncate it, and reading a mapping of it would then end the engine with SIGBUS.
// The copy costs what its tables have: 5.6 of the 110 MB of libLLVM, 0.2 MB of libc. A
// mapping has as many of these pages resident after a few hundred look-ups.
#pragma once

#include <elfutils/libdw.h>
#include <libelf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/code_segments.h"

namespace heapprofd {

// The executable segments.
CodeSegments CodeSegmentsOf(Elf* elf);

class ElfImage {
 public:
  // nullptr when `fd` is no ELF image for this machine. What is missing of a damaged file
  // reads as zeros. Parts that do not fit into `max_copied` bytes are left out.
  static std::unique_ptr<ElfImage> Read(int fd, uint64_t max_copied);

  // The whole image is in `bytes`, which are copied.
  static std::unique_ptr<ElfImage> FromMemory(std::span<const char> bytes);

  ~ElfImage();
  ElfImage(const ElfImage&) = delete;
  ElfImage& operator=(const ElfImage&) = delete;

  // The sections that were left out look like those of a stripped file: without bits.
  Elf* elf() const { return elf_; }

  // What has been copied; the rest reads as zeros.
  std::span<const char> bytes() const { return bytes_; }

  // Bytes.
  uint64_t copied() const { return copied_; }

  // Unwind information of .eh_frame, to be ended before this object; nullptr when there
  // is none.
  Dwarf_CFI* OpenEhFrame();

 private:
  explicit ElfImage(std::span<char> bytes) : bytes_(bytes) {}

  // All zeros, read-only and without cost until written to.
  static std::unique_ptr<ElfImage> Reserve(uint64_t size);

  bool MakeWritable(uint64_t offset, uint64_t size);
  bool Copy(int fd, uint64_t offset, uint64_t size);
  bool CopyHeaders(int fd);
  bool CopySections(int fd);
  void CopySegments(int fd, bool has_eh_frame);
  bool OpenElf();

  std::span<char> bytes_;
  Elf* elf_ = nullptr;
  Elf* without_sections_ = nullptr;
  uint64_t copied_ = 0;
  uint64_t max_copied_ = 0;
};

}  // namespace heapprofd
