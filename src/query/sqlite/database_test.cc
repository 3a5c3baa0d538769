// The engine by itself: what SQL sees of columns, and what it may not do.
#include "query/sqlite/database.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace heapprofd {
namespace {

// Rows as text, "|" between cells and a line per row; or the error's message.
std::string RunQuery(Database& database, std::string_view sql) {
  std::string_view rest;
  Result<Statement> statement = database.Prepare(sql, &rest);
  if (!statement.ok())
    return "error: " + statement.status().message();
  std::string text;
  while (true) {
    const Result<bool> row = statement.value().Step();
    if (!row.ok())
      return "error: " + row.status().message();
    if (!row.value())
      return text;
    for (size_t i = 0; i < statement.value().column_count(); ++i) {
      const Cell cell = statement.value().At(i);
      text += i == 0 ? "" : "|";
      if (cell.kind == CellKind::kInteger)
        text += std::to_string(cell.integer);
      else if (cell.kind == CellKind::kReal)
        text += std::to_string(cell.real);
      else if (cell.kind == CellKind::kText)
        text += cell.text;
      else
        text += "NULL";
    }
    text += "\n";
  }
}

struct Numbers {
  std::vector<int64_t> sorted;
  std::vector<int64_t> scattered;
  std::vector<uint32_t> parents;
  std::vector<double> halves;
  std::vector<int64_t> sets;  // each named by the first row that is in it
};

constexpr size_t kRows = 1000;

class DatabaseTest : public testing::Test {
 protected:
  void SetUp() override {
    for (size_t i = 0; i < kRows; ++i) {
      const auto value = static_cast<int64_t>(i);
      numbers_.sorted.push_back(value / 3 * 10);
      numbers_.scattered.push_back(value * 7919 % 101);
      numbers_.parents.push_back(i == 0 ? UINT32_MAX : static_cast<uint32_t>(i / 2));
      numbers_.halves.push_back(static_cast<double>(i) / 2);
      numbers_.sets.push_back(i < 10 ? 0 : value < 900 ? value / 7 * 7 : value);
    }
    Result<std::unique_ptr<Database>> database = Database::Create(uint64_t{256} << 20);
    ASSERT_TRUE(database.ok());
    database_ = std::move(database).value();
    Table table;
    table.row_count = kRows;
    table.columns = {
        TableColumn::RowNumber("id"),
        TableColumn::Integers("sorted", numbers_.sorted, ColumnOrder::kAscending),
        TableColumn::Integers("scattered", numbers_.scattered),
        TableColumn::Ids("parent", numbers_.parents),
        TableColumn::Reals("half", numbers_.halves),
        TableColumn::Integers("set_id", numbers_.sets, ColumnOrder::kAscending),
        TableColumn::Computed(
            "dear", ColumnType::kInteger,
            [this](size_t row) {
              ++computed_;
              return row % 2 == 0 ? Cell::Null()
                                  : Cell::Integer(static_cast<int64_t>(kRows - row));
            }),
        TableColumn::Made("made",
                          [](size_t row) {
                            return row % 10 == 0
                                       ? std::nullopt
                                       : std::optional("row " + std::to_string(row % 50));
                          }),
        TableColumn::Computed("name", ColumnType::kText,
                              [](size_t row) {
                                return row % 2 == 0 ? Cell::Text("even")
                                                    : Cell::Text("odd");
                              }),
    };
    ASSERT_TRUE(database_->AddTable("numbers", std::move(table)).ok());
    TableFunction function;
    function.name = "repeat";
    function.columns = {{"text", ColumnType::kText}, {"n"}};
    function.parameters = {{"what", ColumnType::kText}, {"times"}};
    function.make =
        [this](std::span<const Cell> arguments) -> Result<std::shared_ptr<const Table>> {
      ++calls_;
      if (arguments[1].integer < 0)
        return Status(StatusCode::kInvalidArgument, "cannot repeat: negative");
      auto text = std::make_shared<std::string>(arguments[0].text);
      auto result = std::make_shared<Table>();
      result->storage = text;
      result->row_count = static_cast<size_t>(arguments[1].integer);
      result->columns = {
          TableColumn::Computed("text", ColumnType::kText,
                                [raw = text.get()](size_t) { return Cell::Text(*raw); }),
          TableColumn::RowNumber("n")};
      return std::shared_ptr<const Table>(result);
    };
    ASSERT_TRUE(database_->AddFunction(std::move(function)).ok());
    ASSERT_TRUE(database_->Seal().ok());
  }

  std::string Query(std::string_view sql) { return RunQuery(*database_, sql); }

  Numbers numbers_;
  std::unique_ptr<Database> database_;
  int calls_ = 0;
  size_t computed_ = 0;  // cells of `dear`
};

TEST_F(DatabaseTest, SetsThatAreNamedByTheirFirstRow) {
  for (int64_t set = -1; set <= static_cast<int64_t>(kRows); ++set) {
    const auto [first, last] = std::ranges::equal_range(numbers_.sets, set);
    const std::string number = std::to_string(set);
    EXPECT_EQ(RunQuery(*database_,
                       "SELECT count(*), coalesce(min(id), -1) FROM numbers "
                       "WHERE set_id = " +
                           number),
              std::to_string(last - first) + "|" +
                  (first == last ? "-1" : std::to_string(first - numbers_.sets.begin())) +
                  "\n");
  }
}

TEST_F(DatabaseTest, TextsThatAreMadeWhenTheyAreAskedFor) {
  EXPECT_EQ(RunQuery(*database_, "SELECT id FROM numbers WHERE made = 'row 7' LIMIT 3"),
            "7\n57\n107\n");
  EXPECT_EQ(RunQuery(*database_, "SELECT made FROM numbers WHERE id IN (9, 10, 11)"),
            "row 9\nNULL\nrow 11\n");
  EXPECT_EQ(RunQuery(*database_,
                     "SELECT count(*) FROM numbers a JOIN numbers b "
                     "USING (made) WHERE a.id < 50"),
            "900\n");
  EXPECT_EQ(RunQuery(*database_,
                     "SELECT made, count(*) FROM numbers GROUP BY made "
                     "ORDER BY made DESC LIMIT 2"),
            "row 9|20\nrow 8|20\n");
}

TEST_F(DatabaseTest, ARowIsFoundByItsId) {
  EXPECT_EQ(Query("select id, sorted, parent, half, name from numbers where id = 7"),
            "7|20|3|3.500000|odd\n");
  EXPECT_EQ(Query("select parent from numbers where id = 0"), "NULL\n");
  EXPECT_EQ(Query("select * from numbers where id = 1000"), "");
  EXPECT_EQ(Query("select * from numbers where id = -1"), "");
}

// Each condition as the virtual table answers it and as SQLite does when the table cannot
// see it (unary + hides a column), for every kind of column and of value.
TEST_F(DatabaseTest, ConditionsGiveTheRowsThatSqliteItselfWouldChoose) {
  const char* columns[] = {"id",   "sorted", "scattered", "parent",
                           "half", "name",   "set_id",    "made"};
  const char* operators[] = {"=", "<", "<=", ">", ">="};
  const char* values[] = {"20",    "20.5",  "'20'",  "'x'",   "null",
                          "-1",    "1e30",  "-1e30", "x'00'", "9223372036854775807",
                          "'odd'", "'20.0'"};
  for (const char* column : columns) {
    for (const char* comparison : operators) {
      for (const char* value : values) {
        const std::string condition = std::string(comparison) + " " + value;
        const std::string fast =
            std::string("select count(*), total(id) from numbers where ") + column + " " +
            condition;
        // A column of a subquery keeps its affinity, unlike an expression.
        const std::string slow =
            std::string("select count(*), total(id) from (select id, ") + column +
            " as c from numbers limit -1 offset 0) where c " + condition;
        EXPECT_EQ(Query(fast), Query(slow)) << column << " " << condition;
      }
    }
  }
}

// What is dear to compute, as the hash of an array, is computed once for all look-ups.
TEST_F(DatabaseTest, ComputedNumbersAreComputedOnceForAJoin) {
  EXPECT_EQ(Query("select sum(n) from (select (select count(*) from numbers b where "
                  "b.dear = a.id) as n from numbers a)"),
            "500\n");
  EXPECT_LE(computed_, 3 * kRows);  // by the first look-up, which has no index; for the
                                    // index; and for SQLite's own check of what is found
  EXPECT_EQ(Query("select a.id from numbers a join numbers b on a.id = b.dear "
                  "where a.id < 4 order by 1"),
            "1\n3\n");
}

TEST_F(DatabaseTest, RepeatedLookupsByAnUnorderedColumnFindAllRows) {
  const std::string sum =
      "select sum(n) from (select (select count(*) from numbers b where b.scattered = "
      "a.scattered) as n from numbers a)";
  int64_t expected = 0;
  std::vector<int64_t> counts(101);
  for (const int64_t value : numbers_.scattered)
    ++counts[static_cast<size_t>(value)];
  for (const int64_t count : counts)
    expected += count * count;
  EXPECT_EQ(Query(sum), std::to_string(expected) + "\n");
  EXPECT_EQ(Query("select count(*) from numbers a join numbers b on a.parent = b.id"),
            "999\n");
  EXPECT_EQ(Query("select count(*) from numbers a join numbers b on a.id = b.parent"),
            "999\n");
  EXPECT_EQ(
      Query("select count(*) from numbers a join (values('odd'),('even'),('x')) b on "
            "a.name = b.column1"),
      "1000\n");
}

TEST_F(DatabaseTest, OrderOfAnOrderedColumnIsKeptWithoutSorting) {
  EXPECT_EQ(Query("select id from numbers where scattered = 5 order by id limit 3"),
            Query("select id from numbers where +scattered = 5 order by +id limit 3"));
  EXPECT_EQ(Query("select id from numbers order by id desc limit 2"), "999\n998\n");
}

TEST_F(DatabaseTest, AFunctionTakesArgumentsByPositionAndByName) {
  EXPECT_EQ(Query("select n, text from repeat('ab', 2)"), "0|ab\n1|ab\n");
  EXPECT_EQ(Query("select n from repeat where times = 1 and what = 'q'"), "0\n");
  EXPECT_EQ(Query("select what, times from repeat('ab', 1)"), "ab|1\n");
  EXPECT_EQ(Query("select count(*) from numbers, repeat('x', numbers.id) where id < 4"),
            "6\n");
}

TEST_F(DatabaseTest, ArgumentsHoldInEachBranchOfAnOr) {
  EXPECT_EQ(Query("select n from repeat('ab', 9) where n = 1 or n = 3 or text = 'x'"),
            "1\n3\n");
  EXPECT_EQ(Query("select n from repeat('ab', 2) where n = 1 or text like 'a%'"),
            "0\n1\n");
  EXPECT_EQ(Query("select count(*) from repeat(null, 9) where n = 1 or text = ''"),
            "9\n");
  EXPECT_EQ(Query("select count(*) from numbers join repeat('x', numbers.id) r where "
                  "numbers.id = 3 and (n = 1 or text = 'y')"),
            "1\n");
}

TEST_F(DatabaseTest, AFunctionIsCalledOncePerArguments) {
  Query("select count(*) from numbers, repeat('x', 3) where numbers.id < 10");
  EXPECT_EQ(calls_, 1);
}

TEST_F(DatabaseTest, AFunctionSaysWhichArgumentIsMissing) {
  EXPECT_EQ(Query("select * from repeat('x')"),
            "error: cannot run the query: cannot use repeat: its argument times is "
            "missing; its form is repeat(what, times)");
  EXPECT_EQ(Query("select * from repeat('x', -1)"),
            "error: cannot run the query: cannot repeat: negative");
}

TEST_F(DatabaseTest, NothingCanBeWrittenLoadedOrAttached) {
  for (const char* sql :
       {"insert into numbers values(1,2,3,4,5,6)", "delete from numbers",
        "update numbers set id = 1", "drop table numbers", "create table t(a)",
        "create temp table t(a)", "attach ':memory:' as x", "pragma writable_schema=1",
        "pragma hard_heap_limit=0", "select load_extension('x')",
        "select fts3_tokenizer('simple')", "vacuum into '/tmp/x'",
        "create virtual table v using fts5(a)", "begin", "savepoint a", "analyze",
        "create index i on numbers(id)", "insert into sqlite_master values(1,2,3,4,5)"})
    EXPECT_TRUE(Query(sql).starts_with("error: ")) << sql << ": " << Query(sql);
}

TEST_F(DatabaseTest, ViewsAreNamesForQueries) {
  EXPECT_EQ(Query("create view v as select max(id) as m from numbers"), "");
  EXPECT_EQ(Query("select m from v"), "999\n");
  EXPECT_EQ(Query("drop view v"), "");
}

TEST_F(DatabaseTest, AFunctionThatIsAQueryHasItsArgumentsAndNoOthers) {
  const auto add = [&](const char* select) {
    return database_->AddQueryFunction({"f", {"a", "b"}, select}).message();
  };
  ASSERT_EQ(add("SELECT sorted + $a FROM numbers WHERE id = $b"), "");
  EXPECT_EQ(Query("SELECT f(7, id), f(7, -1), f('x', 3) FROM numbers WHERE id = 4"),
            "17|NULL|10\n");
  // The row that asks has the same columns.
  EXPECT_EQ(Query("SELECT id, f(id, 999) FROM numbers WHERE id IN (1, 2)"),
            "1|3331\n2|3332\n");
  EXPECT_EQ(add("SELECT $a + $c"),
            "cannot create function f: it has no argument $c; name those it has between "
            "its parentheses");
  EXPECT_EQ(add("CREATE VIEW w AS SELECT 1"),
            "cannot create function f: what stands behind AS is no query");
  EXPECT_EQ(add("SELECT nosuch(1)"), "cannot run the query: no such function: nosuch");
}

TEST_F(DatabaseTest, FunctionsThatCallOneAnotherWithoutEndAreStopped) {
  ASSERT_TRUE(database_->AddQueryFunction({"f", {}, "SELECT 1"}).ok());
  ASSERT_TRUE(database_->AddQueryFunction({"f", {}, "SELECT f()"}).ok());
  EXPECT_EQ(Query("SELECT f()"),
            "error: cannot run the query: cannot call function f: functions call one "
            "another too deep");
  ASSERT_TRUE(database_->AddQueryFunction({"f", {}, "SELECT 2"}).ok());
  EXPECT_EQ(Query("SELECT f()"), "2\n");
}

TEST_F(DatabaseTest, AnEndlessQueryEndsWhenItIsCancelled) {
  database_->cancel_flag() = true;
  EXPECT_EQ(
      Query("with recursive n(i) as (select 1 union all select i + 1 from n) select "
            "count(*) from n"),
      "error: cannot finish the query: it was cancelled");
  database_->cancel_flag() = false;
  EXPECT_EQ(Query("select 1"), "1\n");
}

TEST(DatabaseLimitTest, AQueryThatNeedsTooMuchMemoryFailsAndTheNextOneWorks) {
  Result<std::unique_ptr<Database>> database = Database::Create(uint64_t{16} << 20);
  ASSERT_TRUE(database.ok());
  EXPECT_TRUE(
      RunQuery(*database.value(),
               "with recursive n(i) as (select 1 union all select i + 1 from n limit "
               "1000) select length(group_concat(hex(zeroblob(100000)))) from n")
          .starts_with("error: "));
  EXPECT_EQ(RunQuery(*database.value(), "select 1"), "1\n");
  ASSERT_TRUE(Database::Create(uint64_t{256} << 20).ok());
}

TEST(DatabaseLimitTest, AQueryThatNeedsMoreMemoryThanIsAllowedIsToldHowToNeedLess) {
  Result<std::unique_ptr<Database>> database = Database::Create(uint64_t{1} << 20);
  ASSERT_TRUE(database.ok());
  EXPECT_EQ(
      RunQuery(*database.value(), "SELECT length(randomblob(20000000))"),
      "error: cannot finish the query: it needs more memory than is allowed; narrow "
      "it down with WHERE or LIMIT");
  // The limit is that of the process: the next one's goes before.
  ASSERT_TRUE(Database::Create(uint64_t{256} << 20).ok());
}

}  // namespace
}  // namespace heapprofd
