// From one frame's unwind information to a Rule: the part of cfi_rules.h that differs
// between architectures. Each has a folder with a frame_rule.cc of its own
// (docs/design/architectures.md).
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>

#include "unwind/module.h"
#include "walk/rule.h"

namespace heapprofd {

struct FrameInfo {
  int return_address_column = 0;  // DWARF's number of a register
  bool is_signal_frame = false;   // is marked as one
};

// Of a frame whose return address is not undefined. kUnwalkable: no Rule can say it.
Rule FrameRule(Dwarf_Frame* frame, const FrameInfo& info, uint64_t rel_pc);

// True when the code behind `rel_pc` is known as the kernel's return from signal
// handlers, whatever unwind information says of it.
bool IsKernelSignalReturn(const Module& module, uint64_t rel_pc);

// What the instructions behind `rel_pc` say where unwind information says nothing, as in
// musl, which is built without: that signal handlers return there, or that a stack ends,
// since what was returned goes to exit or pthread_exit. Else kUnknown.
Rule RuleOfCode(Module& module, uint64_t rel_pc);

}  // namespace heapprofd
