// What the live view shows, and what its keys do.
#include "cli/top/top_page.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/results/test_profile.h"
#include "cli/top/live_trace.h"
#include "trace/trace_writer.h"

namespace heapprofd {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr ScreenSize kSize = {.rows = 12, .columns = 80};

// A recording that goes on, in memory.
class TopPageTest : public testing::Test {
 protected:
  TopPageTest()
      : fd_(memfd_create("trace", MFD_CLOEXEC)),
        writer_(TraceFile(ScopedFd(dup(fd_.get())), "memory")),
        trace_(fd_.get()) {
    EXPECT_TRUE(writer_.WriteHeader("").ok());
    EXPECT_TRUE(writer_.WriteProcessTree({&test_.profile().process, 1}).ok());
  }

  // So that `bytes` are live there, in blocks of ten.
  void Set(const std::string& function, double bytes) {
    const auto [known, is_new] = callsites_.try_emplace(function, 0);
    if (is_new)
      known->second = test_.Add({function, "main"}, 0);
    CallsiteTotals& totals = test_.dump().callsites[known->second];
    const double more = bytes - totals.live().bytes;
    (more > 0 ? totals.allocated : totals.freed) +=
        {.bytes = std::abs(more), .count = std::abs(more) / 10};
  }

  void Dump(uint64_t seconds) {
    test_.dump().end_ns = seconds * kSecond;
    EXPECT_TRUE(writer_.WriteDump(test_.profile(), 0, DumpFlags()).ok());
    EXPECT_TRUE(writer_.Finish().ok());
    const Result<bool> has_more = trace_.Update();
    EXPECT_TRUE(has_more.ok() && has_more.value());
    rows_.Look(trace_.processes(), trace_.latest_ns());
    page_.Show(rows_, {.what = "program", .seconds = 5, .total = rows_.total()});
  }

  std::string Shown() {
    std::string text;
    for (const std::string& line : page_.Lines(kSize))
      text += line + "\n";
    return text;
  }

  std::vector<std::string> Functions(LiveOrder order, const std::string& filter = "") {
    std::vector<std::string> names;
    for (const LiveRow& row : rows_.Sorted(order, filter))
      names.push_back(row.function);
    return names;
  }

  ScopedFd fd_;
  TraceWriter writer_;
  TestProfile test_;
  std::map<std::string, CallsiteId> callsites_;
  LiveTrace trace_;
  LiveRows rows_;
  TopPage page_{{.use_unicode = true, .use_color = false}};
};

using Names = std::vector<std::string>;

TEST_F(TopPageTest, ChangesAreThoseBetweenTwoLooksHoweverOftenItIsDumped) {
  Set("Cache", 1000);
  Set("Load", 5000);
  Dump(1);
  for (uint64_t second = 2; second < 50; ++second)
    Dump(second);
  Set("Cache", 3000);
  Set("Load", 4000);
  Dump(52);
  const std::vector<LiveRow> rows = rows_.Sorted(LiveOrder::kLive, "");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].function, "Load");
  EXPECT_DOUBLE_EQ(rows[0].figures.live, 4000);
  EXPECT_DOUBLE_EQ(rows[0].figures.change, -1000);
  EXPECT_DOUBLE_EQ(rows[0].figures.per_second, 0);
  EXPECT_DOUBLE_EQ(rows[1].figures.change, 2000);
  EXPECT_NEAR(rows[1].figures.per_second, 2000 / 3.0, 1e-6);
  EXPECT_DOUBLE_EQ(rows_.total().live, 7000);
  EXPECT_DOUBLE_EQ(rows_.total().objects, 704);  // TestProfile adds two to each
  ASSERT_EQ(trace_.processes().size(), 1u);
  EXPECT_EQ(trace_.processes()[0]->profile().heaps.size(), 1u);
}

TEST_F(TopPageTest, EveryOrderHasItsLeader) {
  Set("Cache", 1000);
  Set("Load", 5000);
  Dump(1);
  Set("Cache", 3000);
  Dump(2);
  EXPECT_EQ(Functions(LiveOrder::kLive), (Names{"Load", "Cache"}));
  EXPECT_EQ(Functions(LiveOrder::kObjects), (Names{"Load", "Cache"}));
  EXPECT_EQ(Functions(LiveOrder::kChange), (Names{"Cache", "Load"}));
  EXPECT_EQ(Functions(LiveOrder::kPerSecond), (Names{"Cache", "Load"}));
  EXPECT_EQ(Functions(LiveOrder::kLive, "cAc"), Names{"Cache"});
}

TEST_F(TopPageTest, KeysChooseOrderRowStackAndFilter) {
  Set("Cache", 1000);
  Set("Load", 5000);
  Dump(1);
  EXPECT_NE(Shown().find("*live"), std::string::npos);
  page_.Press("o");
  EXPECT_TRUE(page_.is_outdated());
  EXPECT_NE(Shown().find("*objects"), std::string::npos);
  page_.Press("\033[B");
  EXPECT_NE(Shown().find("> "), std::string::npos);
  EXPECT_LT(Shown().find("Load"), Shown().find("> "));
  page_.Press("\n");
  EXPECT_NE(Shown().find("The largest stack of Cache"), std::string::npos);
  EXPECT_NE(Shown().find("  main"), std::string::npos);
  page_.Press("x");
  for (const char* key : {"f", "L", "o", "z", "\x7f"})
    page_.Press(key);
  EXPECT_NE(Shown().find("filter: Lo"), std::string::npos);
  page_.Press("\n");
  EXPECT_EQ(page_.filter(), "Lo");
  page_.Press(" ");
  EXPECT_TRUE(page_.is_paused());
  EXPECT_EQ(page_.Press("s"), TopRequest::kSnapshot);
  EXPECT_EQ(page_.Press("q"), TopRequest::kQuit);
}

TEST_F(TopPageTest, TheScreenIsFilledAndNotExceeded) {
  for (int i = 0; i < 100; ++i)
    Set("function" + std::to_string(i), 1000 + i);
  Dump(1);
  for (const size_t rows : {1u, 2u, 5u, 6u, 30u}) {
    page_.Press("\033[6~");
    EXPECT_EQ(page_.Lines({.rows = rows, .columns = 10}).size(), rows);
  }
}

TEST_F(TopPageTest, NamesDoNotSteerTheTerminal) {
  Set("evil\033[2J\x9b\u202e\u00e9", 1000);
  Dump(1);
  page_.Press("\n");
  EXPECT_EQ(Shown().find('\033'), std::string::npos);
  EXPECT_NE(Shown().find("evil?[2J??\u00e9"), std::string::npos) << Shown();
  TopPage ascii({.use_unicode = false, .use_color = false});
  ascii.Show(rows_, {.what = "program", .seconds = 0, .total = {}});
  for (const std::string& line : ascii.Lines(kSize)) {
    EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](char c) {
      return c >= ' ' && c <= '~';
    })) << line;
  }
}

TEST(KeysOfTest, SequencesAreOneKey) {
  EXPECT_EQ(KeysOf("q\033[A\033OBx\033[5~\033"),
            (Names{"q", "\033[A", "\033[B", "x", "\033[5~", "\033"}));
}

}  // namespace
}  // namespace heapprofd
