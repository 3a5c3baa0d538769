#include "cli/memory_budget.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "base/column_memory.h"
#include "base/files/temporary_directory.h"
#include "base/print.h"
#include "cli/exit_code.h"
#include "cli/flag_values.h"

namespace heapprofd {
namespace {

constexpr char kRule[] = "a number of bytes from 1 to 1 TiB";

// Whatever is being done, in whichever thread.
[[noreturn]] void GiveUpForRoom(const std::string& why) {
  Print(stderr,
        "heap_profile: cannot keep to --memory-budget: %s; free room there, name another "
        "directory in TMPDIR, or give more\n",
        why.c_str());
  fflush(stdout);
  _exit(kExitFailure);
}

}  // namespace

Flag MemoryBudgetFlag(const std::string& group, uint64_t* bytes) {
  return {.name = "memory-budget",
          .value_name = "BYTES",
          .help = "Put objects beyond this into files in TMPDIR.",
          .details =
              "What is known of the objects of a heap, 42 to 180 bytes for each, "
              "may take so much memory. The files have no names and are gone "
              "at the end; the disk must have room for them. Units: 500M, 2GiB.",
          .group = group,
          .apply = [bytes](const std::string& text) -> Status {
            HPD_TRY(SizeValue("--memory-budget", bytes, kRule)(text));
            return *bytes > 0 ? Status()
                              : Invalid("cannot use --memory-budget " + text +
                                        ": it must be " + kRule);
          }};
}

Status UseMemoryBudget(uint64_t bytes) {
  if (bytes == 0)
    return {};
  signal(SIGXFSZ, SIG_IGN);  // ulimit -f is an error of the file like others
  return SetColumnBudget(
      {.bytes = bytes, .directory = NamelessDirectory(), .give_up = GiveUpForRoom});
}

}  // namespace heapprofd
