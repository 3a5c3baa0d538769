// What heap_profile hprof says about a heap: for people and, as JSON, for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/flag_table.h"
#include "cli/help_text.h"
#include "cli/hprof/opened/opened_dump.h"
#include "hprof/find_objects.h"

namespace heapprofd {

// What is asked about a dump.
struct HprofView {
  std::string verb = "histogram";
  // An address, or a class, whose object that retains most is meant; empty: all of the
  // heap. compare: the file with an older dump. find: names of classes.
  std::string object = {};
  uint64_t process = 0;     // of traces: only its heaps, by its pid; 0: those of all
  uint64_t older_dump = 0;  // compare: of several in that file, from 1; 0: the last one
  std::vector<hprof::FieldCondition> conditions = {};  // find
  bool json = false;
  bool retained = false;  // with retained sizes, where the view can be without
  hprof::Holding holding = hprof::Holding::kSoft;
  uint64_t top = 20;           // rows; 0: all
  uint64_t memory_budget = 0;  // bytes for what is known of the objects; 0: none
};

bool IsView(const std::string& verb);

// The views, for --help, each in a line of usage: `command` comes before it, and `file`
// behind it where the view names its dump.
std::vector<CommandWord> ViewWords();
std::string ViewUsage(const std::string& command, const std::string& file);

// --retained, --holding, --top, --memory-budget, --json.
std::vector<Flag> DumpViewFlags(const std::string& group, HprofView* view);

// `words`: what is named behind the verb and the dump.
Status SetObject(const std::vector<std::string>& words, HprofView* view);

// The older dump, where the view compares with one: to be opened first, as what cannot be
// read must be known before anything is done for the newer one, and only once, as it may
// be a pipe.
Result<std::optional<OpenedDump>> OpenOlder(const HprofView& view);

// Prints to standard output, and what a user should know of the dump to standard error.
// `older`: from OpenOlder.
Status PrintView(OpenedDump& opened,
                 std::optional<OpenedDump> older,
                 const HprofView& view);

}  // namespace heapprofd
