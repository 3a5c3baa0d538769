#include "cli/hprof/object_report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/hprof/report_parts.h"
#include "cli/text_layout.h"
#include "hprof/object_values.h"
#include "hprof/strings/string_texts.h"

namespace heapprofd {
namespace {

using nlohmann::json;

constexpr size_t kShownText = 100;  // characters

using Texts = std::map<uint64_t, std::string>;

// Of the strings that are referred to, and of the object itself when it is one.
Texts TextsOf(const Examined& examined,
              const OpenedDump& opened,
              uint32_t object,
              const std::vector<hprof::ObjectValue>& values) {
  std::vector<uint64_t> strings;
  const auto want = [&](uint32_t candidate) {
    if (candidate != kNoObject && NameOf(examined.heap, candidate) == "java.lang.String")
      strings.push_back(examined.heap.ids.IdOf(candidate));
  };
  want(object);
  for (const hprof::ObjectValue& value : values) {
    if (value.reference != 0)
      want(examined.heap.ids.Find(value.reference));
  }
  return FindTexts(opened.file, *opened.dump, examined.heap.census.classes, strings,
                   kShownText + 1);
}

// In quotes, cut; "": it is no string.
std::string QuotedText(const Texts& texts, uint64_t id) {
  const auto text = texts.find(id);
  if (text == texts.end())
    return "";
  return " \"" + Cut(Printable(text->second), kShownText) + "\"";
}

json JsonOfValue(const Examined& examined,
                 const OpenedDump& opened,
                 const Texts& texts,
                 const hprof::ObjectValue& value) {
  json row = {{"name", value.name}, {"type", hprof::TypeName(value.type)}};
  if (value.type != hprof::kObject) {
    row["value"] = value.text;
    return row;
  }
  const uint32_t object =
      value.reference == 0 ? kNoObject : examined.heap.ids.Find(value.reference);
  row["object"] = object == kNoObject ? json() : JsonOf(examined, opened, object);
  if (value.reference != 0 && object == kNoObject)
    row["missing"] = hprof::HexOf(value.reference);
  if (const auto text = texts.find(value.reference); text != texts.end())
    row["text"] = text->second;
  return row;
}

std::string ValueText(const Examined& examined,
                      const OpenedDump& opened,
                      const Texts& texts,
                      const hprof::ObjectValue& value) {
  if (value.type != hprof::kObject)
    return value.text;
  if (value.reference == 0)
    return "null";
  const uint32_t object = examined.heap.ids.Find(value.reference);
  if (object == kNoObject)
    return hprof::HexOf(value.reference) + ", which the dump does not have";
  return TitleOf(examined, opened, object) + QuotedText(texts, value.reference) +
         ", retains " + FormatBytes(static_cast<double>(examined.retained[object]));
}

void PrintValues(const Examined& examined,
                 const OpenedDump& opened,
                 uint32_t object,
                 const hprof::ObjectValues& values,
                 const Texts& texts) {
  Print(stdout, "%s%s, %s, retains %s\n", TitleOf(examined, opened, object).c_str(),
        QuotedText(texts, examined.heap.ids.IdOf(object)).c_str(),
        FormatBytes(static_cast<double>(examined.heap.graph.SizeOf(object))).c_str(),
        FormatBytes(static_cast<double>(examined.retained[object])).c_str());
  for (const hprof::ObjectValue& value : values.values)
    Print(stdout, "  %s = %s\n", Printable(value.name).c_str(),
          ValueText(examined, opened, texts, value).c_str());
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
  const hprof::ObjectValues values =
      ValuesOf(opened.file, *opened.dump, examined.heap.census.classes,
               examined.heap.ids.IdOf(object), view.top == 0 ? SIZE_MAX : view.top)
          .value_or(hprof::ObjectValues());
  const Texts texts = TextsOf(examined, opened, object, values.values);
  if (!view.json) {
    PrintValues(examined, opened, object, values, texts);
    return {};
  }
  json list = json::array();
  for (const hprof::ObjectValue& value : values.values)
    list.push_back(JsonOfValue(examined, opened, texts, value));
  json all = {{"object", JsonOf(examined, opened, object)}, {"all_values", values.count}};
  const auto text = texts.find(examined.heap.ids.IdOf(object));
  if (text != texts.end())
    all["text"] = text->second;
  PrintJson(opened, "values", std::move(list), std::move(all));
  return {};
}

}  // namespace heapprofd
