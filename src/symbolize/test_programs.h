// The programs of test_programs.cmake, as tests see them.
#pragma once

#include <cstdint>
#include <string>

#include "base/scoped_fd.h"
#include "symbolize/elf_module.h"

namespace heapprofd {

struct TestProgram {
  explicit TestProgram(const std::string& name);

  static bool Exists(const std::string& name);

  ModuleFile file() const {
    return {.fd = fd.get(), .path = path, .build_id = build_id};
  }

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

}  // namespace heapprofd
