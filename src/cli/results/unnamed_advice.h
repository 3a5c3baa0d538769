// What is said about functions without a name in the list of those that hold the memory:
// how much of it that concerns, where they are, and what would name them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cli/results/summary.h"
#include "jit/jit_frames.h"
#include "profile/recording_end.h"

namespace heapprofd {

// One line about the module that keeps most bytes without a name, counted over the frames
// that the list would show (StackNames): a stripped function far out on a stack hides
// nobody. Code that java or node has made counts wherever it is on the stack: they can be
// told to name it. Nothing when that is less than a hundredth.
std::optional<std::string> UnnamedAdvice(const ProcessResult& process);

// The same words of files alone, from what a trace tells. The file of another machine is
// told from the one here by its build id.
class FileAdvice {
 public:
  std::string Of(const UnnamedModule& module);

 private:
  // By path and build id, of files that were stripped: which package one is of takes long,
  // and is found out of the first ones only.
  std::map<std::pair<std::string, std::string>, std::string> stripped_;
};

// Code that belongs to no file, as a module of the report.
ModuleSymbols ModuleOfJitCode(const TargetProfile& profile, const JitReport& jit);

}  // namespace heapprofd
