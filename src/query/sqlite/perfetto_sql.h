// What Perfetto adds to SQLite's language: INCLUDE PERFETTO MODULE, CREATE PERFETTO and
// macros written as name!(arguments). All are rewritten before SQLite sees a statement.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "query/sqlite/query_function.h"

namespace heapprofd {

struct PerfettoCreate;

// The first statement of a script without its semicolon, and the text after it. Blanks
// and comments in front of it are dropped; `statement` is empty at the script's end.
struct ScriptPart {
  std::string_view statement;
  std::string_view rest;
};

ScriptPart SplitScript(std::string_view script);

// What is to be done for a statement, in this order.
struct Translation {
  std::vector<std::string> statements;  // for SQLite
  std::optional<QueryFunction> function;
};

// A text with $name for its arguments, which are texts, too.
struct Macro {
  std::vector<std::string> parameters;
  std::string body;
};

using MacroTable = std::map<std::string, Macro, std::less<>>;

// The language of a session: what CREATE PERFETTO has defined in it is known from then on.
class PerfettoSql {
 public:
  PerfettoSql();

  // Nothing is to be done for an INCLUDE of a module we have: its contents are always
  // there. An unknown module or macro is an error that lists those there are.
  Result<Translation> Translate(std::string_view statement);

 private:
  Result<Translation> Define(PerfettoCreate create);
  static Status CheckNew(const std::string& kind,
                         bool is_known,
                         const PerfettoCreate& create);

  MacroTable macros_;
  std::set<std::string> functions_;
};

}  // namespace heapprofd
