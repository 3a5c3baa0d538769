#include "cli/query/query_options.h"

#include <cerrno>
#include <cstdio>
#include <memory>

#include "cli/command_line.h"
#include "cli/flag_values.h"
#include "cli/memory_budget.h"

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

ApplyValue AddScriptFile(QueryOptions& options) {
  return [&options](const std::string& path) {
    HPD_TRY_ASSIGN(std::string script, ReadScript(path));
    options.scripts.push_back(std::move(script));
    return Status();
  };
}

ApplyValue Format(QueryOptions& options, ResultFormat format) {
  return [&options, format](const std::string&) {
    options.format = format;
    return Status();
  };
}

}  // namespace

std::vector<Flag> QueryFlags(QueryOptions& options) {
  const std::string group = "options";
  return {{.letter = 'q',
           .name = "query-file",
           .value_name = "FILE",
           .help = "Run the queries in FILE; - reads standard input.",
           .group = group,
           .apply = AddScriptFile(options)},
          {.letter = 'Q',
           .name = "query-string",
           .value_name = "SQL",
           .help = "Run SQL.",
           .group = group,
           .apply = TakeWords(&options.scripts)},
          {.name = "table",
           .help = "Print results as tables.",
           .group = group,
           .apply = Format(options, ResultFormat::kTable)},
          {.name = "csv",
           .help = "Print results as CSV.",
           .group = group,
           .apply = Format(options, ResultFormat::kCsv)},
          {.name = "json",
           .help = "Print results as JSON.",
           .group = group,
           .apply = Format(options, ResultFormat::kJson)},
          {.letter = 'i',
           .name = "interactive",
           .help = "Start a shell after the queries.",
           .group = group,
           .apply = Switch(&options.interactive)},
          MemoryBudgetFlag(group, &options.memory_budget)};
}

Status CheckQueryOptions(QueryDialect dialect, QueryOptions& options) {
  const bool is_ours = dialect == QueryDialect::kHeapProfile;
  if (is_ours && options.scripts.empty() && options.traces.size() > 1 &&
      !options.interactive) {
    options.scripts.push_back(options.traces.back());
    options.traces.pop_back();
  }
  if (options.traces.empty())
    return Invalid(
        is_ours
            ? "cannot query: no trace is named; for example: heap_profile query "
              "raw-trace \"SELECT * FROM heap_dump\""
            : "cannot query: no trace is named; for example: trace_processor_shell -Q "
              "\"SELECT * FROM heap_dump\" raw-trace");
  if (options.scripts.empty())
    options.interactive = true;
  return {};
}

}  // namespace heapprofd
