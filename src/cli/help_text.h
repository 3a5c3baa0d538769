// A command told to people: -h and --help, from its table of flags. Of --help the manual
// pages are made (packaging/manual_page.awk).
#pragma once

#include <string>
#include <vector>

#include "cli/flag_table.h"

namespace heapprofd {

// A word that a command understands where no flag is: a command, a mode, a view.
struct CommandWord {
  std::string name;
  std::string help;  // one line
};

// What a command does, around its flags.
struct CommandText {
  std::string name;                     // "heap_profile query"
  std::string summary;                  // one sentence
  std::string usage;                    // lines, each without the indent
  std::string words_title = {};         // "modes"
  std::vector<CommandWord> words = {};  // to choose from; may be empty
  std::string epilogue = {};            // paragraphs after the options; may be empty
};

// A command with all of its flags.
struct DescribedCommand {
  CommandText text;
  std::vector<Flag> flags;
};

// -h: one screen, a line or two per flag.
std::string ShortHelp(const DescribedCommand& command);

// --help: with the details.
std::string LongHelp(const DescribedCommand& command);

}  // namespace heapprofd
