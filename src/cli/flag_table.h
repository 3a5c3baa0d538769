// The table of a command line's flags and its parser. -h, --help, the manual page
// (cli/help_text.h) and the shell completions (cli/completions.h) come from it too, so
// that none of them can tell another story.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace heapprofd {

struct Flag {
  char letter = 0;                        // 0: none
  std::string name = {};                  // without dashes
  std::vector<std::string> aliases = {};  // other spellings, without dashes; not in -h
  std::string value_name = {};            // empty: takes no value
  std::string help = {};                  // one line
  std::string details = {};  // more for --help and the manual page; may be empty
  std::string group = {};    // headline in the help
  // Takes the value, "" for a switch. Errors name the flag.
  std::function<Status(const std::string&)> apply = {};
  bool is_rare = false;  // -h only names it, on a line with the others
};

// Parses `arguments` up to "--"; `positional` takes what is no flag. Gives the index of
// the first argument behind "--", or the number of arguments.
Result<size_t> ParseFlags(const std::vector<Flag>& flags,
                          const std::vector<std::string>& arguments,
                          const std::function<Status(const std::string&)>& positional);

// The one of `words` that was probably meant; "": none is like it.
std::string NearestWord(const std::string& word, const std::vector<std::string>& words);

// "did you mean X?", or `otherwise` when none of `words` is like it.
std::string DidYouMean(const std::string& word,
                       const std::vector<std::string>& words,
                       const std::string& otherwise);

}  // namespace heapprofd
