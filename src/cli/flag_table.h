// The table of a command line's flags. Parser, -h, --help and the shell completions all
// come from it, and of --help the manual pages are made (packaging/manual_page.awk), so
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
};

// What a command does, around its flags.
struct CommandText {
  std::string name;      // "heap_profile"
  std::string summary;   // one sentence
  std::string usage;     // lines, each without the indent
  std::string epilogue;  // paragraphs after the options; may be empty
};

// Parses `arguments` up to "--"; `positional` takes what is no flag. Gives the index of
// the first argument behind "--", or the number of arguments.
Result<size_t> ParseFlags(const std::vector<Flag>& flags,
                          const std::vector<std::string>& arguments,
                          const std::function<Status(const std::string&)>& positional);

// The one of `words` that was probably meant; "": none is like it.
std::string NearestWord(const std::string& word, const std::vector<std::string>& words);

// -h: a line per flag.
std::string ShortHelp(const CommandText& command, const std::vector<Flag>& flags);

// --help: with the details.
std::string LongHelp(const CommandText& command, const std::vector<Flag>& flags);

// Completions; `verbs` are the words that may stand where no flag is.
std::string ZshCompletion(const CommandText& command,
                          const std::vector<Flag>& flags,
                          const std::vector<std::string>& verbs);
std::string FishCompletion(const CommandText& command,
                           const std::vector<Flag>& flags,
                           const std::vector<std::string>& verbs);

}  // namespace heapprofd
