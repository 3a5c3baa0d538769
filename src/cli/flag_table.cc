#include "cli/flag_table.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace heapprofd {
namespace {

// Number of single-character edits between two names, to guess what was meant; two
// neighbours that have changed places are one.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> before;  // the row before the last one
  std::vector<size_t> last;
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({substituted, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

Status UnknownFlag(const std::vector<Flag>& flags, const std::string& argument) {
  std::vector<std::string> names;
  names.reserve(flags.size());
  for (const Flag& flag : flags)
    names.push_back("--" + flag.name);
  return Invalid("cannot use option " + argument + ": there is none of this name; " +
                 DidYouMean(argument, names, "--help lists all options"));
}

// All of its spellings that begin with `argument`.
std::vector<std::string> Completions(const Flag& flag, const std::string& argument) {
  std::vector<std::string> spellings;
  if (("--" + flag.name).starts_with(argument))
    spellings.push_back("--" + flag.name);
  for (const std::string& alias : flag.aliases) {
    if (("--" + alias).starts_with(argument))
      spellings.push_back("--" + alias);
  }
  return spellings;
}

const Flag* FindExactFlag(const std::vector<Flag>& flags, const std::string& argument) {
  for (const Flag& flag : flags) {
    const bool is_alias =
        std::any_of(flag.aliases.begin(), flag.aliases.end(),
                    [&](const std::string& alias) { return argument == "--" + alias; });
    if (is_alias || argument == "--" + flag.name ||
        (flag.letter != 0 && argument == std::string("-") + flag.letter))
      return &flag;
  }
  return nullptr;
}

// By its name, its letter, or as much of its name as no other flag begins with.
Result<const Flag*> FindFlag(const std::vector<Flag>& flags,
                             const std::string& argument) {
  if (const Flag* exact = FindExactFlag(flags, argument))
    return exact;
  if (!argument.starts_with("--"))
    return UnknownFlag(flags, argument);
  const Flag* found = nullptr;
  std::string candidates;
  size_t count = 0;
  for (const Flag& flag : flags) {
    const std::vector<std::string> spellings = Completions(flag, argument);
    if (spellings.empty())
      continue;
    found = &flag;
    candidates += (candidates.empty() ? "" : ", ") + spellings[0];
    ++count;
  }
  if (count > 1)
    return Invalid("cannot use option " + argument + ": it could be " + candidates);
  return count == 1 ? Result<const Flag*>(found)
                    : Result<const Flag*>(UnknownFlag(flags, argument));
}

// Splits "--name=value", "-i4096" and "-i=4096".
void SplitValue(std::string* argument, std::optional<std::string>* value) {
  const size_t equals = argument->find('=');
  if (argument->starts_with("--") && equals != std::string::npos) {
    *value = argument->substr(equals + 1);
    argument->resize(equals);
  } else if (!argument->starts_with("--") && argument->size() > 2) {
    *value = argument->substr((*argument)[2] == '=' ? 3 : 2);
    argument->resize(2);
  }
}

// Of SQL: no flag's name has blanks in it.
bool IsComment(const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  return argument.starts_with("-- ") || argument.starts_with("--\t") ||
         (argument.starts_with("--") && name.find('\n') != std::string::npos);
}

Status ApplyFlag(const std::vector<Flag>& flags,
                 const std::vector<std::string>& arguments,
                 size_t* index) {
  std::string argument = arguments[*index];
  std::optional<std::string> value;
  SplitValue(&argument, &value);
  HPD_TRY_ASSIGN(const Flag* const flag, FindFlag(flags, argument));
  if (flag->value_name.empty())
    return value ? Invalid("cannot use " + arguments[*index] + ": " + argument +
                           " takes no value")
                 : flag->apply("");
  if (!value && *index + 1 < arguments.size() && arguments[*index + 1] != "--")
    value = arguments[++*index];
  if (!value)
    return Invalid("cannot use " + argument + ": its value " + flag->value_name +
                   " is missing");
  return flag->apply(*value);
}

}  // namespace

std::string NearestWord(const std::string& word, const std::vector<std::string>& words) {
  std::string nearest;
  // More edits than this are another word, as is one of which less than half is left.
  size_t best = std::min<size_t>(4, (word.size() + 1) / 2);
  for (const std::string& candidate : words) {
    const size_t distance = EditDistance(word, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(const std::string& word,
                       const std::vector<std::string>& words,
                       const std::string& otherwise) {
  const std::string nearest = NearestWord(word, words);
  return nearest.empty() ? otherwise : "did you mean " + nearest + "?";
}

Result<size_t> ParseFlags(const std::vector<Flag>& flags,
                          const std::vector<std::string>& arguments,
                          const std::function<Status(const std::string&)>& positional) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--")
      return i + 1;
    if (!arguments[i].starts_with("-") || arguments[i] == "-" || IsComment(arguments[i]))
      HPD_TRY(positional(arguments[i]));
    else
      HPD_TRY(ApplyFlag(flags, arguments, &i));
  }
  return arguments.size();
}

}  // namespace heapprofd
