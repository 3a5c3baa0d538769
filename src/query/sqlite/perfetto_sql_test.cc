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

}  // namespace
}  // namespace heapprofd
