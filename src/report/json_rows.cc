#include "report/json_rows.h"

#include <cmath>
#include <string>
#include <utility>

namespace heapprofd {
namespace {

using nlohmann::json;

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
  json columns = json::array();
  for (size_t i = 0; i < statement.column_count(); ++i)
    columns.push_back(std::string(statement.column_name(i)));
  result = {{"columns", std::move(columns)}, {"rows", json::array()}};
  return {};
}

Status JsonRows::AddRow(const Statement& statement) {
  for (size_t i = 0; i < statement.column_count(); ++i)
    text_bytes_ += statement.At(i).text.size();
  is_cut_ = result["rows"].size() >= max_rows_ || text_bytes_ > max_text_bytes_;
  if (is_cut_)
    return Status(StatusCode::kUnavailable, "cannot tell all rows: there are too many");
  json row = json::array();
  for (size_t i = 0; i < statement.column_count(); ++i)
    row.push_back(ValueOf(statement.At(i)));
  result["rows"].push_back(std::move(row));
  return {};
}

}  // namespace heapprofd
