#include "cli/hprof/object_report.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/hprof/report_parts.h"
#include "cli/text_layout.h"

namespace heapprofd {
namespace {

using nlohmann::json;

constexpr size_t kShownText = 100;  // characters

// In quotes, cut; "": it is no string.
std::string QuotedText(const FieldValues& values, uint32_t object) {
  const auto text = values.texts.find(object);
  if (text == values.texts.end())
    return "";
  return " \"" + Cut(Printable(text->second), kShownText) + "\"";
}

json JsonOfValue(const Examined& examined,
                 const FieldValues& values,
                 const FieldValue& value) {
  json row = {{"name", value.name}, {"type", value.type}};
  if (!value.is_reference) {
    row["value"] = value.number;
    return row;
  }
  row["object"] = value.object == kNoObject ? json() : JsonOf(examined, value.object);
  if (value.missing != 0)
    row["missing"] = hprof::HexOf(value.missing);
  if (const auto text = values.texts.find(value.object); text != values.texts.end())
    row["text"] = text->second;
  return row;
}

std::string ValueText(const Examined& examined,
                      const FieldValues& values,
                      const FieldValue& value) {
  if (!value.is_reference)
    return value.number;
  if (value.missing != 0)
    return hprof::HexOf(value.missing) + ", which the dump does not have";
  if (value.object == kNoObject)
    return "null";
  return TitleOf(examined, value.object) + QuotedText(values, value.object) +
         ", retains " +
         FormatBytes(static_cast<double>(examined.retention.RetainedBy(value.object)));
}

void PrintValues(const Examined& examined, uint32_t object, const FieldValues& values) {
  Print(stdout, "%s%s, %s, retains %s\n", TitleOf(examined, object).c_str(),
        QuotedText(values, object).c_str(),
        FormatBytes(static_cast<double>(examined.heap->graph().SizeOf(object))).c_str(),
        FormatBytes(static_cast<double>(examined.retention.RetainedBy(object))).c_str());
  for (const FieldValue& value : values.values)
    Print(stdout, "  %s = %s\n", Printable(value.name).c_str(),
          ValueText(examined, values, value).c_str());
  if (!values.has_data)
    Print(
        stdout, "  %s, which the dump does not have\n",
        FormatCounted(static_cast<double>(values.count), "element", "elements").c_str());
  else if (values.count > values.values.size())
    Print(stdout, "  and %s more\n",
          FormatCount(static_cast<double>(values.count - values.values.size())).c_str());
}

}  // namespace

Status PrintObject(OpenedDump& opened, const HprofView& view) {
  HPD_TRY_ASSIGN(const Examined examined, Examine(&opened));
  HPD_TRY_ASSIGN(const uint32_t object, FindObject(examined, view.object));
  const FieldValues values = examined.heap->ValuesOf(
      object, view.top == 0 ? SIZE_MAX : view.top, kShownText + 1);
  if (opened.is_of_trace())
    opened.notes.emplace_back(
        "a heap of a trace has an object's references, and numbers of next to no class: "
        "there may be more in it");
  if (!view.json) {
    PrintValues(examined, object, values);
    return {};
  }
  json list = json::array();
  for (const FieldValue& value : values.values)
    list.push_back(JsonOfValue(examined, values, value));
  json all = {{"object", JsonOf(examined, object)}, {"all_values", values.count}};
  if (const auto text = values.texts.find(object); text != values.texts.end())
    all["text"] = text->second;
  PrintJson(opened, "values", std::move(list), std::move(all));
  return {};
}

}  // namespace heapprofd
