// The functions of a stack for exports of recordings: the outermost first, inlined ones
// apart, without the allocation function at its end.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "profile/model.h"

namespace heapprofd {

struct ExportedFunction {
  std::string name;  // UTF-8; "libc.so.6+0x1234" where nobody knows it
  std::string module;
  std::string file;  // "": unknown
  uint32_t line = 0;

  bool operator<(const ExportedFunction& other) const {
    return std::tie(name, module, file, line) <
           std::tie(other.name, other.module, other.file, other.line);
  }
};

// The functions of a profile's frames, each once.
class StackFunctions {
 public:
  explicit StackFunctions(const TargetProfile& profile);

  // Rows of functions().
  std::vector<uint32_t> Of(CallsiteId callsite) const;

  const std::vector<ExportedFunction>& functions() const { return functions_; }

 private:
  const TargetProfile& profile_;
  std::vector<ExportedFunction> functions_;
  std::vector<std::vector<uint32_t>> by_frame_;  // innermost first
};

}  // namespace heapprofd
