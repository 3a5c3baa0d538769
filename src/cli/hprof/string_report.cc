#include "cli/hprof/string_report.h"

#include <cstdio>
#include <utility>

#include "base/format.h"
#include "base/print.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/hprof/report_parts.h"
#include "hprof/strings/duplicate_strings.h"

namespace heapprofd {
namespace {

using nlohmann::json;

json JsonOfStrings(const hprof::DuplicateStrings& found) {
  json list = json::array();
  for (const hprof::DuplicateString& row : found.rows)
    list.push_back({{"text", row.text},
                    {"length", row.length},
                    {"strings", row.strings},
                    {"arrays", row.arrays},
                    {"bytes", row.bytes},
                    {"wasted", row.wasted}});
  return list;
}

// One line; "..." behind what is cut.
std::string ShownLine(const hprof::DuplicateString& row) {
  constexpr size_t kMaxBytes = 60;
  std::string text = Printable(row.text);
  const bool is_cut = row.length > hprof::kMaxShownCharacters || text.size() > kMaxBytes;
  text.resize(CutUtf8(text, kMaxBytes).size());
  return '"' + text + '"' + (is_cut ? "..." : "");
}

}  // namespace

Status PrintStrings(OpenedDump& opened, const HprofView& view) {
  const hprof::HeapCensus census =
      hprof::TakeCensus(opened.source->file, *opened.source->dump);
  AddDamage(census, &opened);
  const hprof::DuplicateStrings found =
      hprof::FindDuplicateStrings(opened.source->file, *opened.source->dump, census,
                                  view.top == 0 ? SIZE_MAX : view.top);
  if (view.json) {
    PrintJson(opened, "strings", JsonOfStrings(found),
              {{"texts", found.texts},
               {"all_strings", found.strings},
               {"bytes", found.bytes},
               {"wasted", found.wasted}});
    return {};
  }
  Print(stdout, "%s: %s, %s; %s would be saved if each text was there once\n\n",
        opened.path.c_str(),
        FormatCounted(static_cast<double>(found.strings), "string", "strings").c_str(),
        FormatBytes(static_cast<double>(found.bytes)).c_str(),
        FormatBytes(static_cast<double>(found.wasted)).c_str());
  Print(stdout, "%12s %14s %14s  %s\n", "strings", "bytes", "wasted", "text");
  for (const hprof::DuplicateString& row : found.rows)
    Print(stdout, "%12llu %14llu %14llu  %s\n",
          static_cast<unsigned long long>(row.strings),
          static_cast<unsigned long long>(row.bytes),
          static_cast<unsigned long long>(row.wasted), ShownLine(row).c_str());
  return {};
}

}  // namespace heapprofd
