#include "cli/query/query_options.h"

#include <cerrno>
#include <cstdio>
#include <memory>

namespace heapprofd {
namespace {

Result<std::string> ReadScript(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{16} << 20;

  struct Close {
    void operator()(FILE* file) const {
      if (file != stdin)
        fclose(file);
    }
  };

  const std::unique_ptr<FILE, Close> file(path == "-" ? stdin
                                                      : fopen(path.c_str(), "re"));
  if (file == nullptr)
    return Status::FromErrno("cannot open the queries in " + path, errno);
  std::string text;
  char block[4096];
  size_t count = 0;
  while ((count = fread(block, 1, sizeof(block), file.get())) > 0) {
    text.append(block, count);
    if (text.size() > kMaxBytes)
      return Invalid("cannot read the queries in " + path + ": more than 16 MiB");
  }
  if (ferror(file.get()) != 0)
    return Status::FromErrno("cannot read the queries in " + path, errno);
  return text;
}

class Parser {
 public:
  Parser(QueryDialect dialect, const std::vector<std::string>& arguments)
      : dialect_(dialect), arguments_(arguments) {
    if (dialect == QueryDialect::kTraceProcessorShell)
      options_.format = ResultFormat::kCsv;
  }

  Result<QueryOptions> Parse() {
    bool only_operands = false;
    for (; at_ < arguments_.size(); ++at_) {
      const std::string& argument = arguments_[at_];
      if (only_operands || argument == "-" || !argument.starts_with("-")) {
        options_.traces.push_back(argument);
      } else if (argument == "--") {
        only_operands = true;
      } else {
        HPD_TRY(ParseFlag(argument));
      }
    }
    return Finish();
  }

 private:
  Status ParseFlag(const std::string& argument) {
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (equals != std::string::npos)
      value_ = argument.substr(equals + 1);
    else
      value_.reset();
    if (name == "-q" || name == "--query-file")
      return AddFile(name);
    if (name == "-Q" || name == "--query-string")
      return AddText(name);
    if (name == "--csv")
      options_.format = ResultFormat::kCsv;
    else if (name == "--json")
      options_.format = ResultFormat::kJson;
    else if (name == "--table")
      options_.format = ResultFormat::kTable;
    else if (name == "-i" || name == "--interactive")
      options_.interactive = true;
    else if (name == "-h" || name == "--help")
      options_.show_help = true;
    else if (name == "-v" || name == "--version")
      options_.show_version = true;
    else
      return Invalid("cannot use option " + name + ": there is none of this name; " +
                     Program() + " --help lists all options");
    return {};
  }

  Result<std::string> Value(const std::string& name) {
    if (value_)
      return *value_;
    if (at_ + 1 >= arguments_.size())
      return Invalid("cannot use " + name + ": its value is missing");
    return arguments_[++at_];
  }

  Status AddFile(const std::string& name) {
    HPD_TRY_ASSIGN(const std::string path, Value(name));
    HPD_TRY_ASSIGN(std::string script, ReadScript(path));
    options_.scripts.push_back(std::move(script));
    return {};
  }

  Status AddText(const std::string& name) {
    HPD_TRY_ASSIGN(std::string script, Value(name));
    options_.scripts.push_back(std::move(script));
    return {};
  }

  // heap_profile query TRACE... "SQL": the last operand is the query.
  Result<QueryOptions> Finish() {
    if (options_.show_help || options_.show_version)
      return std::move(options_);
    if (dialect_ == QueryDialect::kHeapProfile && options_.scripts.empty() &&
        options_.traces.size() > 1 && !options_.interactive) {
      options_.scripts.push_back(options_.traces.back());
      options_.traces.pop_back();
    }
    if (options_.traces.empty())
      return Invalid("cannot query: no trace is named; for example: " + Program() +
                     (dialect_ == QueryDialect::kHeapProfile
                          ? " raw-trace \"SELECT * FROM heap_dump\""
                          : " -Q \"SELECT * FROM heap_dump\" raw-trace"));
    if (options_.scripts.empty())
      options_.interactive = true;
    return std::move(options_);
  }

  std::string Program() const {
    return dialect_ == QueryDialect::kHeapProfile ? "heap_profile query"
                                                  : "trace_processor_shell";
  }

  const QueryDialect dialect_;
  const std::vector<std::string>& arguments_;
  QueryOptions options_;
  std::optional<std::string> value_;  // behind "="
  size_t at_ = 0;
};

constexpr char kFlagHelp[] =
    "  -q, --query-file FILE       Run the queries in FILE (\"-\": standard input).\n"
    "  -Q, --query-string SQL      Run SQL.\n"
    "      --table, --csv, --json  How to print results.\n"
    "  -i, --interactive           Start a shell after the queries.\n"
    "  -h, --help                  Show this help.\n"
    "  -v, --version               Show the version.\n"
    "\n"
    "A TRACE is a raw-trace, a trace of Perfetto, a pprof profile, folded stacks, a\n"
    "heaptrack recording or a heap dump of Java; plain, gzip or zstd. Several are\n"
    "queried together.\n"
    "docs/sql.md describes the tables and functions. Ctrl-C stops the running query.\n";

}  // namespace

Result<QueryOptions> ParseQueryOptions(QueryDialect dialect,
                                       const std::vector<std::string>& arguments) {
  return Parser(dialect, arguments).Parse();
}

std::string QueryHelp(QueryDialect dialect) {
  std::string usage = dialect == QueryDialect::kHeapProfile
                          ? "Asks heap profiles questions in SQL.\n\n"
                            "usage: heap_profile query [OPTIONS] TRACE... \"SQL\"\n"
                            "       heap_profile query [OPTIONS] TRACE      (a shell)\n"
                          : "Asks traces questions in SQL, on a command line compatible "
                            "with Perfetto's.\n\n"
                            "usage: trace_processor_shell [OPTIONS] TRACE...\n";
  return usage + "\noptions:\n" + kFlagHelp;
}

}  // namespace heapprofd
