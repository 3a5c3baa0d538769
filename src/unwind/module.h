// One ELF image with its unwind information, opened once and kept open: the process, and
// its files, may be gone before the last stack is unwound. Modules are shared between
// processes.
//
// Read through mmap: clean pages of the file are cheaper than copies of .eh_frame on the
// heap, and the libraries of a large program hold hundreds of megabytes. A file that is
// truncated while it is mapped raises SIGBUS in the engine. Linux refuses that (ETXTBSY)
// for a running executable but not for its libraries; package managers and linkers
// replace those by rename, a target that means harm need not.
#pragma once

#include <elfutils/libdw.h>
#include <libelf.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/scoped_fd.h"
#include "unwind/proc_maps.h"

namespace heapprofd {

class Module {
 public:
  // `fd` is a file that may be anything; nullptr when it is no ELF image for this
  // machine.
  static std::shared_ptr<Module> Open(ScopedFd fd);

  // An image that exists in memory only: the vdso.
  static std::shared_ptr<Module> FromMemory(std::vector<char> image);

  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Raw bytes, empty when the image has none.
  const std::string& build_id() const { return build_id_; }

  // p_vaddr - p_offset of the first executable segment.
  uint64_t load_bias() const { return load_bias_; }

  // True near the image's entry point: code that nothing calls, so a stack may end there
  // without saying so.
  bool IsEntryCode(uint64_t rel_pc) const;

  // -1 for images in memory.
  int fd() const { return fd_.get(); }

  // Row of unwind information for an ELF address; nullptr when there is none. Free with
  // free().
  Dwarf_Frame* FindFrame(uint64_t rel_pc);

  // The number of FindFrame results alive must be 0: gives back what libdw has cached.
  void TrimCache();

 private:
  Module() = default;

  bool Load();
  void OpenCfi();
  void CloseCfi();

  ScopedFd fd_;
  std::vector<char> memory_;
  Elf* elf_ = nullptr;
  Dwarf* dwarf_ = nullptr;
  Dwarf_CFI* eh_frame_ = nullptr;     // owned by us
  Dwarf_CFI* debug_frame_ = nullptr;  // owned by dwarf_
  uint64_t lookups_ = 0;
  std::string build_id_;
  uint64_t load_bias_ = 0;
  uint64_t entry_ = 0;
};

class ModuleCache {
 public:
  // The image behind an executable mapping of a process; nullptr when it cannot be read
  // or is no ELF image.
  std::shared_ptr<Module> Get(pid_t pid, const MapEntry& entry);

 private:
  using Key =
      std::tuple<uint64_t, uint64_t, int64_t, int64_t>;  // device, inode, size, mtime

  std::map<Key, std::shared_ptr<Module>> modules_;
};

}  // namespace heapprofd
