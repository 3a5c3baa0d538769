// A file with heap profiles as the commands that tell of one see it: its processes, those
// with most memory first, each with the last dump of its heaps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/inspect/restored_profile.h"
#include "query/trace_database.h"

namespace heapprofd {

struct OpenedFile {
  std::string path;  // of several, all of them
  std::unique_ptr<TraceDatabase> database;
  std::vector<bool> is_allocator;  // AllocatorFrames()
  std::vector<std::unique_ptr<RestoredProfile>> processes;
  std::vector<std::string> warnings;  // what was not right in the file, one line each

  const ImportedTrace& trace() const { return database->trace(); }

  // Rows of heap_dump of a heap of a process, in order.
  std::vector<uint32_t> DumpsOf(uint32_t upid, const std::string& heap_name) const;

  // False: its dumps are of the maximum (dump_at_max), and of the end of a heap only the
  // limits are known (HeapDump::certain_live, possible_live).
  bool tells_end() const;

  // Of the recording, as far as the file tells; 0: it does not.
  double seconds() const;

  // Why there is nothing to tell of; "" when there is a heap with allocations.
  std::string ReasonForNothing() const;
};

// `tool` begins the lines on stderr about symbols. kInvalidArgument for heap dumps of
// Java, which other commands examine.
Result<std::unique_ptr<OpenedFile>> OpenFile(const std::string& path,
                                             const std::string& tool);

// Several as one.
Result<std::unique_ptr<OpenedFile>> OpenFiles(const std::vector<std::string>& paths,
                                              const std::string& tool);

}  // namespace heapprofd
