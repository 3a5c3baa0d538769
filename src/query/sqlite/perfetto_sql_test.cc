#include "query/sqlite/perfetto_sql.h"

#include <gtest/gtest.h>

#include <vector>

namespace heapprofd {
namespace {

std::vector<std::string> StatementsOf(std::string_view script) {
  std::vector<std::string> statements;
  for (ScriptPart part = SplitScript(script); !part.statement.empty();
       part = SplitScript(part.rest))
    statements.emplace_back(part.statement);
  return statements;
}

using Statements = std::vector<std::string>;

// What SQLite gets of the last one of these; several statements are joined.
Result<std::string> TranslateStatement(std::string_view script) {
  PerfettoSql language;
  std::string sql;
  for (ScriptPart part = SplitScript(script); !part.statement.empty();
       part = SplitScript(part.rest)) {
    HPD_TRY_ASSIGN(const Translation translation, language.Translate(part.statement));
    sql.clear();
    for (const std::string& statement : translation.statements)
      sql.append(sql.empty() ? "" : "; ").append(statement);
    if (translation.function)
      sql = translation.function->select;
  }
  return sql;
}

TEST(PerfettoSqlTest, AScriptIsSplitAtSemicolonsOutsideTextsAndComments) {
  EXPECT_EQ(StatementsOf("select 1; select 2"), (Statements{"select 1", "select 2"}));
  EXPECT_EQ(StatementsOf(" ; ;-- a;b\n/* ; */ select ';' , \"a;b\", `;`, [;]; "),
            (Statements{"select ';' , \"a;b\", `;`, [;]"}));
  EXPECT_EQ(StatementsOf("select 'it''s;'"), (Statements{"select 'it''s;'"}));
  EXPECT_EQ(StatementsOf("-- nothing"), Statements{});
  EXPECT_EQ(StatementsOf("select 'open; end"), (Statements{"select 'open; end"}));
}

TEST(PerfettoSqlTest, KnownModulesNeedNoSql) {
  for (const char* statement :
       {"INCLUDE PERFETTO MODULE callstacks.stack_profile",
        "include perfetto\n module android.memory.heap_profile.summary_tree ",
        "INCLUDE PERFETTO MODULE android.memory.*"}) {
    const Result<std::string> sql = TranslateStatement(statement);
    ASSERT_TRUE(sql.ok()) << sql.status().message();
    EXPECT_EQ(sql.value(), "");
  }
}

TEST(PerfettoSqlTest, AnUnknownModuleNamesThoseThereAre) {
  const Result<std::string> sql = TranslateStatement("INCLUDE PERFETTO MODULE no.such");
  ASSERT_FALSE(sql.ok());
  EXPECT_NE(sql.status().message().find("callstacks.stack_profile"), std::string::npos);
  EXPECT_FALSE(TranslateStatement("INCLUDE me").ok());
}

TEST(PerfettoSqlTest, MacrosAreExpandedAlsoInsideEachOther) {
  const Result<std::string> sql = TranslateStatement(
      "select * from _callstacks_self_to_cumulative!(_callstacks_for_callsites!(t))");
  ASSERT_TRUE(sql.ok());
  EXPECT_EQ(sql.value().find('!'), std::string::npos);
  EXPECT_NE(sql.value().find("FROM t"), std::string::npos);
}

TEST(PerfettoSqlTest, WhatLooksLikeAMacroInATextIsNone) {
  const std::string statement = "select 'a!(b)', x != (1), \"m!(c)\" -- n!(\n";
  EXPECT_EQ(TranslateStatement(statement).value(), statement);
}

TEST(PerfettoSqlTest, BrokenMacrosAreErrors) {
  const std::string missing =
      "cannot expand macro _callstacks_for_callsites!: its closing parenthesis is "
      "missing";
  for (const char* statement : {"select * from _callstacks_for_callsites!(t",
                                "select * from _callstacks_for_callsites!((t)"})
    EXPECT_EQ(TranslateStatement(statement).status().message(), missing);
  EXPECT_TRUE(TranslateStatement("select * from nosuch!(t)")
                  .status()
                  .message()
                  .starts_with("cannot expand macro nosuch!: there is none of this name; "
                               "these are: _android"));
}

TEST(PerfettoSqlTest, EndlesslyNestedMacrosAreRefused) {
  std::string statement = "t";
  for (int i = 0; i < 100; ++i)
    statement = "_callstacks_for_callsites!(" + statement + ")";
  EXPECT_EQ(TranslateStatement(statement).status().message(),
            "cannot expand the macros of the query: they are nested too deep");
}

TEST(PerfettoSqlTest, TablesAndViewsAreViews) {
  for (const char* statement :
       {"CREATE PERFETTO TABLE t AS SELECT 1 AS a",
        "create perfetto view t(a INT, b JOINID(x.y)) as SELECT 1 AS a",
        "CREATE /* new */ PERFETTO TABLE t -- one\n AS SELECT 1 AS a"})
    EXPECT_EQ(TranslateStatement(statement).value(),
              "CREATE TEMP VIEW t AS SELECT 1 AS a");
  EXPECT_EQ(TranslateStatement("CREATE OR REPLACE PERFETTO TABLE t AS SELECT 2").value(),
            "DROP VIEW IF EXISTS t; CREATE TEMP VIEW t AS SELECT 2");
  EXPECT_EQ(TranslateStatement("CREATE PERFETTO INDEX i ON t(a)").value(), "");
  EXPECT_EQ(TranslateStatement("DROP PERFETTO INDEX i ON t").value(), "");
  EXPECT_EQ(TranslateStatement("CREATE VIEW v AS SELECT 1").value(),
            "CREATE VIEW v AS SELECT 1");
}

TEST(PerfettoSqlTest, OwnMacrosTakeTextsForTheirArguments) {
  const std::string two =
      "CREATE PERFETTO MACRO two(a Expr, b TableOrSubquery) RETURNS TableOrSubquery AS "
      "(SELECT $a, '$a' FROM $b);";
  EXPECT_EQ(TranslateStatement(two + "SELECT * FROM two!(f(1, 2), t)").value(),
            "SELECT * FROM (SELECT f(1, 2), '$a' FROM  t)");
  EXPECT_EQ(TranslateStatement(two + "SELECT * FROM two!(1, two!(2, t))").value(),
            "SELECT * FROM (SELECT 1, '$a' FROM  (SELECT 2, '$a' FROM  t))");
  EXPECT_EQ(TranslateStatement("CREATE PERFETTO MACRO one() RETURNS Expr AS 1;"
                               "SELECT one!() + $x")
                .value(),
            "SELECT 1 + $x");
  EXPECT_EQ(TranslateStatement(two + "SELECT * FROM two!(1)").status().message(),
            "cannot expand macro two!: it has 1 arguments, and 2 are needed");
  EXPECT_EQ(TranslateStatement(two + two).status().message(),
            "cannot create macro two: there is one of this name; use CREATE OR REPLACE");
}

TEST(PerfettoSqlTest, MacrosOfMacrosEnd) {
  const std::string endless =
      "CREATE PERFETTO MACRO a(x Expr) RETURNS Expr AS a!($x);"
      "SELECT a!(1)";
  EXPECT_EQ(TranslateStatement(endless).status().message(),
            "cannot expand the macros of the query: they are nested too deep");
  std::string wide = "CREATE PERFETTO MACRO m0() RETURNS Expr AS ;";
  for (int i = 1; i <= 10; ++i) {
    const std::string inner = "m" + std::to_string(i - 1) + "!()";
    wide += "CREATE PERFETTO MACRO m" + std::to_string(i) + "() RETURNS Expr AS ";
    for (int repeat = 0; repeat < 10; ++repeat)
      wide += inner;
    wide += ";";
  }
  EXPECT_EQ(TranslateStatement(wide + "SELECT m10!()").status().message(),
            "cannot expand the macros of the query: the result is too long");
}

TEST(PerfettoSqlTest, FunctionsAreQueriesWithArguments) {
  PerfettoSql language;
  const Result<Translation> translation = language.Translate(
      "CREATE PERFETTO FUNCTION plus(a INT, b ID(t.id)) RETURNS JOINID(t.id) AS "
      "SELECT $a + $b");
  ASSERT_TRUE(translation.ok()) << translation.status().message();
  ASSERT_TRUE(translation.value().function.has_value());
  EXPECT_EQ(translation.value().function->name, "plus");
  EXPECT_EQ(translation.value().function->parameters, (Statements{"a", "b"}));
  EXPECT_EQ(translation.value().function->select, "SELECT $a + $b");
  EXPECT_EQ(language.Translate("CREATE PERFETTO FUNCTION plus() RETURNS INT AS SELECT 1")
                .status()
                .message(),
            "cannot create function plus: there is one of this name; use CREATE OR "
            "REPLACE");
}

TEST(PerfettoSqlTest, WhatIsNoFormOfCreateIsAnError) {
  EXPECT_EQ(TranslateStatement("CREATE PERFETTO TRIGGER t").status().message(),
            "cannot understand CREATE PERFETTO: what follows is none of TABLE, VIEW, "
            "FUNCTION, MACRO and INDEX");
  for (const char* statement :
       {"CREATE PERFETTO TABLE", "CREATE PERFETTO TABLE t SELECT 1",
        "CREATE PERFETTO VIEW t(a INT AS SELECT 1"})
    EXPECT_EQ(TranslateStatement(statement).status().message(),
              "cannot understand CREATE PERFETTO TABLE or VIEW: its form is CREATE "
              "PERFETTO TABLE name AS SELECT ...");
  for (const char* statement :
       {"CREATE PERFETTO FUNCTION", "CREATE PERFETTO FUNCTION f AS SELECT 1",
        "CREATE PERFETTO FUNCTION f( RETURNS INT AS SELECT 1",
        "CREATE PERFETTO FUNCTION f(,) RETURNS INT AS SELECT 1",
        "CREATE PERFETTO FUNCTION f() RETURNS AS SELECT 1",
        "CREATE PERFETTO MACRO m(a Expr) AS $a"})
    EXPECT_EQ(TranslateStatement(statement).status().message(),
              "cannot understand CREATE PERFETTO FUNCTION or MACRO: its form is CREATE "
              "PERFETTO FUNCTION name(argument INT) RETURNS INT AS SELECT $argument + 1");
  EXPECT_EQ(
      TranslateStatement("CREATE PERFETTO FUNCTION f() RETURNS TABLE(a INT) AS SELECT 1")
          .status()
          .message(),
      "cannot create function f: functions that return a table are not there; use CREATE "
      "PERFETTO MACRO, whose text may be a query in parentheses");
}

}  // namespace
}  // namespace heapprofd
