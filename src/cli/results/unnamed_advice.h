// What is said about functions without a name in the list of those that hold the memory:
// how much of it that concerns, where they are, and what would name them.
#pragma once

#include <optional>
#include <string>

#include "cli/results/summary.h"
#include "jit/jit_frames.h"
#include "profile/recording_end.h"

namespace heapprofd {

// One line about the module that keeps most bytes without a name, counted over the frames
// that the list would show (StackNames): a stripped function far out on a stack hides
// nobody. Code that java or node has made counts wherever it is on the stack: they can be
// told to name it. Nothing when that is less than a hundredth.
std::optional<std::string> UnnamedAdvice(const ProcessResult& process);

// The same of one file alone, from what the trace tells. Nothing of this machine is looked
// at: the file may be of another one.
std::string AdviceOfFile(const UnnamedModule& module);

// Code that belongs to no file, as a module of the report.
ModuleSymbols ModuleOfJitCode(const TargetProfile& profile, const JitReport& jit);

}  // namespace heapprofd
