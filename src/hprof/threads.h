// The threads of a dump: what they were doing, and what their stacks hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hprof/load_graph.h"

namespace heapprofd::hprof {

struct ThreadFrame {
  uint64_t id = 0;               // for DumpFile::DescribeFrame
  std::vector<uint32_t> locals;  // objects that it holds, each once
};

struct HeapThread {
  uint32_t object = kNoObject;         // kNoObject: the dump has none
  std::string name;                    // "": not known
  std::vector<ThreadFrame> frames;     // innermost first; empty: the dump does not tell
  std::vector<uint32_t> other_locals;  // that no frame is told of
  // It is making a java.lang.OutOfMemoryError. HotSpot marks the thread that made it dump
  // so (HeapDumpOnOutOfMemoryError), by a frame that no code has.
  bool ran_out_of_memory = false;
};

// In the order of their numbers in the dump.
std::vector<HeapThread> ThreadsOf(const DumpFile& file,
                                  const HeapDump& dump,
                                  const HeapGraph& heap);

}  // namespace heapprofd::hprof
