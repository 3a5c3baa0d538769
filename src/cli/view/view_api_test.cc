#include "cli/view/view_api.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include <nlohmann/json.hpp>

#include "cli/results/test_profile.h"
#include "export/gzip.h"
#include "export/pprof.h"
#include "query/dump_values.h"

namespace heapprofd {
namespace {

using nlohmann::json;

class ViewApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char place[] = "/tmp/view_api_test.XXXXXX";
    ASSERT_NE(mkdtemp(place), nullptr);
    directory_ = place;
    std::ofstream(directory_ / "stacks") << "main;f 10\nmain;g;h 30\n";
    auto file = OpenFiles({directory_ / "stacks"}, "view_api_test");
    ASSERT_TRUE(file.ok()) << file.status().message();
    file_ = std::move(file).value();
    api_ = std::make_unique<ViewApi>(*file_);
  }

  void TearDown() override { std::filesystem::remove_all(directory_); }

  WebAnswer Get(const std::string& path,
                std::map<std::string, std::string> parameters = {}) {
    return api_->Answer({.path = path, .parameters = std::move(parameters)});
  }

  WebAnswer Sql(const std::string& sql,
                std::map<std::string, std::string> parameters = {}) {
    return api_->Answer({.is_post = true,
                         .path = "api/sql",
                         .parameters = std::move(parameters),
                         .body = sql});
  }

  std::filesystem::path directory_;
  std::unique_ptr<OpenedFile> file_;
  std::unique_ptr<ViewApi> api_;
};

TEST_F(ViewApiTest, AnswersQueries) {
  const WebAnswer answer = Sql("SELECT live_size, 'a' AS b, NULL FROM heap_dump");
  EXPECT_EQ(answer.status, 200u);
  const json result = json::parse(answer.body);
  EXPECT_EQ(result["columns"], json({"live_size", "b", "NULL"}));
  EXPECT_EQ(result["rows"], json::array({{40, "a", nullptr}}));
  EXPECT_EQ(result["is_cut"], false);
}

TEST_F(ViewApiTest, RowsAndTextsHaveLimits) {
  constexpr char kMany[] =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
  const json few = json::parse(Sql(kMany, {{"limit", "3"}}).body);
  EXPECT_EQ(few["rows"], json::parse("[[1], [2], [3]]"));
  EXPECT_EQ(few["is_cut"], true);
  EXPECT_EQ(json::parse(Sql(kMany).body)["rows"].size(), 1000u);
  EXPECT_EQ(Sql(kMany, {{"limit", "10001"}}).status, 400u);
  EXPECT_EQ(Sql(kMany, {{"limit", "-1"}}).status, 400u);
  const json large =
      json::parse(Sql("SELECT hex(zeroblob(4000000)) FROM heap_profile_allocation a, "
                      "heap_profile_allocation b")
                      .body);
  EXPECT_EQ(large["is_cut"], true);
  EXPECT_EQ(large["rows"].size(), 2u);
}

TEST_F(ViewApiTest, WhatQueriesShowToBeWrongIsTold) {
  EXPECT_FALSE(json::parse(Sql("SELECT 1").body).contains("warnings"));
  file_->warnings.emplace_back("classes are missing");  // as a query does
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(json::parse(Sql("SELECT 1").body)["warnings"],
              json({"classes are missing"}));
}

TEST_F(ViewApiTest, NumbersAndNamesTakeRoomToo) {
  std::string columns = "1";
  for (int i = 1; i < 1000; ++i)
    columns += ", 1";
  const json numbers = json::parse(
      Sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT " +
              columns + " FROM n",
          {{"limit", "10000"}})
          .body);
  EXPECT_EQ(numbers["is_cut"], true);
  EXPECT_GT(numbers["rows"].size(), 500u);
  EXPECT_LT(numbers["rows"].size(), 2000u);
  std::string names = "a.*";
  for (int i = 1; i < 1000; ++i)
    names += ", a.*";
  const WebAnswer answer = Sql("WITH a AS (SELECT 1 AS \"" + std::string(60'000, 'x') +
                               "\") SELECT " + names + " FROM a");
  EXPECT_LT(answer.body.size(), size_t{20} << 20);
  EXPECT_EQ(json::parse(answer.body)["is_cut"], true);
}

TEST_F(ViewApiTest, MessagesAreWhole) {
  const json answer = json::parse(Sql("SELECT [one; two] FROM heap_dump").body);
  EXPECT_NE(answer["error"].get<std::string>().find("one; two"), std::string::npos);
  EXPECT_EQ(answer["hint"], "docs/sql.md and docs/view.md have what can be asked");
}

TEST_F(ViewApiTest, NumbersThatABrowserCannotHoldAreTexts) {
  EXPECT_EQ(json::parse(Sql("SELECT 9007199254740993, 1 << 53").body)["rows"],
            json::parse("[[\"9007199254740993\", 9007199254740992]]"));
  EXPECT_EQ(json::parse(Sql("SELECT -9223372036854775807 - 1").body)["rows"],
            json::parse("[[\"-9223372036854775808\"]]"));
}

TEST_F(ViewApiTest, NothingIsWrittenOrLoaded) {
  for (const char* const sql :
       {"ATTACH '/tmp/x' AS x", "CREATE TABLE t(a)", "INSERT INTO heap_dump VALUES (1)",
        "DELETE FROM process", "SELECT load_extension('/tmp/x.so')",
        "PRAGMA temp_store_directory = '/tmp'", "VACUUM INTO '/tmp/x'",
        "SELECT writefile('/tmp/x', 'y')", "SELECT readfile('/etc/passwd')",
        "nonsense"}) {
    const WebAnswer answer = Sql(sql);
    EXPECT_EQ(answer.status, 400u) << sql << answer.body;
    const json error = json::parse(answer.body);
    EXPECT_NE(error["error"], "");
    EXPECT_NE(error["hint"], "");
  }
}

TEST_F(ViewApiTest, AQueryThatRunsForEverIsCancelled) {
  file_->database->cancel_flag() = true;
  const WebAnswer answer = Sql("SELECT 1");
  EXPECT_EQ(answer.status, 503u);
  EXPECT_NE(answer.body.find("it was cancelled"), std::string::npos);
}

TEST_F(ViewApiTest, ListsTablesWithColumns) {
  const json answer = json::parse(Get("api/tables").body);
  for (const json& table : answer["tables"]) {
    if (table["name"] == "heap_dump") {
      EXPECT_EQ(table["columns"][0], "id");
      return;
    }
  }
  FAIL();
}

TEST_F(ViewApiTest, ExportsAsTheCommandDoes) {
  const WebAnswer answer = Get("api/export", {{"format", "folded"}});
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.body, "main;f 10\nmain;g;h 30\n");
  EXPECT_EQ(answer.file_name, "heap.folded");
  EXPECT_EQ(Get("api/export").status, 400u);
  EXPECT_EQ(Get("api/export", {{"format", "fold"}}).status, 400u);
  EXPECT_EQ(Get("api/export", {{"format", "csv"}, {"view", "x"}}).status, 400u);
  EXPECT_EQ(Get("api/export", {{"format", "csv"}, {"pid", "-1"}}).status, 400u);
  EXPECT_EQ(Get("api/export", {{"format", "csv"}, {"pid", "77"}}).status, 404u);
  EXPECT_EQ(Get("api/export", {{"format", "csv"}, {"heap", "\"\r\nX: y"}}).status, 404u);
}

TEST_F(ViewApiTest, ExportsTheProcessThatIsMeant) {
  std::ofstream(directory_ / "others") << "main;other 50\n";
  auto both = OpenFiles({directory_ / "stacks", directory_ / "others"}, "view_api_test");
  ASSERT_TRUE(both.ok()) << both.status().message();
  ViewApi api(*both.value());
  const auto get = [&](const std::string& upid) {
    return api.Answer(
        {.path = "api/export", .parameters = {{"format", "folded"}, {"upid", upid}}});
  };
  const json rows =
      json::parse(api.Answer({.is_post = true,
                              .path = "api/sql",
                              .body = "SELECT upid FROM heap_dump ORDER BY live_size"})
                      .body)["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(get(rows[0][0].dump()).body, "main;f 10\nmain;g;h 30\n");
  EXPECT_EQ(get(rows[1][0].dump()).body, "main;other 50\n");
  EXPECT_EQ(get("77").status, 404u);
  EXPECT_NE(get("77").body.find("no profile of upid 77"), std::string::npos);
  EXPECT_EQ(get("x").status, 400u);
}

TEST_F(ViewApiTest, OfManyLinesThoseWithMostAreTold) {
  TestProfile profile;
  for (uint32_t line = 1; line <= 12'000; ++line) {
    const CallsiteId callsite =
        profile.Add({"f" + std::to_string(line)}, line % 2 == 0 ? 1000 : line);
    profile.LineOf(callsite).file = "/none.cc";
    profile.LineOf(callsite).line = line;
  }
  std::ofstream(directory_ / "many.pb.gz")
      << Gzip(EncodePprof(profile.profile(), profile.dump(), {}));
  auto file = OpenFiles({directory_ / "many.pb.gz"}, "view_api_test");
  ASSERT_TRUE(file.ok()) << file.status().message();
  ViewApi api(*file.value());
  const json files = json::parse(api.Answer({.path = "api/sources"}).body)["files"];
  ASSERT_EQ(files.size(), 1u);
  const json source = json::parse(
      api.Answer({.path = "api/source", .parameters = {{"id", files[0]["id"].dump()}}})
          .body);
  EXPECT_EQ(source["count"], 12'000);
  ASSERT_EQ(source["lines"].size(), 10'000u);
  EXPECT_EQ(source["lines"][0][0], 2);           // the odd ones up to 999 have least
  EXPECT_EQ(source["lines"].back()[0], 11'999);  // of equal ones the last are left out
}

TEST_F(ViewApiTest, SummingLinesEndsWhereverItIs) {
  std::string stacks;
  std::string stack = "f";
  for (int depth = 0; depth < 1000; ++depth, stack += ";f")
    stacks += stack + " 1\n";
  std::ofstream(directory_ / "deep") << stacks;
  auto file = OpenFiles({directory_ / "deep"}, "view_api_test");
  ASSERT_TRUE(file.ok()) << file.status().message();
  const ImportedTrace& trace = file.value()->trace();
  CancelFlag cancelled = false;
  // When another thread gets its turn is not ours to say.
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    cancelled = false;
    std::atomic<bool> has_begun = false;
    std::thread other([&] {
      while (!has_begun)
        continue;
      cancelled = true;
    });
    has_begun = true;
    const bool is_done =
        SumByLine(trace, ValuesAt(trace, 0), ProfileView::kLiveSize, cancelled).ok();
    other.join();
    if (!is_done)
      return;
  }
  FAIL() << "it never noticed";
}

TEST_F(ViewApiTest, SourceIsOnlyWhatTheTraceNames) {
  EXPECT_EQ(json::parse(Get("api/sources").body)["count"], 0);
  EXPECT_EQ(Get("api/sources", {{"dump", "9"}}).status, 400u);
  EXPECT_EQ(Get("api/sources", {{"view", "x"}}).status, 400u);
  for (const char* const id : {"0", "1", "4294967295", ""})
    EXPECT_EQ(Get("api/source", {{"id", id}}).status, 404u) << id;
  EXPECT_NE(Get("api/source", {{"id", "1"}}).body.find("no stack of this dump names it"),
            std::string::npos);
  for (const char* const id : {"-1", "/etc/passwd", "4294967296", "0x1"})
    EXPECT_EQ(Get("api/source", {{"id", id}, {"name", "/etc/passwd"}}).status, 400u)
        << id;
}

TEST_F(ViewApiTest, OtherPathsAndMethodsHaveNoAnswer) {
  EXPECT_EQ(Get("api/").status, 404u);
  EXPECT_EQ(Get("api/../sql").status, 404u);
  EXPECT_EQ(Get("api/sql").status, 405u);
  EXPECT_EQ(api_->Answer({.is_post = true, .path = "api/export"}).status, 405u);
}

class ReadSourceTest : public ViewApiTest {};

TEST_F(ReadSourceTest, ReadsTextAndSaysWhyNot) {
  const auto write = [&](const std::string& text) {
    std::ofstream(directory_ / "a.cc") << text;
    return ReadSource(directory_ / "a.cc");
  };
  EXPECT_EQ(write("a\n\nb").value().lines, (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(write(std::string(1001, 'x')).value().lines[0],
            std::string(1000, 'x') + " …");
  EXPECT_EQ(write(std::string(1000, 'x')).value().lines[0], std::string(1000, 'x'));
  EXPECT_FALSE(write(std::string(50'000, '\n')).value().is_cut);
  EXPECT_TRUE(write(std::string(50'001, '\n')).value().is_cut);
  EXPECT_EQ(write(std::string(4 << 20, '\n')).value().lines.size(), 50'000u);
  EXPECT_FALSE(write(std::string("a\0b", 3)).ok());
  EXPECT_FALSE(write(std::string((4 << 20) + 1, 'x')).ok());
  EXPECT_FALSE(ReadSource(directory_).ok());
  EXPECT_FALSE(ReadSource(directory_ / "none").ok());
  EXPECT_FALSE(ReadSource("").ok());
  EXPECT_FALSE(ReadSource("/dev/zero").ok());
}

}  // namespace
}  // namespace heapprofd
