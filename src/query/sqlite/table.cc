#include "query/sqlite/table.h"

#include "base/status.h"

namespace heapprofd {
namespace {

struct CellAt {
  size_t row;

  Cell operator()(RowNumbers) const { return Cell::Integer(static_cast<int64_t>(row)); }

  Cell operator()(std::span<const int64_t> values) const {
    return Cell::Integer(values[row]);
  }

  Cell operator()(std::span<const uint64_t> values) const {
    return Cell::Integer(static_cast<int64_t>(values[row]));
  }

  Cell operator()(std::span<const uint32_t> values) const {
    return values[row] == UINT32_MAX ? Cell::Null() : Cell::Integer(values[row]);
  }

  Cell operator()(std::span<const double> values) const {
    return Cell::Real(values[row]);
  }

  Cell operator()(const InternedTexts& texts) const {
    const StringId id = texts.ids[row];
    return id == UINT32_MAX ? Cell::Null() : Cell::Text(texts.pool->Get(id));
  }

  Cell operator()(const ComputedCells& compute) const { return compute(row); }

  Cell operator()(const MadeTexts&) const {
    HPD_CHECK(false);  // the planner leaves them to SQLite
    return {};
  }
};

}  // namespace

Cell TableColumn::At(size_t row) const {
  return std::visit(CellAt{row}, source);
}

}  // namespace heapprofd
