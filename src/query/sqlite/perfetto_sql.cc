#include "query/sqlite/perfetto_sql.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "query/sqlite/perfetto_create.h"
#include "query/sqlite/sql_tokens.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxExpandedBytes = size_t{1} << 20;  // as SQLite's own limit
constexpr int kMaxMacroDepth = 16;
constexpr size_t kMaxExpansions =
    10'000;  // of a statement: each may have many more in it

constexpr const char* kModules[] = {
    "android.memory.heap_graph.class_summary_tree",
    "android.memory.heap_graph.class_tree",
    "android.memory.heap_graph.dominator_class_tree",
    "android.memory.heap_graph.dominator_tree",
    "android.memory.heap_graph.heap_graph_class_aggregation",
    "android.memory.heap_graph.heap_graph_stats",
    "android.memory.heap_graph.oome",
    "android.memory.heap_profile.callstacks",
    "android.memory.heap_profile.intervals",
    "android.memory.heap_profile.summary_tree",
    "callstacks.stack_profile",
};

struct KnownMacro {
  const char* name;
  const char* body;  // $rows: a table or a query in parentheses
};

// Sums of rows with a callsite become a tree by way of packed values (__hpd_pack).
constexpr KnownMacro kMacros[] = {
    {"_android_heap_profile_callstacks_for_allocations",
     "(SELECT id, parent_id, name, mapping_name, source_file, line_number, self_size, "
     "self_count, self_alloc_size, self_alloc_count FROM __hpd_callstacks((SELECT "
     "__hpd_pack(callsite_id, size, count, alloc_size, alloc_count) FROM $rows)))"},
    {"_callstacks_for_stack_profile_samples",
     "(SELECT id, parent_id, callsite_id, name, mapping_name, source_file, line_number, "
     "inlined, is_leaf_function_in_callsite_frame FROM __hpd_callstacks((SELECT "
     "__hpd_pack(callsite_id, 0, 0, 0, 1) FROM $rows)))"},
    {"_callstacks_for_callsites",
     "(SELECT id, parent_id, name, mapping_name, source_file, line_number, self_count "
     "FROM "
     "__hpd_callstacks((SELECT __hpd_pack(callsite_id, 0, 1, 0, 0) FROM $rows)))"},
    {"_callstacks_for_callsites_weighted",
     "(SELECT id, parent_id, name, mapping_name, source_file, line_number, self_size AS "
     "self_value FROM __hpd_callstacks((SELECT __hpd_pack(callsite_id, value, 0, 0, 1) "
     "FROM $rows)))"},
    {"_callstacks_self_to_cumulative",
     "(SELECT id, cumulative_count FROM __hpd_tree_sum((SELECT __hpd_pack(id, "
     "coalesce(parent_id, -1), self_count) FROM $rows)))"},
};

// `name` is a module, or a package with ".*" behind it.
Status CheckModule(std::string_view name) {
  std::string list;
  for (const char* module : kModules) {
    if (name == module || (name.ends_with("*") && std::string_view(module).starts_with(
                                                      name.substr(0, name.size() - 1))))
      return {};
    list.append(list.empty() ? "" : ", ").append(module);
  }
  return Invalid("cannot include module " + std::string(name) +
                 ": it is not part of this program; these are: " + list);
}

// `text` with what `values` has for $name. Of no other meaning: texts keep theirs.
std::string WithValues(std::string_view text,
                       const std::map<std::string, std::string, std::less<>>& values) {
  std::string result;
  while (!text.empty()) {
    size_t length = TokenLength(text);
    if (text[0] == '$' && text.size() > 1 && IsNameStart(text[1])) {
      length += TokenLength(text.substr(1));
      if (const auto value = values.find(text.substr(1, length - 1));
          value != values.end()) {
        result += value->second;
        text.remove_prefix(length);
        continue;
      }
    }
    result.append(text.substr(0, length));
    text.remove_prefix(length);
  }
  return result;
}

// Of one statement.
class MacroExpander {
 public:
  // Outlives it.
  explicit MacroExpander(const MacroTable& macros) : macros_(macros) {}

  Result<std::string> Expand(std::string_view text, int depth = 0) {
    if (depth > kMaxMacroDepth)
      return Invalid("cannot expand the macros of the query: they are nested too deep");
    std::string result;
    while (!text.empty()) {
      const size_t length = TokenLength(text);
      const std::string_view after = text.substr(length);
      if (!IsNameStart(text[0]) || !after.starts_with("!(")) {
        result.append(text.substr(0, length));
        text = after;
        continue;
      }
      const size_t end = ClosingParenthesis(after.substr(1));
      if (end == std::string_view::npos)
        return Invalid("cannot expand macro " + std::string(text.substr(0, length)) +
                       "!: its closing parenthesis is missing");
      HPD_TRY_ASSIGN(const std::string expanded,
                     ExpandOne(text.substr(0, length), after.substr(2, end - 1), depth));
      result += expanded;
      if (result.size() > kMaxExpandedBytes || ++expansions_ > kMaxExpansions)
        return Invalid("cannot expand the macros of the query: the result is too long");
      text = after.substr(end + 2);
    }
    return result;
  }

 private:
  Result<std::string> ExpandOne(std::string_view name,
                                std::string_view arguments,
                                int depth) {
    const auto macro = macros_.find(name);
    if (macro == macros_.end())
      return Unknown(name);
    const std::vector<std::string>& parameters = macro->second.parameters;
    const std::vector<std::string_view> given = SplitAtCommas(arguments);
    if (given.size() != parameters.size())
      return Invalid("cannot expand macro " + std::string(name) + "!: it has " +
                     std::to_string(given.size()) + " arguments, and " +
                     std::to_string(parameters.size()) + " are needed");
    std::map<std::string, std::string, std::less<>> values;
    for (size_t i = 0; i < given.size(); ++i) {
      HPD_TRY_ASSIGN(values[parameters[i]], Expand(given[i], depth + 1));
    }
    return Expand(WithValues(macro->second.body, values), depth + 1);
  }

  Status Unknown(std::string_view name) const {
    std::string list;
    for (const auto& [known, macro] : macros_)
      list.append(list.empty() ? "" : ", ").append(known).append("!");
    return Invalid("cannot expand macro " + std::string(name) +
                   "!: there is none of this name; these are: " + list);
  }

  const MacroTable& macros_;
  size_t expansions_ = 0;
};

Status CheckInclude(std::string_view text) {
  if (!ConsumeWord(&text, "PERFETTO") || !ConsumeWord(&text, "MODULE"))
    return Invalid("cannot understand INCLUDE: its form is INCLUDE PERFETTO MODULE name");
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  return CheckModule(text);
}

}  // namespace

ScriptPart SplitScript(std::string_view script) {
  std::string_view text = WithoutLeadingBlanks(script);
  while (text.starts_with(";"))
    text = WithoutLeadingBlanks(text.substr(1));
  size_t at = 0;
  while (at < text.size() && text[at] != ';')
    at += TokenLength(text.substr(at));
  return {text.substr(0, at), text.substr(std::min(at + 1, text.size()))};
}

PerfettoSql::PerfettoSql() {
  for (const KnownMacro& macro : kMacros)
    macros_[macro.name] = {.parameters = {"rows"}, .body = macro.body};
}

Result<Translation> PerfettoSql::Translate(std::string_view statement) {
  std::string_view text = statement;
  if (ConsumeWord(&text, "INCLUDE")) {
    HPD_TRY(CheckInclude(text));
    return Translation();
  }
  HPD_TRY_ASSIGN(std::optional<PerfettoCreate> create, ParseCreate(statement));
  if (create)
    return Define(std::move(*create));
  HPD_TRY_ASSIGN(std::string sql, MacroExpander(macros_).Expand(statement));
  return Translation{.statements = {std::move(sql)}, .function = {}};
}

Result<Translation> PerfettoSql::Define(PerfettoCreate create) {
  Translation translation;
  if (create.kind == PerfettoCreate::Kind::kNothing)
    return translation;
  if (create.kind == PerfettoCreate::Kind::kMacro) {
    HPD_TRY(CheckNew("macro", macros_.contains(create.name), create));
    macros_[create.name] = {std::move(create.parameters), std::move(create.body)};
    return translation;
  }
  HPD_TRY_ASSIGN(std::string body, MacroExpander(macros_).Expand(create.body));
  if (create.kind == PerfettoCreate::Kind::kFunction) {
    HPD_TRY(CheckNew("function", functions_.contains(create.name), create));
    functions_.insert(create.name);
    translation.function = {std::move(create.name), std::move(create.parameters),
                            std::move(body)};
    return translation;
  }
  if (create.replaces)
    translation.statements.push_back("DROP VIEW IF EXISTS " + create.name);
  translation.statements.push_back("CREATE TEMP VIEW " + create.name + " AS " + body);
  return translation;
}

Status PerfettoSql::CheckNew(const std::string& kind,
                             bool is_known,
                             const PerfettoCreate& create) {
  if (!is_known || create.replaces)
    return {};
  return Invalid("cannot create " + kind + " " + create.name +
                 ": there is one of this name; use CREATE OR REPLACE");
}

}  // namespace heapprofd
