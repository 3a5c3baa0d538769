// `heap_profile mark`: a dump with a name in what is recorded now.
#include <memory>

#include "cli/command_table.h"
#include "cli/record/remote_recording.h"

namespace heapprofd {

CommandLine MarkLine() {
  const auto words = std::make_shared<Words>();
  return {.text = {.name = "heap_profile mark",
                   .summary = "Adds a dump with this name: to the recording under which "
                              "it runs, else to all of this user.",
                   .usage = "heap_profile mark NAME"},
          .flags = {},
          .take_word = TakeWords(words.get()),
          .run = [words]() -> Result<int> {
            if (words->size() != 1 || words->front().empty())
              return Invalid(
                  "cannot mark: one name is needed; for example: heap_profile mark "
                  "after-load");
            return MarkRecordings(words->front());
          }};
}

}  // namespace heapprofd
