// One ELF image with its unwind information, opened once: the process, and its files, may
// be gone before the last stack is unwound. Modules are shared between processes and live
// as long as one of them knows the image. Their files stay open as long as a process maps
// them, and longer where that keeps no file system from being unmounted.
#pragma once

#include <elfutils/libdw.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/files/foreign_file.h"
#include "base/scoped_fd.h"
#include "unwind/elf_image.h"
#include "unwind/proc_maps.h"

namespace heapprofd {

// Where a file is to be found again.
struct FilePlace {
  std::string path;  // in /; "": nowhere
  uint64_t device = 0;
  uint64_t inode = 0;
  GuardedUser user{};  // whose program had it mapped
};

class Module {
 public:
  static constexpr uint64_t kMaxBytes = uint64_t{256} << 20;

  // `fd` is a file that may be anything; nullptr when it is no ELF image for this
  // machine. Unwind information that does not fit into `max_bytes` is left out.
  static std::shared_ptr<Module> Open(ScopedFd fd, uint64_t max_bytes = kMaxBytes);

  // An image that exists in memory only: the vdso.
  static std::shared_ptr<Module> FromMemory(const std::vector<char>& bytes);

  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Raw bytes, empty when the image has none.
  const std::string& build_id() const { return build_id_; }

  // The executable segments.
  const CodeSegments& code() const { return code_; }

  // True near the image's entry point: code that nothing calls, so a stack may end there
  // without saying so.
  bool IsEntryCode(uint64_t rel_pc) const;

  // Reads the code at an ELF address; false: not all of it is there. Of files no code is
  // kept: it is what the file has by now, and nothing when it is not open any more.
  bool ReadCode(uint64_t rel_pc, std::span<char> code) const;

  // True where a function begins that ends the calling thread or the program: those that
  // C libraries call with what main, or a thread's first function, has returned.
  bool BeginsExit(uint64_t rel_pc);

  // Memory that the unwind information takes.
  uint64_t bytes() const { return image_->copied(); }

  // Whether a file stays open for OpenFile.
  bool has_open_file() const { return fd_.valid() || names_.valid(); }

  // Memory that the open file takes, which is a copy of one that may hang.
  uint64_t copied_file() const { return fd_.valid() ? copied_file_ : 0; }

  void set_copied_file(uint64_t bytes) { copied_file_ = bytes; }

  // The file again, for whoever reads its symbols; invalid for images in memory, and for
  // files that are no longer where they were and of which nothing was kept.
  ScopedFd OpenFile() const;

  void set_place(FilePlace place) { place_ = std::move(place); }

  // From now on the file is opened at its place when it is asked for.
  void CloseFile() { fd_.reset(); }

  // Opens the file again, which no process has mapped for a while.
  void Reopen(ScopedFd fd);

  // A process maps the file as long as the result lives. When no process does any more,
  // the file is not open a moment longer than it takes to copy what names need, unless it
  // lies where nobody can unmount it.
  static std::shared_ptr<const Module> Use(const std::shared_ptr<Module>& module);

  // Row of unwind information for an ELF address; nullptr when there is none. Free with
  // free().
  Dwarf_Frame* FindFrame(uint64_t rel_pc);

  // The number of FindFrame results alive must be 0: gives back what libdw has cached.
  void TrimCache();

 private:
  Module(ScopedFd fd, std::unique_ptr<ElfImage> image);

  void OpenCfi();
  void CloseCfi();
  void EndUse();

  ScopedFd fd_;
  uint64_t copied_file_ = 0;
  FilePlace place_;
  ScopedFd names_;  // what CopyForNames has made of the file
  uint64_t names_bytes_ = 0;
  std::weak_ptr<const Module> use_;
  std::unique_ptr<ElfImage> image_;
  Dwarf* dwarf_ = nullptr;
  Dwarf_CFI* eh_frame_ = nullptr;     // owned by us
  Dwarf_CFI* debug_frame_ = nullptr;  // owned by dwarf_
  uint64_t lookups_ = 0;
  std::string build_id_;
  CodeSegments code_;
  uint64_t entry_ = 0;
  std::optional<std::vector<uint64_t>> exits_;  // ELF addresses, when somebody has asked
};

// The file behind a mapping of a process, whatever its name means here by now.
ForeignFile OpenMappedFile(pid_t pid,
                           const MapEntry& entry,
                           uint64_t patience_ns = kApartPatienceNs);

class ModuleCache {
 public:
  // `patience_ns`: how long Get may wait for a file.
  explicit ModuleCache(uint64_t patience_ns = kServingPatienceNs);

  // Of the last file that was asked for.
  enum class FileState : uint8_t {
    kFound,
    kLate,  // it may be had later
    kGone,  // there is none, or it must not be opened
  };

  // The image behind an executable mapping of a process; nullptr when it cannot be read
  // or is no ELF image.
  std::shared_ptr<Module> Get(pid_t pid,
                              const MapEntry& entry,
                              FileState* state = nullptr);

 private:
  // All modules together. Real programs need a tenth of their code's size; a target that
  // maps made-up files (sparse ones cost it nothing) gets no further.
  static constexpr uint64_t kMaxBytes = 2 * Module::kMaxBytes;
  // Whole files that are kept in memory for their symbols, all together.
  static constexpr uint64_t kMaxCopies = uint64_t{256} << 20;

  using Key =
      std::tuple<uint64_t, uint64_t, int64_t, int64_t>;  // device, inode, size, mtime

  uint64_t patience_ns_;

  // Files that stay open, of all that are in use: processes may be gone, and their mounts
  // with them, before their symbols are read. A process may map as many as it likes.
  size_t max_open_files_ = MaxOpenFiles();

  static size_t MaxOpenFiles();

  // Not owned: a process that loads files without end must not use up the memory.
  std::map<Key, std::weak_ptr<Module>> modules_;
};

}  // namespace heapprofd
