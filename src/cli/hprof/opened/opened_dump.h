// A heap that was opened to be examined, of a dump or of a trace, and what a user should
// know about how that went.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hprof/census.h"
#include "hprof/dump_file.h"
#include "hprof/fields/field_layout.h"
#include "hprof/mapped_input.h"
#include "tables/imported_trace.h"

namespace heapprofd {

// One of an hprof file.
struct DumpOfFile {
  hprof::MappedInput input;
  hprof::DumpFile file;
  const hprof::HeapDump* dump;
};

// What to do when a trace has too little.
inline constexpr char kTakeDump[] =
    "take an hprof dump of the program (heap_profile java -p PID --keep FILE) and "
    "examine "
    "that";

// One of a trace.
struct GraphOfTrace {
  ImportedTrace tables;
  uint32_t graph = 0;  // row
};

// Either `source` or `trace` is there.
struct OpenedDump {
  std::string path;
  std::unique_ptr<DumpOfFile> source;
  std::unique_ptr<GraphOfTrace> trace;
  size_t number = 1;  // of those in the file, from 1
  std::vector<std::string> notes = {};
  bool is_damaged = false;
  hprof::Holding holding = hprof::Holding::kSoft;
  std::string index_path = {};                           // empty: the dump is in no file
  bool keep_index = false;                               // if there is none that fits
  std::shared_ptr<const hprof::MappedInput> index = {};  // null: none is used

  bool is_of_trace() const { return trace != nullptr; }

  // kIo: what was read so far is not to be trusted.
  Status Check() const {
    HPD_TRY(source == nullptr ? Status() : source->input.Check());
    return index == nullptr ? Status() : index->Check();
  }
};

// `number`: of several in one file, from 1; 0: the last one. `process`: of a trace only
// the heaps of that process count, by its pid; 0: all. A dump is of one process, and of
// which is not in it.
Result<OpenedDump> OpenDump(const std::string& path,
                            uint64_t number,
                            uint64_t process = 0);

// Of bytes of a dump that are there already; `path` is what they are called.
Result<OpenedDump> OpenDump(hprof::MappedInput input,
                            const std::string& path,
                            uint64_t number);

// The bytes of a file that may be either.
bool IsTrace(std::string_view bytes);

// The heap graphs of a trace, or of one of its processes, are numbered in its order.
Result<OpenedDump> OpenTraceOfHeap(const hprof::MappedInput& input,
                                   const std::string& path,
                                   uint64_t number,
                                   uint64_t process);

// On standard error.
void PrintNotes(const OpenedDump& opened);

// What a walk could not read becomes notes.
void AddDamage(const hprof::HeapCensus& census, OpenedDump* opened);

}  // namespace heapprofd
