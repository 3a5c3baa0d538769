#include "report/json_rows.h"

#include <cmath>
#include <string>
#include <utility>

namespace heapprofd {
namespace {

using nlohmann::json;

constexpr size_t kBytesOfValue = sizeof(json);

json ValueOf(const Cell& cell) {
  switch (cell.kind) {
    case CellKind::kNull:
      break;
    case CellKind::kInteger:
      return cell.integer;
    case CellKind::kReal:
      return std::isfinite(cell.real) ? json(cell.real) : json();
    case CellKind::kText:
      return std::string(cell.text);
  }
  return {};
}

}  // namespace

Status JsonRows::BeginResult(const Statement& statement) {
  result = {{"columns", json::array()}, {"rows", json::array()}};
  for (size_t i = 0; i < statement.column_count(); ++i) {
    const std::string name(statement.column_name(i));
    bytes_ += kBytesOfValue + name.size();
    if (bytes_ > max_bytes_)
      return TooMany();
    result["columns"].push_back(name);
  }
  return {};
}

Status JsonRows::TooMany() {
  is_cut_ = true;
  return Status(StatusCode::kUnavailable, "cannot tell all rows: there are too many");
}

Status JsonRows::AddRow(const Statement& statement) {
  for (size_t i = 0; i < statement.column_count(); ++i)
    bytes_ += kBytesOfValue + statement.At(i).text.size();
  if (result["rows"].size() >= max_rows_ || bytes_ > max_bytes_)
    return TooMany();
  json row = json::array();
  for (size_t i = 0; i < statement.column_count(); ++i)
    row.push_back(ValueOf(statement.At(i)));
  result["rows"].push_back(std::move(row));
  return {};
}

}  // namespace heapprofd
