// .gnu_debugdata: a small xz-compressed ELF image inside a stripped one (Fedora and its
// relatives), whose symbol table holds the functions that .dynsym does not export.
//
// Unpacked here rather than by libdwfl because the section is foreign: a few kilobytes of
// xz can stand for gigabytes, and libdwfl has no limit.
#pragma once

#include <libelf.h>

#include <memory>
#include <vector>

namespace heapprofd {

class MiniDebugInfo {
 public:
  MiniDebugInfo() = default;

  // Empty when `elf` has no such section, or not a valid one.
  static MiniDebugInfo Read(Elf* elf);

  // Null when empty.
  Elf* elf() const { return elf_.get(); }

 private:
  struct ElfCloser {
    void operator()(Elf* elf) const { elf_end(elf); }
  };

  std::unique_ptr<std::vector<char>>
      image_;  // elf_ points into it; does not move with this object
  std::unique_ptr<Elf, ElfCloser> elf_;
};

}  // namespace heapprofd
