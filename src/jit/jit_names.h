// Names for code that a just-in-time compiler has made, from what the compiler writes for
// the perf tool: /tmp/perf-PID.map and jit-PID.dump.
//
// perf map, one line per piece of code:
//   START SIZE NAME                                hexadecimal, with or without 0x
// jitdump: header of 40 bytes ("JiTD", version 1), then records of
//   u32 kind  u32 size of the record  u64 time     followed by, for
//   0 (load)   u32 pid  u32 tid  u64 vma  u64 address  u64 size  u64 index  name\0  code
//   1 (move)   u32 pid  u32 tid  u64 vma  u64 old  u64 address  u64 size  u64 index
//   2 (lines)  u64 address  u64 n  n x (u64 address  u32 line  u32 column  file\0)
//              of the load that follows; file "\xff" is that of the entry before
//
// Code is freed and its place used again; what was written last has an address. Files are
// written by the target, so nothing they say is kept but names of addresses asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profile/model.h"

namespace heapprofd {

class JitNames {
 public:
  // Only for these addresses; in any order.
  explicit JitNames(std::vector<uint64_t> pcs);

  // Reads a file of either kind to its end, or to where it is damaged. The descriptor
  // stays the caller's.
  void ReadPerfMap(int fd);
  void ReadJitdump(int fd);

  // Nothing when no file had a name for it.
  std::optional<SourceLine> Find(uint64_t pc) const;

 private:
  // Where code comes from, from one address on.
  struct Position {
    uint64_t pc;
    std::string file;
    uint32_t line;
  };

  void AddPerfMapLine(std::string_view line);
  bool ReadRecord(int fd, uint64_t offset, uint64_t* next);
  void ReadLoad(uint64_t offset, std::string_view body);
  void ReadMove(int fd, std::string_view body);
  void ReadLines(std::string_view body);
  void Assign(uint64_t start, uint64_t size, std::string_view name);

  std::vector<uint64_t> pcs_;      // ascending
  std::vector<SourceLine> names_;  // by place in pcs_
  // jitdump: what the next load record is about, and where each load record is.
  uint64_t lines_of_ = 0;  // address of the code
  std::vector<Position> lines_;
  std::unordered_map<uint64_t, uint64_t> loads_;  // offset in the file by index of code
  uint64_t assignments_ = 0;
};

// A name as V8 gives it ("JS:*run /src/a.js:3:21", the mark tells which compiler) in its
// parts; other names as they are.
SourceLine ParseJitName(std::string_view name);

}  // namespace heapprofd
