#include "cli/query/query_shell.h"

#include <editline/readline.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <set>

#include "base/fd_path.h"
#include "base/files/folder.h"
#include "base/files/own_file.h"
#include "base/files/root_environment.h"
#include "base/print.h"

namespace heapprofd {
namespace {

constexpr int kMaxHistory = 1000;
constexpr const char* kKeywords[] = {
    "SELECT", "FROM",  "WHERE",   "GROUP", "BY",     "ORDER",    "LIMIT",   "JOIN",
    "LEFT",   "USING", "DESC",    "AS",    "AND",    "OR",       "NOT",     "NULL",
    "LIKE",   "GLOB",  "BETWEEN", "WITH",  "HAVING", "DISTINCT", "UNION",   "CASE",
    "WHEN",   "THEN",  "ELSE",    "END",   "CREATE", "VIEW",     "INCLUDE", "PERFETTO",
    "MODULE", "count", "sum",     "max",   "min",    "abs",      "demangle"};
constexpr char kHelp[] =
    "Statements end with a semicolon. Ctrl-C stops the running one.\n"
    "  .tables         the tables and functions\n"
    "  .schema NAME    the columns of one\n"
    "  .mode FORMAT    how to print results: table, csv or json\n"
    "  .help           this text\n"
    "  .quit           leave (also Ctrl-D)\n";

struct FreeText {
  void operator()(char* text) const { free(text); }
};

using OwnedText = std::unique_ptr<char, FreeText>;

// Where past lines are kept.
struct HistoryFile {
  ScopedFd home;     // the path leads there as long as it is open
  std::string path;  // empty: there is no home
};

HistoryFile FindHistory() {
  const char* const state = getenv("XDG_STATE_HOME");
  const bool has_state = state != nullptr && state[0] == '/';
  const char* const home = has_state ? state : getenv("HOME");
  // As root with a user's HOME it would be the user's file.
  if (home == nullptr || !IsOwnDirectory(home))
    return {};
  Result<ScopedFd> opened = OpenFolder(home, "");
  if (!opened.ok() || (geteuid() == 0 && !IsPrivateDirectory(opened.value().get())))
    return {};
  std::string path = FdPath(opened.value().get()) +
                     (has_state ? "/heap_profile_history" : "/.heap_profile_history");
  return {.home = std::move(opened).value(), .path = std::move(path)};
}

bool HasPrefix(std::string_view word, std::string_view prefix) {
  return word.size() >= prefix.size() &&
         strncasecmp(word.data(), prefix.data(), prefix.size()) == 0;
}

// libedit's callbacks have no argument for these.
const TraceDatabase* completed_database = nullptr;

char* NextCompletion(const char* prefix, int state) {
  static std::vector<std::string> words;
  static size_t next = 0;
  if (state == 0) {
    words = CompletionsOf(*completed_database, prefix);
    next = 0;
  }
  return next < words.size() ? strdup(words[next++].c_str()) : nullptr;
}

char** Complete(const char* prefix, int /*start*/, int /*end*/) {
  rl_attempted_completion_over = 1;  // no file names
  return rl_completion_matches(prefix, NextCompletion);
}

class Shell {
 public:
  Shell(TraceDatabase& database, ResultFormat format)
      : database_(database), sink_(MakeResultPrinter(format, stdout)) {}

  void Run() {
    std::string statement;
    while (true) {
      const OwnedText line(readline(statement.empty() ? "> " : "... "));
      if (line == nullptr)
        break;
      const std::string_view text = line.get();
      if (!text.empty())
        add_history(line.get());
      if (statement.empty() && text.starts_with(".")) {
        if (!RunCommand(text))
          return;
        continue;
      }
      statement.append(text).append("\n");
      if (!EndsStatement(statement))
        continue;
      RunStatement(statement);
      statement.clear();
    }
    puts("");
  }

 private:
  static bool EndsStatement(std::string_view text) {
    const size_t last = text.find_last_not_of(" \t\n");
    return last == std::string_view::npos || text[last] == ';';
  }

  void RunStatement(const std::string& statement) {
    database_.cancel_flag() = false;
    const Status status = database_.Run(statement, *sink_);
    fflush(stdout);
    if (!status.ok())
      Print(stderr, "%s\n", status.message().c_str());
  }

  // False to leave.
  bool RunCommand(std::string_view line) {
    const size_t space = line.find(' ');
    const std::string_view command = line.substr(0, space);
    const std::string_view argument =
        space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
    if (command == ".quit" || command == ".exit" || command == ".q")
      return false;
    if (command == ".tables")
      ListTables();
    else if (command == ".schema")
      ShowColumns(argument);
    else if (command == ".mode")
      SetMode(argument);
    else
      PrintText(kHelp);
    return true;
  }

  void ListTables() const {
    for (const Database::Relation& relation : database_.relations())
      Print(stdout, "%s\n", TitleOf(relation).c_str());
  }

  static std::string TitleOf(const Database::Relation& relation) {
    std::string title = relation.name;
    for (size_t i = 0; i < relation.parameters.size(); ++i)
      title += (i == 0 ? "(" : ", ") + relation.parameters[i];
    return title + (relation.parameters.empty() ? "" : ")");
  }

  void ShowColumns(std::string_view name) const {
    for (const Database::Relation& relation : database_.relations()) {
      if (relation.name != name)
        continue;
      Print(stdout, "%s\n", TitleOf(relation).c_str());
      for (const std::string& column : relation.columns)
        Print(stdout, "  %s\n", column.c_str());
      return;
    }
    Print(stdout, "There is no table or function %.*s; .tables lists them.\n",
          static_cast<int>(name.size()), name.data());
  }

  void SetMode(std::string_view mode) {
    if (mode == "table")
      sink_ = MakeResultPrinter(ResultFormat::kTable, stdout);
    else if (mode == "csv")
      sink_ = MakeResultPrinter(ResultFormat::kCsv, stdout);
    else if (mode == "json")
      sink_ = MakeResultPrinter(ResultFormat::kJson, stdout);
    else
      puts("The formats are table, csv and json.");
  }

  TraceDatabase& database_;
  std::unique_ptr<ResultSink> sink_;
};

}  // namespace

std::vector<std::string> CompletionsOf(const TraceDatabase& database,
                                       std::string_view prefix) {
  std::set<std::string> words;
  for (const char* keyword : kKeywords) {
    if (HasPrefix(keyword, prefix))
      words.insert(keyword);
  }
  for (const Database::Relation& relation : database.relations()) {
    if (HasPrefix(relation.name, prefix))
      words.insert(relation.name);
    for (const std::string& column : relation.columns) {
      if (HasPrefix(column, prefix))
        words.insert(column);
    }
  }
  return {words.begin(), words.end()};
}

Status RunQueryShell(TraceDatabase& database, ResultFormat format) {
  ForgetForeignPlaces();  // of libedit and terminfo
  completed_database = &database;
  rl_attempted_completion_function = Complete;
  using_history();
  stifle_history(kMaxHistory);
  const HistoryFile history = FindHistory();
  if (!history.path.empty())
    read_history(history.path.c_str());
  puts("SQL over heap profiles; .help explains, .tables lists what there is.");
  Shell(database, format).Run();
  if (!history.path.empty() && write_history(history.path.c_str()) == 0)
    chmod(history.path.c_str(), S_IRUSR | S_IWUSR);
  return {};
}

}  // namespace heapprofd
