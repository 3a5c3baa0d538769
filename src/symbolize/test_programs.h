// The programs of test_programs.cmake, as tests see them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "symbolize/elf_module.h"
#include "symbolize/elf_symbolizer.h"

namespace heapprofd {

// A function of the program "shapes".
constexpr char kDraw[] = "_ZN6shapes4DrawEl";

// A directory for a test's own files, which is gone when it ends.
class ScratchDirectory {
 public:
  ScratchDirectory();

  ~ScratchDirectory() { std::filesystem::remove_all(path_); }

  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct TestProgram {
  // By its name in test_programs.cmake, or by an absolute path.
  explicit TestProgram(const std::string& name);

  static bool Exists(const std::string& name);

  ModuleFile file() const { return {.fd = fd.get(), .path = path, .build_id = build_id}; }

  std::string path;
  ScopedFd fd;
  std::string build_id;  // raw bytes
};

// [start, end) of a symbol of .symtab; ends the test program when there is none.
struct SymbolRange {
  uint64_t start;
  uint64_t end;
};

SymbolRange FindSymbol(const TestProgram& program, const std::string& name);

// The answers in the order of the addresses.
std::vector<std::vector<SourceLine>> SymbolizeAddresses(
    ElfSymbolizer& symbolizer, std::span<const uint64_t> addresses);

// Where a section is in the file; ends the test program when there is none.
struct SectionRange {
  uint64_t offset;
  uint64_t size;
};

SectionRange FindSection(const TestProgram& program, const std::string& name);

}  // namespace heapprofd
