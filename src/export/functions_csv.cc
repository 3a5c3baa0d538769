// A heap as a table of its functions, as CSV: what each has allocated itself and in total,
// recursion counted once.

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "export/formats.h"
#include "export/stack_functions.h"

namespace heapprofd {
namespace {

struct Row {
  const ExportedFunction* function = nullptr;  // the first of its name and module
  int64_t itself = 0;
  int64_t total = 0;
};

// Spreadsheets run what begins like a formula, quoted or not; names come from hostile
// programs. The same rule is in report/page/export.js.
std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  if (!text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string::npos)
    quoted += '\'';
  for (const char c : text)
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string Place(const ExportedFunction& function) {
  if (function.file.empty() || function.line == 0)
    return function.file;
  return function.file + ":" + std::to_string(function.line);
}

using Rows = std::map<std::pair<std::string, std::string>, Row>;

Rows SumByFunction(const HeapDump& dump, View view, const StackFunctions& functions) {
  Rows rows;
  std::vector<Row*> row_of;  // by function
  for (const ExportedFunction& function : functions.functions()) {
    Row& row = rows[{function.name, function.module}];
    if (row.function == nullptr)
      row.function = &function;
    row_of.push_back(&row);
  }
  for (const auto& [callsite, totals] : dump.callsites) {
    const int64_t value = ValueOf(totals, view);
    const std::vector<uint32_t> stack = functions.Of(callsite);
    if (value == 0 || stack.empty())
      continue;
    row_of[stack.back()]->itself += value;
    std::set<Row*> seen;
    for (const uint32_t function : stack) {
      if (seen.insert(row_of[function]).second)
        row_of[function]->total += value;
    }
  }
  return rows;
}

}  // namespace

// "function,module,place,itself,total", those that hold most first.
std::string EncodeFunctionsCsv(const ExportedHeap& heap) {
  const StackFunctions functions(heap.profile);
  std::vector<Row> sorted;
  for (const auto& [key, row] : SumByFunction(heap.dump, heap.view, functions)) {
    if (row.total != 0)
      sorted.push_back(row);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) {
    return std::pair(a.itself, a.total) > std::pair(b.itself, b.total);
  });
  std::string text = "function,module,place,itself,total\n";
  for (const Row& row : sorted)
    text += Quoted(row.function->name) + "," + Quoted(row.function->module) + "," +
            Quoted(Place(*row.function)) + "," + std::to_string(row.itself) + "," +
            std::to_string(row.total) + "\n";
  return text;
}

}  // namespace heapprofd
