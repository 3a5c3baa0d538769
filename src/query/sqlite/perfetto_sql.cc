#include "query/sqlite/perfetto_sql.h"

#include <strings.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace heapprofd {
namespace {

constexpr size_t kMaxExpandedBytes = size_t{1} << 20;  // as SQLite's own limit
constexpr int kMaxMacroDepth = 16;

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

struct Macro {
  const char* name;
  const char* expansion;  // $1: the argument, a table or a query in parentheses
};

// Sums of rows with a callsite become a tree by way of packed values (__hpd_pack).
constexpr Macro kMacros[] = {
    {"_android_heap_profile_callstacks_for_allocations",
     "(SELECT id, parent_id, name, mapping_name, source_file, line_number, self_size, "
     "self_count, self_alloc_size, self_alloc_count FROM __hpd_callstacks((SELECT "
     "__hpd_pack(callsite_id, size, count, alloc_size, alloc_count) FROM $1)))"},
    {"_callstacks_for_stack_profile_samples",
     "(SELECT id, parent_id, callsite_id, name, mapping_name, source_file, line_number, "
     "inlined, is_leaf_function_in_callsite_frame FROM __hpd_callstacks((SELECT "
     "__hpd_pack(callsite_id, 0, 0, 0, 1) FROM $1)))"},
    {"_callstacks_for_callsites",
     "(SELECT id, parent_id, name, mapping_name, source_file, line_number, self_count "
     "FROM "
     "__hpd_callstacks((SELECT __hpd_pack(callsite_id, 0, 1, 0, 0) FROM $1)))"},
    {"_callstacks_for_callsites_weighted",
     "(SELECT id, parent_id, name, mapping_name, source_file, line_number, self_size AS "
     "self_value FROM __hpd_callstacks((SELECT __hpd_pack(callsite_id, value, 0, 0, 1) "
     "FROM $1)))"},
    {"_callstacks_self_to_cumulative",
     "(SELECT id, cumulative_count FROM __hpd_tree_sum((SELECT __hpd_pack(id, "
     "coalesce(parent_id, -1), self_count) FROM $1)))"},
};

bool IsNameStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool IsNameChar(char c) {
  return IsNameStart(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// Length of the token at the start of `text`: a quoted text, a comment, a name or number,
// or a single character. What is not closed reaches to the end.
size_t TokenLength(std::string_view text) {
  const auto through = [&](std::string_view end, size_t from) {
    const size_t at = text.find(end, from);
    return at == std::string_view::npos ? text.size() : at + end.size();
  };
  const char c = text[0];
  if (c == '\'' || c == '"' || c == '`')
    return through(std::string_view(&c, 1), 1);  // '' inside is two texts side by side
  if (c == '[')
    return through("]", 1);
  if (text.starts_with("--"))
    return through("\n", 2);
  if (text.starts_with("/*"))
    return through("*/", 2);
  size_t length = 1;
  if (IsNameChar(c)) {
    while (length < text.size() && IsNameChar(text[length]))
      ++length;
  }
  return length;
}

bool IsBlank(std::string_view token) {
  return std::isspace(static_cast<unsigned char>(token[0])) != 0 ||
         token.starts_with("--") || token.starts_with("/*");
}

std::string_view WithoutLeadingBlanks(std::string_view text) {
  while (!text.empty()) {
    const std::string_view token = text.substr(0, TokenLength(text));
    if (!IsBlank(token))
      break;
    text.remove_prefix(token.size());
  }
  return text;
}

// Removes `word` from the start of the text, in any case, with the blanks behind it.
bool ConsumeWord(std::string_view* text, std::string_view word) {
  if (text->empty() || TokenLength(*text) != word.size() ||
      strncasecmp(text->data(), word.data(), word.size()) != 0)
    return false;
  *text = WithoutLeadingBlanks(text->substr(word.size()));
  return true;
}

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

// The text inside the parentheses that `text` begins with; npos when they do not close.
size_t ClosingParenthesis(std::string_view text) {
  size_t depth = 0;
  for (size_t at = 0; at < text.size(); at += TokenLength(text.substr(at))) {
    if (text[at] == '(')
      ++depth;
    else if (text[at] == ')' && --depth == 0)
      return at;
  }
  return std::string_view::npos;
}

Result<std::string> Expand(std::string_view text, int depth);

Result<std::string> ExpandMacro(std::string_view name,
                                std::string_view argument,
                                int depth) {
  const auto macro = std::find_if(std::begin(kMacros), std::end(kMacros),
                                  [&](const Macro& known) { return name == known.name; });
  if (macro == std::end(kMacros)) {
    std::string list;
    for (const Macro& known : kMacros)
      list.append(list.empty() ? "" : ", ").append(known.name).append("!");
    return Invalid("cannot expand macro " + std::string(name) +
                   "!: there is none of this name; these are: " + list);
  }
  HPD_TRY_ASSIGN(const std::string inner, Expand(argument, depth + 1));
  std::string text = macro->expansion;
  const size_t at = text.find("$1");
  text.replace(at, 2, inner);
  return text;
}

Result<std::string> Expand(std::string_view text, int depth) {
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
                   ExpandMacro(text.substr(0, length), after.substr(2, end - 1), depth));
    result += expanded;
    if (result.size() > kMaxExpandedBytes)
      return Invalid("cannot expand the macros of the query: the result is too long");
    text = after.substr(end + 2);
  }
  return result;
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

Result<std::string> TranslateStatement(std::string_view statement) {
  std::string_view text = statement;
  if (ConsumeWord(&text, "INCLUDE")) {
    if (!ConsumeWord(&text, "PERFETTO") || !ConsumeWord(&text, "MODULE"))
      return Invalid(
          "cannot understand INCLUDE: its form is INCLUDE PERFETTO MODULE name");
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
      text.remove_suffix(1);
    HPD_TRY(CheckModule(text));
    return std::string();
  }
  return Expand(statement, 0);
}

}  // namespace heapprofd
