// The values of fields: heap_graph_object_data and heap_graph_primitive. HPROF files have
// all of them, and each of their objects has a row; traces have those of bitmaps, which
// come behind.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "query/content_rows.h"
#include "query/flame_functions.h"
#include "query/tree_tables.h"

namespace heapprofd {
namespace {

// Perfetto's MurmurHash64A, so that its queries find the same arrays.
uint64_t HashOf(std::string_view data) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  constexpr uint64_t kSeed = 0xe17a1465;
  constexpr int kShift = 47;
  uint64_t hash = kSeed ^ (data.size() * kFactor);
  while (!data.empty()) {
    uint64_t word = 0;
    const size_t bytes = std::min(data.size(), sizeof(word));
    memcpy(&word, data.data(), bytes);
    data.remove_prefix(bytes);
    if (bytes == sizeof(word)) {
      word *= kFactor;
      word ^= word >> kShift;
      word *= kFactor;
    }
    hash = (hash ^ word) * kFactor;
  }
  hash = (hash ^ hash >> kShift) * kFactor;
  return hash ^ hash >> kShift;
}

Cell CellOf(NumberType type, const Number& number) {
  if (!IsReal(type))
    return Cell::Integer(number.integer);
  return std::isnan(number.real) ? Cell::Null() : Cell::Real(number.real);
}

template <typename F>
TableColumn ArrayColumn(std::string_view name,
                        ColumnType type,
                        std::shared_ptr<const ContentRows> rows,
                        F cell) {
  return TableColumn::Computed(
      std::string(name), type, [rows = std::move(rows), cell](size_t row) {
        const std::optional<ObjectAt> at = rows->ObjectIn(row);
        const std::optional<NumberArray> array =
            at ? at->contents->ArrayOf(at->object) : std::nullopt;
        return array ? cell(*array, *at, row) : Cell::Null();
      });
}

Table ObjectDataTable(const std::shared_ptr<const ContentRows>& rows) {
  Table table;
  table.row_count = rows->object_rows();
  table.columns = {
      TableColumn::RowNumber("id"),
      NumberColumn("field_set_id", [rows](size_t row) { return rows->SetOfObject(row); }),
      TableColumn::Made("value_string",
                        [rows](size_t row) -> std::optional<std::string> {
                          const std::optional<ObjectAt> at = rows->ObjectIn(row);
                          return at ? at->contents->TextOf(at->object) : std::nullopt;
                        }),
      ArrayColumn("array_element_type", ColumnType::kText, rows,
                  [](const NumberArray& array, const ObjectAt&, size_t) {
                    return Cell::Text(NameOf(array.type));
                  }),
      ArrayColumn("array_element_count", ColumnType::kInteger, rows,
                  [](const NumberArray& array, const ObjectAt&, size_t) {
                    return Cell::Integer(array.length);
                  }),
      ArrayColumn("array_data_id", ColumnType::kInteger, rows,
                  [](const NumberArray& array, const ObjectAt&, size_t row) {
                    return array.has_data ? NumberCell(row) : Cell::Null();
                  }),
      ArrayColumn("array_data_hash", ColumnType::kInteger, rows,
                  [](const NumberArray& array, const ObjectAt& at, size_t) {
                    return array.has_data
                               ? NumberCell(HashOf(at.contents->DataOf(at.object)))
                               : Cell::Null();
                  }),
  };
  return table;
}

// The values of fields of one type.
TableColumn ValueColumn(const char* name,
                        NumberType wanted,
                        std::shared_ptr<const ContentRows> rows) {
  return TableColumn::Computed(
      name, IsReal(wanted) ? ColumnType::kReal : ColumnType::kInteger,
      [wanted, rows = std::move(rows)](size_t row) {
        const std::optional<FieldAt> at = rows->FieldIn(row);
        if (!at) {
          const HeapPrimitive& of_trace = rows->PrimitiveIn(row);
          return rows->trace().Text(of_trace.field_type) == NameOf(wanted)
                     ? Cell::Integer(of_trace.value)
                     : Cell::Null();
        }
        if (at->contents->TypeOf(at->field) != wanted)
          return Cell::Null();
        const std::optional<Number> number = at->contents->ValueOf(at->field);
        return number ? CellOf(wanted, *number) : Cell::Null();
      });
}

Table PrimitiveTable(const std::shared_ptr<const ContentRows>& rows) {
  Table table;
  table.row_count = rows->field_rows();
  TableColumn sets =
      NumberColumn("field_set_id", [rows](size_t row) { return rows->SetOfField(row); });
  sets.order = ColumnOrder::kAscending;
  table.columns = {
      TableColumn::RowNumber("id"),
      std::move(sets),
      TableColumn::Computed("field_name", ColumnType::kText,
                            [rows](size_t row) {
                              const std::optional<FieldAt> at = rows->FieldIn(row);
                              return at ? Cell::Text(at->contents->NameOf(at->field))
                                        : TextCell(rows->trace(),
                                                   rows->PrimitiveIn(row).field_name);
                            }),
      TableColumn::Computed(
          "field_type", ColumnType::kText,
          [rows](size_t row) {
            const std::optional<FieldAt> at = rows->FieldIn(row);
            return at ? Cell::Text(NameOf(at->contents->TypeOf(at->field)))
                      : TextCell(rows->trace(), rows->PrimitiveIn(row).field_type);
          }),
      ValueColumn("bool_value", NumberType::kBoolean, rows),
      ValueColumn("byte_value", NumberType::kByte, rows),
      ValueColumn("char_value", NumberType::kChar, rows),
      ValueColumn("short_value", NumberType::kShort, rows),
      ValueColumn("int_value", NumberType::kInt, rows),
      ValueColumn("long_value", NumberType::kLong, rows),
      ValueColumn("float_value", NumberType::kFloat, rows),
      ValueColumn("double_value", NumberType::kDouble, rows),
  };
  return table;
}

using MakeTable = Table (*)(const std::shared_ptr<const ContentRows>& rows);

Status AddValueTable(const char* name,
                     MakeTable make,
                     const std::shared_ptr<ContentRows>& rows,
                     Database* database) {
  TableFunction function = FunctionWithColumnsOf(
      name, make(std::make_shared<const ContentRows>(nullptr, ContentsOfGraphs())));
  function.count_rows = [rows] { return rows->usual_rows(); };
  function.make = [rows, make](std::span<const Cell>) -> MadeTable {
    HPD_TRY(rows->Load());
    return std::make_shared<const Table>(make(rows));
  };
  return database->AddFunction(std::move(function));
}

void AppendNumber(NumberType type, const char* data, std::string* text) {
  constexpr size_t kMaxLength = 32;
  std::array<char, kMaxLength> number{};
  const auto put = [&]<typename T>(T value) {
    memcpy(&value, data, sizeof(value));
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(value)) {
        text->append("null");  // JSON has no others
        return;
      }
    }
    const auto end = std::to_chars(number.data(), number.data() + kMaxLength, value).ptr;
    text->append(number.data(), end);
  };
  switch (type) {
    case NumberType::kBoolean:
      text->append(*data != 0 ? "true" : "false");
      break;
    case NumberType::kByte:
      put(int8_t{});
      break;
    case NumberType::kChar:
      put(uint16_t{});
      break;
    case NumberType::kShort:
      put(int16_t{});
      break;
    case NumberType::kInt:
      put(int32_t{});
      break;
    case NumberType::kLong:
      put(int64_t{});
      break;
    case NumberType::kFloat:
      put(float{});
      break;
    case NumberType::kDouble:
      put(double{});
      break;
  }
}

// (array_data_id, array_element_type, array_element_count) as Perfetto's; the latter two
// are known. NULL: there is no such array.
Result<OwnedCell> ArrayAsJson(ContentRows& rows, std::span<const Cell> arguments) {
  if (arguments[0].kind != CellKind::kInteger || arguments[1].is_null() ||
      arguments[2].is_null())
    return OwnedCell();
  HPD_TRY(rows.Load());
  const std::optional<ObjectAt> at =
      rows.ObjectIn(static_cast<uint64_t>(arguments[0].integer));
  const std::optional<NumberArray> array =
      at ? at->contents->ArrayOf(at->object) : std::nullopt;
  constexpr uint32_t kMostElements = 40'000'000;  // SQLite's texts end at 1e9 bytes
  if (!array || !array->has_data || array->length > kMostElements)
    return OwnedCell();
  const std::string data = at->contents->DataOf(at->object);
  const size_t bytes = BytesOf(array->type);
  std::string text = "[";
  // The file may have been written anew since it said what the array is.
  for (size_t i = 0; i + bytes <= data.size(); i += bytes) {
    text.append(i == 0 ? "" : ",");
    AppendNumber(array->type, data.data() + i, &text);
  }
  return OwnedCell::Text(text.append(1, ']'));
}

}  // namespace

Status AddHeapGraphValues(const ImportedTrace& trace,
                          const ContentsOfGraphs& contents,
                          Database* database) {
  const auto rows = std::make_shared<ContentRows>(&trace, contents);
  HPD_TRY(AddValueTable("heap_graph_object_data", ObjectDataTable, rows, database));
  HPD_TRY(AddValueTable("heap_graph_primitive", PrimitiveTable, rows, database));
  return database->AddScalar(
      "__intrinsic_heap_graph_get_array_json", 3,
      [rows](std::span<const Cell> arguments) { return ArrayAsJson(*rows, arguments); });
}

}  // namespace heapprofd
