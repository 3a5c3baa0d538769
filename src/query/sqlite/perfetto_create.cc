#include "query/sqlite/perfetto_create.h"

#include "query/sqlite/sql_tokens.h"

namespace heapprofd {
namespace {

using Kind = PerfettoCreate::Kind;

class CreateParser {
 public:
  // Behind the word PERFETTO.
  CreateParser(std::string_view text, bool replaces) : rest_(text) {
    create_.replaces = replaces;
  }

  Result<PerfettoCreate> Parse() {
    if (ConsumeWord(&rest_, "INDEX"))
      return create_;
    if (ConsumeWord(&rest_, "TABLE") || ConsumeWord(&rest_, "VIEW"))
      return View();
    if (ConsumeWord(&rest_, "FUNCTION"))
      return WithParameters(Kind::kFunction);
    if (ConsumeWord(&rest_, "MACRO"))
      return WithParameters(Kind::kMacro);
    return Invalid(
        "cannot understand CREATE PERFETTO: what follows is none of TABLE, VIEW, "
        "FUNCTION, MACRO and INDEX");
  }

 private:
  // A list of columns and their types may stand behind the name; the query has them.
  Result<PerfettoCreate> View() {
    create_.kind = Kind::kView;
    create_.name = std::string(ConsumeName(&rest_));
    if (rest_.starts_with("("))
      SkipParentheses();
    if (create_.name.empty() || !ConsumeWord(&rest_, "AS"))
      return Invalid(
          "cannot understand CREATE PERFETTO TABLE or VIEW: its form is CREATE PERFETTO "
          "TABLE name AS SELECT ...");
    create_.body = std::string(rest_);
    return create_;
  }

  Result<PerfettoCreate> WithParameters(Kind kind) {
    create_.kind = kind;
    create_.name = std::string(ConsumeName(&rest_));
    if (create_.name.empty() || !ConsumeParameters() || !ConsumeWord(&rest_, "RETURNS"))
      return BadForm();
    if (kind == Kind::kFunction && ConsumeWord(&rest_, "TABLE"))
      return Invalid("cannot create function " + create_.name +
                     ": functions that return a table are not there; use CREATE PERFETTO "
                     "MACRO, whose text may be a query in parentheses");
    if (ConsumeName(&rest_).empty())  // the type
      return BadForm();
    if (rest_.starts_with("("))  // ID(table.column)
      SkipParentheses();
    if (!ConsumeWord(&rest_, "AS"))
      return BadForm();
    create_.body = std::string(rest_);
    return create_;
  }

  static Status BadForm() {
    return Invalid(
        "cannot understand CREATE PERFETTO FUNCTION or MACRO: its form is CREATE "
        "PERFETTO FUNCTION name(argument INT) RETURNS INT AS SELECT $argument + 1");
  }

  // Without their types.
  bool ConsumeParameters() {
    const size_t end =
        rest_.starts_with("(") ? ClosingParenthesis(rest_) : std::string_view::npos;
    if (end == std::string_view::npos)
      return false;
    for (std::string_view parameter : SplitAtCommas(rest_.substr(1, end - 1))) {
      parameter = WithoutLeadingBlanks(parameter);
      create_.parameters.emplace_back(ConsumeName(&parameter));
      if (create_.parameters.back().empty())
        return false;
    }
    rest_ = WithoutLeadingBlanks(rest_.substr(end + 1));
    return true;
  }

  void SkipParentheses() {
    const size_t end = ClosingParenthesis(rest_);
    if (end != std::string_view::npos)
      rest_ = WithoutLeadingBlanks(rest_.substr(end + 1));
  }

  PerfettoCreate create_;
  std::string_view rest_;
};

}  // namespace

Result<std::optional<PerfettoCreate>> ParseCreate(std::string_view statement) {
  if (std::string_view text = statement; ConsumeWord(&text, "DROP") &&
                                         ConsumeWord(&text, "PERFETTO") &&
                                         ConsumeWord(&text, "INDEX"))
    return std::optional(PerfettoCreate());
  if (!ConsumeWord(&statement, "CREATE"))
    return std::optional<PerfettoCreate>();
  bool replaces = false;
  if (ConsumeWord(&statement, "OR")) {
    if (!ConsumeWord(&statement, "REPLACE"))
      return std::optional<PerfettoCreate>();
    replaces = true;
  }
  if (!ConsumeWord(&statement, "PERFETTO"))
    return std::optional<PerfettoCreate>();
  HPD_TRY_ASSIGN(PerfettoCreate create, CreateParser(statement, replaces).Parse());
  return std::optional(std::move(create));
}

}  // namespace heapprofd
