// Unused bytes in a process's code where the first instructions of ours can run, before
// there is any memory of our own.
//
// Only in mappings that cannot vanish while they are used: the executable, the loader,
// libc, the vdso.
#pragma once

#include <cstdint>
#include <vector>

#include "attach/remote_process.h"
#include "base/status.h"
#include "wire/attached_client.h"

namespace heapprofd {

struct CodeCave {
  uint64_t address = 0;
  std::vector<uint8_t> contents;  // what belongs there
  bool is_in_use = false;         // an engine that was killed has left its stub there
};

// kUnavailable: there is none.
Result<CodeCave> FindCodeCave(const RemoteProcess& process,
                              const std::vector<MapEntry>& maps);

struct StubRequest {
  uint64_t base = 0;        // of the memory to be mapped
  uint64_t total_size = 0;  // bytes
  uint64_t code_size = 0;   // bytes of it that are executable
  uint64_t hold_ticks = 0;  // of the time stamp counter, to wait for us afterwards
  uint64_t signal_mask = 0;
};

// The code for the cave: maps memory, waits, and goes on with `resume`.
std::vector<uint8_t> MakeStub(const StubRequest& request, const ResumeRegisters& resume);

}  // namespace heapprofd
