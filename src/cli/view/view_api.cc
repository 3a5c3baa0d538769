#include "cli/view/view_api.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/flag_values.h"
#include "cli/inspect/export_choice.h"
#include "query/dump_values.h"
#include "report/json_rows.h"

namespace heapprofd {
namespace {

using nlohmann::json;

constexpr uint64_t kUsualRows = 1000;
constexpr uint64_t kMostRows = 10'000;
constexpr size_t kMostBytes = 16 << 20;  // of the values in an answer
constexpr size_t kMostSources = 2000;
constexpr int64_t kMostExact = int64_t{1} << 53;  // of numbers in a browser

WebAnswer JsonAnswer(const json& value) {
  // Texts of a trace may hold any bytes.
  return {.body = value.dump(-1, ' ', false, json::error_handler_t::replace)};
}

unsigned HttpStatusOf(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
      return 400;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kUnavailable:  // cancelled, or too much memory
      return 503;
    default:
      return 500;
  }
}

// What a message says is to be done is part of it: where that begins nobody knows who has
// only the text, as what it quotes may have any words.
WebAnswer ErrorAnswer(const Status& status) {
  return WebError(HttpStatusOf(status.code()), status.message(),
                  "docs/sql.md and docs/view.md have what can be asked");
}

// A browser would show the nearest one that it has.
void KeepExact(json& rows) {
  for (json& row : rows) {
    for (json& cell : row) {
      if (!cell.is_number_integer())
        continue;
      const auto number = cell.get<int64_t>();
      if (number > kMostExact || number < -kMostExact)
        cell = std::to_string(number);
    }
  }
}

Result<uint64_t> NumberOf(const WebRequest& request,
                          const std::string& name,
                          uint64_t usual,
                          uint64_t most) {
  const std::string text = request.Parameter(name);
  if (text.empty())
    return usual;
  const std::optional<uint64_t> number = ParseNumber(text, most);
  if (!number)
    return Invalid("cannot use " + name + "=" + text +
                   ": it must be a number from 0 to " + std::to_string(most));
  return *number;
}

}  // namespace

WebAnswer ViewApi::Answer(const WebRequest& request) {
  struct Route {
    const char* path;
    bool is_post;
    Result<WebAnswer> (ViewApi::*answer)(const WebRequest&);
    bool needs_callsites = true;  // the page has needed whole stacks only
  };

  static constexpr Route kRoutes[] = {
      {"api/sql", true, &ViewApi::Query},
      {"api/tables", false, &ViewApi::Tables, /*needs_callsites=*/false},
      {"api/export", false, &ViewApi::ExportedFile},
      {"api/sources", false, &ViewApi::Sources},
      {"api/source", false, &ViewApi::Source},
  };
  for (const Route& route : kRoutes) {
    if (request.path != route.path)
      continue;
    if (request.is_post != route.is_post)
      return WebError(405, "this method is not answered here",
                      route.is_post ? "use POST" : "use GET");
    const Status status =
        route.needs_callsites ? file_.database->UseCallsites() : Status();
    if (!status.ok())
      return ErrorAnswer(status);
    Result<WebAnswer> answer = (this->*route.answer)(request);
    return answer.ok() ? std::move(answer).value() : ErrorAnswer(answer.status());
  }
  return WebError(404, "there is nothing here", "docs/view.md lists what can be asked");
}

Result<WebAnswer> ViewApi::Query(const WebRequest& request) {
  HPD_TRY_ASSIGN(const uint64_t limit, NumberOf(request, "limit", kUsualRows, kMostRows));
  const uint64_t begin_ns = MonotonicNs();
  JsonRows rows(limit, kMostBytes);
  const Status status = file_.database->Run(request.body, rows);
  if (!status.ok() && !rows.is_cut())
    return status;
  if (rows.result.is_null())
    rows.result = {{"columns", json::array()}, {"rows", json::array()}};
  KeepExact(rows.result["rows"]);
  rows.result["is_cut"] = rows.is_cut();
  const std::vector<std::string>& warnings = file_.warnings;
  if (warnings.size() > told_warnings_)
    rows.result["warnings"] = std::vector<std::string>(
        warnings.begin() + static_cast<ptrdiff_t>(told_warnings_), warnings.end());
  rows.result["seconds"] = static_cast<double>(MonotonicNs() - begin_ns) / 1e9;
  return JsonAnswer(rows.result);
}

Result<WebAnswer> ViewApi::Tables(const WebRequest& /*request*/) {
  json tables = json::array();
  for (const Database::Relation& relation : file_.database->relations())
    tables.push_back({{"name", relation.name},
                      {"columns", relation.columns},
                      {"parameters", relation.parameters}});
  return JsonAnswer({{"tables", std::move(tables)}});
}

Result<WebAnswer> ViewApi::ExportedFile(const WebRequest& request) {
  ExportChoice choice{.heap = request.Parameter("heap")};
  HPD_TRY(choice.SetFormat("format=", request.Parameter("format")));
  if (const std::string view = request.Parameter("view"); !view.empty())
    HPD_TRY(choice.SetView("view=", view));
  if (const std::string pid = request.Parameter("pid"); !pid.empty())
    HPD_TRY(choice.SetPid("pid=", pid));
  if (!request.Parameter("upid").empty()) {
    HPD_TRY_ASSIGN(choice.upid, NumberOf(request, "upid", 0, UINT32_MAX));
  }
  HPD_TRY(file_.Complete());
  HPD_TRY_ASSIGN(std::string text, Export(file_, choice));
  return WebAnswer{.type = "application/octet-stream",
                   .body = std::move(text),
                   .file_name = std::string("heap.") + choice.format->suffix};
}

Result<const SumsByFile*> ViewApi::SumsOf(const WebRequest& request) {
  const ImportedTrace& trace = file_.trace();
  HPD_TRY_ASSIGN(const uint64_t number, NumberOf(request, "dump", 0, UINT32_MAX));
  HPD_TRY_ASSIGN(const uint32_t dump,
                 DumpOf(trace, Cell::Integer(static_cast<int64_t>(number))));
  const std::string name = request.Parameter("view");
  HPD_TRY_ASSIGN(const ProfileView view,
                 ViewOf(name.empty() ? Cell::Null() : Cell::Text(name)));
  const bool is_peak = request.Parameter("peak") == "1";
  const SumsKey key(dump, is_peak, view);
  if (!has_sums_ || key != sums_key_) {
    HPD_TRY_ASSIGN(
        sums_,
        SumByLine(trace, is_peak ? PeakValuesAt(trace, dump) : ValuesAt(trace, dump),
                  view, file_.database->cancel_flag()));
    sums_key_ = key;
    has_sums_ = true;
  }
  return &sums_;
}

Result<WebAnswer> ViewApi::Sources(const WebRequest& request) {
  HPD_TRY_ASSIGN(const SumsByFile* const sums, SumsOf(request));
  return JsonAnswer(SourcesJson(file_.trace(), *sums, kMostSources));
}

// One of them, by its number: whatever a client asks for, only what the trace names is
// opened.
Result<WebAnswer> ViewApi::Source(const WebRequest& request) {
  HPD_TRY_ASSIGN(const uint64_t id, NumberOf(request, "id", UINT32_MAX, UINT32_MAX));
  HPD_TRY_ASSIGN(const SumsByFile* const sums, SumsOf(request));
  const auto file = sums->find(static_cast<StringId>(id));
  if (file == sums->end())
    return Status(StatusCode::kNotFound,
                  "cannot show source file " + std::to_string(id) +
                      ": no stack of this dump names it; api/sources lists those");
  json answer = SourceJson(file_.trace(), *file);
  const Result<SourceText> text =
      ReadSource(std::string(file_.trace().Text(file->first)));
  if (text.ok()) {
    answer["text"] = text.value().lines;
    answer["is_cut"] = text.value().is_cut;
  } else {
    answer["reason"] = text.status().message();
  }
  return JsonAnswer(answer);
}

}  // namespace heapprofd
