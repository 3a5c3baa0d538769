// A file with heap profiles as the commands that tell of one see it: its processes, those
// with most memory first, each with the last dump of its heaps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/inspect/restored_profile.h"
#include "import/perfetto/byte_source.h"
#include "query/trace_database.h"

namespace heapprofd {

struct OpenedFile {
  // What only some ask for: the processes. Once.
  Status Complete();

  std::string path;  // of several, all of them
  std::unique_ptr<TraceDatabase> database;
  std::vector<bool> is_allocator;  // AllocatorFrames()
  std::unique_ptr<HeapSums> sums;  // for the processes
  std::vector<std::unique_ptr<RestoredProfile>> processes;
  std::vector<std::string> warnings;  // what was not right in the file, one line each
  bool is_complete = false;

  const ImportedTrace& trace() const { return database->trace(); }

  // Rows of heap_dump of a heap of a process, in order. From Complete() on.
  std::vector<uint32_t> DumpsOf(uint32_t upid, const std::string& heap_name) const;

  // It has dumps of the maximum (dump_at_max).
  bool is_at_maximum() const;

  // False: they are of another program, and of the end of a heap only the limits are
  // known (HeapDump::certain_live, possible_live), if anything.
  bool tells_end() const;

  // Of the recording, as far as the file tells; 0: it does not.
  double seconds() const;

  // Why there is nothing to tell of; "" when there is a heap with allocations.
  std::string ReasonForNothing() const;

  // False: there is nothing to tell of, and `command` has said why.
  bool TellsSomething(const char* command) const;
};

// A heap of a file that is told of.
struct ChosenHeap {
  const OpenedFile* file = nullptr;
  const TargetProfile* profile = nullptr;
  const HeapDump* heap = nullptr;
};

// What a command says of a file that has nothing to tell.
void SayNothingToTell(const char* command,
                      const OpenedFile& file,
                      const std::string& reason);

// `tool` begins the lines on stderr about symbols. kInvalidArgument for heap dumps of
// Java, which other commands examine.
Result<std::unique_ptr<OpenedFile>> OpenFile(const std::string& path,
                                             const std::string& tool);

// Several as one, also heap dumps of Java, whose objects are in its tables; its processes
// are there from Complete() on.
Result<std::unique_ptr<OpenedFile>> OpenFiles(const std::vector<std::string>& paths,
                                              const std::string& tool);

// The same of OpenOwnTrace.
Result<std::unique_ptr<OpenedFile>> OpenOwn(ByteSource& source, const std::string& name);

}  // namespace heapprofd
