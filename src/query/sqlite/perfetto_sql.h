// What Perfetto adds to SQLite's language: INCLUDE PERFETTO MODULE, and macros written as
// name!(arguments). Both are rewritten before SQLite sees a statement.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace heapprofd {

// The first statement of a script without its semicolon, and the text after it. Blanks
// and comments in front of it are dropped; `statement` is empty at the script's end.
struct ScriptPart {
  std::string_view statement;
  std::string_view rest;
};

ScriptPart SplitScript(std::string_view script);

// SQL for SQLite; empty for an INCLUDE of a module we have: its contents are always
// there. An unknown module or macro is an error that lists those there are.
Result<std::string> TranslateStatement(std::string_view statement);

}  // namespace heapprofd
