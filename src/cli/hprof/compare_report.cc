#include "cli/hprof/compare_report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "base/format.h"
#include "base/print.h"
#include "cli/hprof/class_sums.h"
#include "cli/hprof/report_parts.h"

namespace heapprofd {
namespace {

using nlohmann::json;

struct ChangedClass {
  ClassRow before;
  ClassRow now;
};

int64_t Change(uint64_t before, uint64_t now) {
  return static_cast<int64_t>(now - before);
}

// By which rows are sorted: what grew most first, what shrank most last.
int64_t MainChange(const ChangedClass& row, bool with_retained) {
  return with_retained ? Change(row.before.retained, row.now.retained)
                       : Change(row.before.bytes, row.now.bytes);
}

bool HasChanged(const ChangedClass& row) {
  return row.before.objects != row.now.objects || row.before.bytes != row.now.bytes ||
         row.before.retained != row.now.retained;
}

std::vector<ChangedClass> ChangesOf(const ClassSums& before,
                                    const ClassSums& now,
                                    bool with_retained) {
  std::map<std::string, ChangedClass> by_name;
  for (const ClassRow& row : before.rows)
    by_name[row.name].before = row;
  for (const ClassRow& row : now.rows)
    by_name[row.name].now = row;
  std::vector<ChangedClass> rows;
  for (auto& [name, row] : by_name) {
    row.now.name = name;
    if (HasChanged(row))
      rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const ChangedClass& a, const ChangedClass& b) {
                     return MainChange(a, with_retained) > MainChange(b, with_retained);
                   });
  return rows;
}

json JsonOfChange(const ChangedClass& row, bool with_retained) {
  json result = JsonOf(row.now, with_retained);
  result["before"] = JsonOf(row.before, with_retained);
  result["before"].erase("class");
  return result;
}

void PrintRow(const ChangedClass& row, bool with_retained) {
  Print(stdout, "%12llu %+12lld %14llu %+14lld",
        static_cast<unsigned long long>(row.now.objects),
        static_cast<long long>(Change(row.before.objects, row.now.objects)),
        static_cast<unsigned long long>(row.now.bytes),
        static_cast<long long>(Change(row.before.bytes, row.now.bytes)));
  if (with_retained)
    Print(stdout, " %14llu %+14lld", static_cast<unsigned long long>(row.now.retained),
          static_cast<long long>(Change(row.before.retained, row.now.retained)));
  Print(stdout, "  %s\n", row.now.name.c_str());
}

void PrintTable(const std::vector<ChangedClass>& rows, size_t shown, bool with_retained) {
  if (rows.empty()) {
    Print(stdout, "No class has more or less than before.\n");
    return;
  }
  Print(stdout, "%12s %12s %14s %14s", "objects", "change", "bytes", "change");
  if (with_retained)
    Print(stdout, " %14s %14s", "retained", "change");
  Print(stdout, "  class\n");
  for (size_t i = 0; i < shown; ++i)
    PrintRow(rows[i], with_retained);
}

Result<ClassSums> SumOlder(OpenedDump older, bool with_retained, json* about) {
  HPD_TRY_ASSIGN(ClassSums sums, SumClasses(&older, with_retained));
  HPD_TRY(older.Check());
  PrintNotes(older);
  *about = JsonOf(sums, with_retained);
  (*about)["file"] = older.path;
  (*about)["dump"] = older.number;
  (*about)["notes"] = older.notes;
  return sums;
}

}  // namespace

Status PrintComparison(OpenedDump older, OpenedDump& newer, const HprofView& view) {
  json about_older;
  const bool is_one_file = older.path == newer.path;
  const auto number_in = [is_one_file](size_t number) {
    return is_one_file ? "dump " + std::to_string(number) + ", " : "";
  };
  const std::string older_number = number_in(older.number);
  HPD_TRY_ASSIGN(const ClassSums before,
                 SumOlder(std::move(older), view.retained, &about_older));
  HPD_TRY_ASSIGN(const ClassSums now, SumClasses(&newer, view.retained));
  const std::vector<ChangedClass> rows = ChangesOf(before, now, view.retained);
  const size_t shown = Shown(rows.size(), view);
  if (view.json) {
    json list = json::array();
    for (size_t i = 0; i < shown; ++i)
      list.push_back(JsonOfChange(rows[i], view.retained));
    json all = JsonOf(now, view.retained);
    all["before"] = std::move(about_older);
    all["dump"] = newer.number;
    PrintJson(newer, "classes", std::move(list), std::move(all));
    return {};
  }
  Print(stdout, "%s: %s%s, %s; before: %s%s, %s\n\n", newer.path.c_str(),
        number_in(newer.number).c_str(),
        FormatCounted(static_cast<double>(now.objects), "object", "objects").c_str(),
        FormatBytes(static_cast<double>(now.bytes)).c_str(), older_number.c_str(),
        FormatCounted(static_cast<double>(before.objects), "object", "objects").c_str(),
        FormatBytes(static_cast<double>(before.bytes)).c_str());
  PrintTable(rows, shown, view.retained);
  return {};
}

}  // namespace heapprofd
