#include "query/sqlite/sql_tokens.h"

#include <strings.h>

#include <cctype>

namespace heapprofd {
namespace {

bool IsNameChar(char c) {
  return IsNameStart(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

bool IsBlank(std::string_view token) {
  return std::isspace(static_cast<unsigned char>(token[0])) != 0 ||
         token.starts_with("--") || token.starts_with("/*");
}

}  // namespace

bool IsNameStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// What is not closed reaches to the end.
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

std::string_view WithoutLeadingBlanks(std::string_view text) {
  while (!text.empty()) {
    const std::string_view token = text.substr(0, TokenLength(text));
    if (!IsBlank(token))
      break;
    text.remove_prefix(token.size());
  }
  return text;
}

bool ConsumeWord(std::string_view* text, std::string_view word) {
  if (text->empty() || TokenLength(*text) != word.size() ||
      strncasecmp(text->data(), word.data(), word.size()) != 0)
    return false;
  *text = WithoutLeadingBlanks(text->substr(word.size()));
  return true;
}

std::string_view ConsumeName(std::string_view* text) {
  if (text->empty() || !IsNameStart((*text)[0]))
    return {};
  const std::string_view name = text->substr(0, TokenLength(*text));
  *text = WithoutLeadingBlanks(text->substr(name.size()));
  return name;
}

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

std::vector<std::string_view> SplitAtCommas(std::string_view text) {
  std::vector<std::string_view> parts;
  if (WithoutLeadingBlanks(text).empty())
    return parts;
  size_t depth = 0;
  size_t begin = 0;
  size_t at = 0;
  for (; at < text.size(); at += TokenLength(text.substr(at))) {
    const char c = text[at];
    if (c == '(')
      ++depth;
    else if (c == ')' && depth > 0)
      --depth;
    else if (c == ',' && depth == 0) {
      parts.push_back(text.substr(begin, at - begin));
      begin = at + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

}  // namespace heapprofd
