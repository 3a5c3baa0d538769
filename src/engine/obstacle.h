// Why a program cannot be recorded by a preloaded library, as far as its file tells.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace heapprofd {

enum class Obstacle : uint8_t {
  kNone,          // none known
  k32Bit,         // no 64-bit ELF file
  kOtherMachine,  // an ELF file for another architecture
  kStatic,        // has no loader
  kPrivileged,    // gains privileges when it starts, so the loader ignores LD_PRELOAD
};

struct FoundObstacle {
  Obstacle kind = Obstacle::kNone;
  std::string file;  // the program, or the interpreter of a script
};

// `program` is looked for in $PATH when it has no slash; `directory` is where a relative
// path begins, "" for our own. Scripts are followed to their interpreter. `process`: who
// executes it, 0: we do.
FoundObstacle FindObstacle(const std::string& program,
                           const std::string& directory,
                           pid_t process = 0);

// What the kernel would execute for it and does not find: the interpreter of a script,
// the loader of an ELF file, or theirs. "" when nothing is missing, or a file cannot be
// read.
std::string MissingInterpreter(const std::string& program);

// Cause and remedy: "/bin/x is statically linked, ...; ...". Empty for kNone.
std::string DescribeObstacle(const FoundObstacle& obstacle);

}  // namespace heapprofd
