// What the live view shows, and what its keys do.
#include "cli/top/top_page.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <locale.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/test_limits.h"
#include "cli/results/test_profile.h"
#include "cli/text_layout.h"
#include "cli/top/live_names.h"
#include "cli/top/live_trace.h"
#include "cli/top/recorder_process.h"
#include "cli/top/snapshot.h"
#include "symbolize/elf_identity.h"
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
        writer_(TraceFile(ScopedFd(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0)), "memory")),
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
    rows_.LookAtThreads(trace_.Threads());
    page_.Show(
        rows_,
        {.what = "program", .seconds = 5, .has_figures = true, .total = rows_.total()});
  }

  std::string Shown() {
    std::string text;
    for (const std::string& line : page_.Lines(kSize))
      text += line + "\n";
    return text;
  }

  std::vector<std::string> Functions(LiveOrder order, const std::string& filter = "") {
    std::vector<std::string> names;
    for (const LiveRow& row : rows_.Sorted(LiveKind::kFunctions, order, filter))
      names.push_back(row.name);
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

// Any code of this program.
void BytesOfCode() {}

TEST_F(TopPageTest, ChangesAreThoseBetweenTwoLooksHoweverOftenItIsDumped) {
  Set("Cache", 1000);
  Set("Load", 5000);
  Dump(1);
  for (uint64_t second = 2; second < 50; ++second)
    Dump(second);
  Set("Cache", 3000);
  Set("Load", 4000);
  Dump(52);
  const std::vector<LiveRow> rows =
      rows_.Sorted(LiveKind::kFunctions, LiveOrder::kLive, "");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "Load");
  EXPECT_DOUBLE_EQ(rows[0].figures.live, 4000);
  EXPECT_DOUBLE_EQ(rows[0].figures.change, -1000);
  EXPECT_EQ(rows[0].figures.per_second, 0.0);
  EXPECT_DOUBLE_EQ(rows[1].figures.change, 2000);
  EXPECT_NEAR(rows[1].figures.per_second.value_or(0), 2000 / 3.0, 1e-6);
  EXPECT_DOUBLE_EQ(rows_.total().live, 7000);
  EXPECT_DOUBLE_EQ(rows_.total().objects, 704);  // TestProfile adds two to each
  ASSERT_EQ(trace_.processes().size(), 1u);
  EXPECT_EQ(trace_.processes()[0]->profile().heaps.size(), 1u);
}

TEST_F(TopPageTest, OfTheFirstLookNoPaceIsTold) {
  Set("Cache", 1000);
  Dump(1);
  EXPECT_EQ(rows_.total().per_second, std::nullopt);
  EXPECT_EQ(Shown().find("allocated "), std::string::npos) << Shown();
  EXPECT_NE(Shown().find("            -"), std::string::npos) << Shown();
  Dump(2);
  EXPECT_NE(Shown().find("allocated 0 B/s"), std::string::npos) << Shown();
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

TEST_F(TopPageTest, ThreadsAreShownByTheirOwnKey) {
  test_.profile().threads = {{}, {12, "worker"}, {13, ""}};
  test_.dump().threads.resize(3);
  CallsiteTotals& worker = test_.dump().threads[1];
  worker.allocated = {.bytes = 5000, .count = 5};
  worker.freed = {.bytes = 1000, .count = 1};
  test_.dump().threads[2].allocated = {.bytes = 300, .count = 3};
  Set("Cache", 1000);
  Dump(1);
  worker.allocated = {.bytes = 9000, .count = 9};
  Dump(3);
  page_.Press("h");
  EXPECT_TRUE(page_.is_outdated());
  page_.Show(rows_, {.what = "program", .seconds = 5, .has_figures = true, .total = {}});
  EXPECT_NE(Shown().find("  thread\n"), std::string::npos) << Shown();
  EXPECT_NE(Shown().find("h functions"), std::string::npos);
  const std::vector<LiveRow> rows =
      rows_.Sorted(LiveKind::kThreads, LiveOrder::kLive, "");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "worker (thread 12)");
  EXPECT_EQ(rows[1].name, "thread 13");
  EXPECT_DOUBLE_EQ(rows[0].figures.live, 8000);
  EXPECT_DOUBLE_EQ(rows[0].figures.change, 4000);
  EXPECT_EQ(rows[0].figures.per_second, 2000.0);
  EXPECT_DOUBLE_EQ(rows[0].figures.objects, 8);
}

// Their allocations are not told apart by stack.
TEST_F(TopPageTest, ThreadsHaveNoStacks) {
  test_.profile().threads = {{}, {12, "worker"}};
  test_.dump().threads.resize(2);
  test_.dump().threads[1].allocated = {.bytes = 5000, .count = 5};
  Set("Cache", 1000);
  Dump(1);
  EXPECT_NE(Shown().find("Enter stack"), std::string::npos);
  page_.Press("h");
  page_.Press("\n");  // in the same turn
  page_.Show(rows_, {.what = "program", .seconds = 5, .has_figures = true, .total = {}});
  EXPECT_NE(Shown().find("worker (thread 12)"), std::string::npos) << Shown();
  EXPECT_EQ(Shown().find("Enter stack"), std::string::npos);
}

// In containers of their own even their ids may be the same.
TEST_F(TopPageTest, ThreadsOfOneNameAreChosenOneByOne) {
  const std::vector<LiveThread> threads = {
      {.upid = 1, .utid = 1, .name = "worker (thread 12)", .end_ns = 1, .live = 5000},
      {.upid = 2, .utid = 2, .name = "worker (thread 12)", .end_ns = 1, .live = 3000},
      {.upid = 2, .utid = 3, .name = "other (thread 13)", .end_ns = 1, .live = 1000}};
  rows_.LookAtThreads(threads);
  page_.Press("h");
  page_.Show(rows_, {.what = "program", .seconds = 5, .has_figures = true, .total = {}});
  const auto chosen = [this] {
    const std::string text = Shown();
    const size_t at = text.find("\n> ");
    return std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n');
  };
  const auto first = chosen();
  page_.Press("j");
  EXPECT_EQ(chosen(), first + 1) << Shown();
  page_.Press("j");
  EXPECT_EQ(chosen(), first + 2) << Shown();
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

TEST_F(TopPageTest, LinesAreAsWideAsTheScreen) {
  ASSERT_NE(setlocale(LC_CTYPE, "C.UTF-8"), nullptr);
  std::string name;
  for (int i = 0; i < 40; ++i)
    name += "\u6f22";
  Set(name, 1000);
  Dump(1);
  for (const size_t columns : {1u, 20u, 80u, 100u, 300u}) {
    for (const char* key : {"\n", "x"}) {
      page_.Press(key);
      for (const std::string& line : page_.Lines({.rows = 12, .columns = columns}))
        EXPECT_LE(Columns(line), columns) << line;
    }
  }
  EXPECT_NE(page_.Lines({.rows = 12, .columns = 300})[4].find(name), std::string::npos);
}

TEST_F(TopPageTest, NothingIsSaidToBeLiveBeforeItIsKnown) {
  page_.Show(rows_, {});
  EXPECT_NE(Shown().find("no figures have come yet"), std::string::npos);
  EXPECT_EQ(Shown().find("nothing is live"), std::string::npos);
  Dump(1);
  EXPECT_NE(Shown().find("nothing is live"), std::string::npos);
}

TEST_F(TopPageTest, WhoHasEndedHoldsNothing) {
  TestProfile other;
  other.profile().process.pid = 12;
  other.Add({"Compile", "main"}, 9000);
  const auto dump = [&](TestProfile& profile, uint64_t id, uint64_t second, bool ends) {
    profile.dump().end_ns = second * kSecond + id;
    const Status status =
        writer_.WriteDump(profile.profile(), id, {.disconnected = ends});
    EXPECT_TRUE(status.ok()) << status.message();
  };
  const auto look = [&] {
    EXPECT_TRUE(writer_.Finish().ok());
    EXPECT_TRUE(trace_.Update().ok());
    rows_.Look(trace_.processes(), trace_.latest_ns());
  };
  EXPECT_TRUE(writer_.WriteProcessTree({&other.profile().process, 1}).ok());
  Set("Cache", 1000);
  dump(test_, 0, 1, false);
  dump(other, 1, 1, false);
  look();
  EXPECT_EQ(Functions(LiveOrder::kLive), (Names{"Compile", "Cache"}));
  dump(other, 1, 2, true);
  dump(test_, 0, 2, false);
  look();
  EXPECT_EQ(Functions(LiveOrder::kLive), Names{"Cache"});
  EXPECT_DOUBLE_EQ(rows_.total().live, 1000);
  EXPECT_EQ(trace_.processes().size(), 1u);
  dump(test_, 0, 3, true);  // the last one: what it held at its end
  look();
  EXPECT_EQ(Functions(LiveOrder::kLive), Names{"Cache"});
}

TEST_F(TopPageTest, WhoRanTogetherAtTheEndIsShownTogether) {
  TestProfile other;
  other.profile().process.pid = 12;
  other.dump().end_ns = 2 * kSecond;
  other.Add({"Compile", "main"}, 9000);
  EXPECT_TRUE(writer_.WriteProcessTree({&other.profile().process, 1}).ok());
  EXPECT_TRUE(writer_.WriteDump(other.profile(), 1, {.disconnected = true}).ok());
  Set("Cache", 1000);
  test_.dump().end_ns = 3 * kSecond;
  EXPECT_TRUE(writer_.WriteDump(test_.profile(), 0, {.disconnected = true}).ok());
  EXPECT_TRUE(writer_.Finish().ok());
  EXPECT_TRUE(trace_.Update().ok());
  EXPECT_EQ(trace_.processes().size(), 2u);
}

// To group rows by names costs as much as a look, and large programs' names come in many
// parts.
TEST_F(TopPageTest, NamesAreNewsAtFirstOnceASecondAndAtLast) {
  constexpr uint64_t kTurnNs = kSecond / 10;
  Dl_info info{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&BytesOfCode), &info), 0);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const ScopedFd file(open(program.c_str(), O_RDONLY | O_CLOEXEC));
  const std::optional<ElfIdentity> identity = IdentifyElf(file.get());
  ASSERT_TRUE(identity.has_value());
  const MappingId mapping = test_.AddMapping(program);
  test_.profile().mappings[mapping].build_id = identity->build_id;
  const auto begin = reinterpret_cast<uintptr_t>(&BytesOfCode) -
                     reinterpret_cast<uintptr_t>(info.dli_fbase);
  for (uint64_t i = 0; i < 12'500; ++i)
    test_.AddUnnamed(mapping, begin + i, 10);
  Dump(1);
  LiveNames names{SymbolizeOptions()};
  std::string news;
  for (uint64_t turn = 0; turn == 0 || names.HasMore(trace_.processes()); ++turn) {
    names.Find(trace_.processes());
    const bool is_news = names.TakeNews(trace_.processes(), kSecond + turn * kTurnNs);
    news += is_news ? '!' : '.';
  }
  EXPECT_EQ(news, "!.........!.!");
  EXPECT_FALSE(names.TakeNews(trace_.processes(), 100 * kSecond));
}

TEST_F(TopPageTest, OnANarrowScreenNamesHaveRoomAndFiguresGo) {
  Set("LoadTheWholeCatalogue", 5000);
  Dump(1);
  const auto text_of = [this](size_t columns) {
    std::string text;
    for (const std::string& line : page_.Lines({.rows = 12, .columns = columns}))
      text += line + "\n";
    return text;
  };
  EXPECT_NE(text_of(80).find("objects  function"), std::string::npos);
  EXPECT_NE(text_of(60).find("*live       change  function"), std::string::npos)
      << text_of(60);
  EXPECT_NE(text_of(60).find("LoadTheWholeCatalogue\n"), std::string::npos);
  page_.Press("o");
  page_.Show(rows_, {.what = "program", .has_figures = true, .total = rows_.total()});
  EXPECT_NE(text_of(60).find("live     *objects  function"), std::string::npos)
      << text_of(60);
}

class SnapshotTest : public TopPageTest {
 protected:
  SnapshotTest() : before_(std::filesystem::current_path()) {
    std::string place = testing::TempDir() + "/snapshot.XXXXXX";
    EXPECT_NE(mkdtemp(place.data()), nullptr);
    directory_ = place;
    std::filesystem::current_path(directory_);
    Set("Cache", 1000);
    Dump(1);
  }

  ~SnapshotTest() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(directory_);
  }

  std::string Name(int number) const {
    const pid_t shown = trace_.processes()[0]->profile().process.pid;
    EXPECT_NE(shown, getpid());
    return "heap-" + std::to_string(shown) + "-" + std::to_string(number) + ".trace";
  }

  std::filesystem::path before_;
  std::filesystem::path directory_;
};

TEST_F(SnapshotTest, LinksAreNotFollowed) {
  std::filesystem::create_symlink("elsewhere", Name(1));
  const Result<std::string> name = WriteSnapshot(trace_.processes());
  ASSERT_TRUE(name.ok()) << name.status().message();
  EXPECT_EQ(name.value(), Name(2));
  EXPECT_GT(std::filesystem::file_size(Name(2)), 100u);
  EXPECT_FALSE(std::filesystem::exists("elsewhere"));
}

TEST_F(SnapshotTest, ThereIsAWholeOneOrNone) {
  const auto before = signal(SIGXFSZ, SIG_IGN);
  {
    const ScopedLimit small(RLIMIT_FSIZE, 100);
    EXPECT_FALSE(WriteSnapshot(trace_.processes()).ok());
  }
  signal(SIGXFSZ, before);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(SnapshotTest, WithoutADescriptorForTheWriterTheCauseIsSaid) {
  if (!kMayRunOutOfDescriptors)
    GTEST_SKIP();
  ScopedFd directory(open(".", O_PATH | O_CLOEXEC));
  ScopedFd file(open(".", O_PATH | O_CLOEXEC));
  const auto enough = static_cast<rlim_t>(std::max(directory.get(), file.get())) + 1;
  directory.reset();
  file.reset();
  const ScopedLimit two(RLIMIT_NOFILE, enough);
  const Result<std::string> name = WriteSnapshot(trace_.processes());
  ASSERT_FALSE(name.ok());
  const std::string& message = name.status().message();
  EXPECT_EQ(message.find("cannot write trace " + Name(1) + ": Too many open files"), 0u)
      << message;
}

TEST(RecorderProcessTest, WhoAsksForADumpTooEarlyEndsNobody) {
  Options options;
  options.command = {"/no/such/program"};
  Result<RecorderProcess> recorder = RecorderProcess::Start(options, false);
  ASSERT_TRUE(recorder.ok()) << recorder.status().message();
  recorder.value().RequestDump();
  recorder.value().AwaitEnd();
  EXPECT_NE(recorder.value().exit_code(), 128 + SIGUSR1);
}

TEST_F(TopPageTest, NamesDoNotSteerTheTerminal) {
  Set("evil\033[2J\x9b\u202e\u00e9", 1000);
  Dump(1);
  page_.Press("\n");
  EXPECT_EQ(Shown().find('\033'), std::string::npos);
  EXPECT_NE(Shown().find("evil?[2J??\u00e9"), std::string::npos) << Shown();
  TopPage ascii({.use_unicode = false, .use_color = false});
  ascii.Show(rows_, {.what = "program", .seconds = 0, .has_figures = true, .total = {}});
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
