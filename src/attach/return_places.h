// Where stopped threads are, and where they will come back to: their program counters,
// and those that the kernel has put on a stack when it had a thread run a signal handler.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "attach/remote_process.h"
#include "attach/thread/traced_thread.h"

namespace heapprofd {

struct ReturnPlace {
  const TracedThread* thread;
  uint64_t code;      // address that it will come to
  uint64_t stack_at;  // address of the word that says so; 0: it is there
};

// Those of `threads` in `ranges` (begin, end). Each word on a stack that looks like one
// counts. nullopt: a stack cannot be read.
//
// Frames of signal handlers are looked for in the last 64 KiB of the stack, in the last
// MiB of threads that block signals, as handlers do, and on each stack that a handler has
// interrupted.
std::optional<std::vector<ReturnPlace>> FindInside(
    const std::vector<TracedThread>& threads,
    const std::vector<std::pair<uint64_t, uint64_t>>& ranges);

// Whether there is any, or may be.
bool IsAnyInside(const std::vector<TracedThread>& threads,
                 const std::vector<std::pair<uint64_t, uint64_t>>& ranges);

// Whether the kernel has put a word on a stack that it will take a program counter from.
bool IsInSignalFrame(const ReturnPlace& place);

// Code that is to be replaced, and the copy of it that stays.
struct ReplacedCode {
  uint64_t begin;
  uint64_t end;
  uint64_t copy;
  std::vector<std::pair<size_t, size_t>> instructions;  // offsets there, and in the copy
};

// Has the stopped threads go on in the copy, at the same instruction, where they would
// come to code that is replaced; not to its first byte, which may change under anybody.
// False: one cannot be led away, or its stack cannot be read.
bool LeadOut(const RemoteProcess& process,
             const std::vector<TracedThread>& threads,
             const std::vector<ReplacedCode>& replaced);

}  // namespace heapprofd
