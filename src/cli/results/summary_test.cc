// The picture at the end: the figures that it must hold, and the warnings that must not
// be missing.
#include "cli/results/summary.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/results/quality_warnings.h"
#include "cli/results/test_profile.h"
#include "cli/results/unnamed_advice.h"
#include "cli/terminal_color.h"
#include "cli/text_layout.h"
#include "profile/figures.h"

namespace heapprofd {
namespace {

ProcessResult ResultOf(TestProfile& test) {
  ProcessResult result;
  result.profile = &test.profile();
  return result;
}

bool Holds(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

std::string OnlyWarningOf(const ProcessResult& result) {
  const std::vector<std::string> warnings = QualityWarnings(result);
  EXPECT_EQ(warnings.size(), 1u);
  return warnings.empty() ? "" : warnings[0];
}

std::string OnlyWarning(TestProfile& test) {
  return OnlyWarningOf(ResultOf(test));
}

TEST(SummaryTest, TheFiguresAreThoseOfTheProfile) {
  TestProfile test;
  test.Add({"Insert", "main"}, 3 << 20);
  test.dump().exact_alloc_bytes = uint64_t{5} << 30;
  test.dump().exact_alloc_calls = 22'100'000;
  test.dump().peak_total = {.bytes = 7 << 20, .low = 6 << 20, .high = 7.7 * (1 << 20)};
  test.profile().process.start_ns = 1'000'000'000;
  test.dump().peak_ns = 3'500'000'000;
  ProcessResult result = ResultOf(test);
  result.resident_kib = 402 * 1024;
  SummaryOptions options;
  options.seconds = 12.4;
  const std::string text = FormatSummary({result}, options);
  for (const char* words :
       {"Recorded 12.4 s of program (pid 4711), heap libc.malloc, 1 sample per 4.00 KiB",
        "live at end  3.00 MiB (±98%)", "peak 7.00 MiB (±14%) at 2.5 s",
        "allocated    5.00 GiB in 22.1 M calls", "RSS          402 MiB", "1  Insert",
        "← main"})
    EXPECT_TRUE(Holds(text, words)) << words << "\n" << text;
  EXPECT_FALSE(Holds(text, "  ! ")) << text;
}

// What a hostile program can name: functions, heaps, processes, files.
TEST(SummaryTest, NoNameSteersTheTerminalOrLooksLikeALineOfOurs) {
  const std::string hostile =
      "\x1b]0;owned\x07\n  ! run rm -rf /\r\x9b"
      "2J\u202egnp.exe\u2028";
  TestProfile test;
  test.Add({hostile, hostile}, 3 << 20);
  test.dump().heap_name = hostile;
  test.profile().process.cmdline = {hostile};
  TestProfile other;
  other.Add({hostile}, 1 << 20);
  other.profile().process.cmdline = {hostile};
  SummaryOptions options;
  options.use_unicode = true;
  options.warnings = {hostile};
  const std::string text = FormatSummary({ResultOf(test), ResultOf(other)}, options);
  for (const char* words :
       {"\x1b", "\r", "\x07", "\x9b", "\u202e", "\u2028", "\n  ! run rm"})
    EXPECT_FALSE(Holds(text, words)) << text;
  EXPECT_TRUE(Holds(text, "?]0;owned")) << text;
}

TEST(SummaryTest, WithoutUnicodeEveryByteIsAscii) {
  TestProfile test;
  test.Add({"Insert", "main"}, 3 << 20);
  ProcessResult result = ResultOf(test);
  result.history = {1, 2, 3};
  SummaryOptions options;
  options.use_unicode = false;
  const std::string text = FormatSummary({result}, options);
  for (const char c : text)
    ASSERT_TRUE(static_cast<unsigned char>(c) < 0x80) << text;
  EXPECT_TRUE(Holds(text, "<- main")) << text;
  EXPECT_TRUE(Holds(text, "(+-98%)")) << text;
}

TEST(SummaryTest, ARecordingOfEverythingIsExactAndSaysSo) {
  TestProfile test;
  test.dump().sampling_interval = 1;
  test.dump().original_sampling_interval = 1;
  test.dump().callsites[test.Add({"f"}, 50)].allocated.bytes_variance = 0;
  const std::string text = FormatSummary({ResultOf(test)}, {});
  EXPECT_TRUE(Holds(text, "heap libc.malloc, every allocation")) << text;
  EXPECT_FALSE(Holds(text, "±")) << text;
}

TEST(SummaryTest, AnErrorAboveTheFigureIsToldAsALimit) {
  TestProfile test;
  test.dump().sampling_interval = 512 << 10;
  test.dump().peak_total = {.bytes = 512 << 10, .low = 0, .high = 3 << 20};
  const std::string text = FormatSummary({ResultOf(test)}, {});
  EXPECT_TRUE(Holds(text, "live at end  0 B (≤1.83 MiB)")) << text;
  EXPECT_TRUE(Holds(text, "peak 512 KiB (≤3.00 MiB)")) << text;
}

TEST(SummaryTest, WhatNobodyTouchesIsToldWithItsHolders) {
  TestProfile test;
  const CallsiteId cold = test.Add({"FillCache"}, 40 << 20);
  test.Add({"Insert"}, 24 << 20);
  test.dump().possible_live = 64 << 20;
  test.dump().end_ns = 70'000'000'000;
  const std::string without = FormatSummary({ResultOf(test)}, {});
  EXPECT_FALSE(Holds(without, "idle")) << without;
  test.dump().idle.was_asked_for = true;
  test.dump().idle.since_ns = 10'000'000'000;
  test.dump().idle.until_ns = test.dump().end_ns;
  test.dump().idle.callsites[cold].bytes = 32 << 20;
  const std::string text = FormatSummary({ResultOf(test)}, {});
  EXPECT_TRUE(Holds(text,
                    "  idle memory: 32.0 MiB of live 64.0 MiB were not touched in the "
                    "last 60.0 s\n"))
      << text;
  EXPECT_TRUE(Holds(text, "Top idle memory")) << text;
  const std::string list = text.substr(text.find("Top idle memory"));
  EXPECT_TRUE(Holds(list, "FillCache")) << text;
  EXPECT_FALSE(Holds(list, "Insert")) << text;
  test.dump().idle.unseen_bytes = 3 << 20;
  const std::string partly = FormatSummary({ResultOf(test)}, {});
  EXPECT_TRUE(Holds(partly, "in the last 60.0 s; 3.00 MiB could not be looked at\n"))
      << partly;
  test.dump().idle.until_ns = 50'000'000'000;  // it ended before it could be looked at
  const std::string early = FormatSummary({ResultOf(test)}, {});
  EXPECT_TRUE(
      Holds(early, "not touched for 40.0 s until 20.0 s before the end; 3.00 MiB"))
      << early;
}

TEST(SummaryTest, ThatIdleMemoryIsNotKnownIsTold) {
  TestProfile test;
  test.Add({"Insert"}, 24 << 20);
  test.dump().idle.was_asked_for = true;
  const std::string text = FormatSummary({ResultOf(test)}, {});
  EXPECT_TRUE(Holds(text, "  idle memory: not known; there was no second look at it\n"))
      << text;
  EXPECT_FALSE(Holds(text, "Top idle memory")) << text;
}

TEST(SummaryTest, NothingIsShownThatExactCountsDoNotAllow) {
  TestProfile test;
  test.Add({"Insert"}, 40 << 20);
  test.dump().possible_live = 38 << 20;
  test.dump().exact_alloc_bytes = 38 << 20;
  test.dump().exact_alloc_calls = 1;
  const std::string text = FormatSummary({ResultOf(test)}, {});
  EXPECT_TRUE(Holds(text, "live at end  38.0 MiB")) << text;
  EXPECT_TRUE(Holds(text, "allocated    38.0 MiB in 1 call\n")) << text;
  EXPECT_TRUE(Holds(text, "38.0 MiB      100%")) << text;
  EXPECT_FALSE(Holds(text, "40.0 MiB")) << text;
}

TEST(SummaryTest, WhatCameTooEarlyToBeSampledIsWithinTheLimits) {
  TestProfile test;
  test.Add({"Insert"}, 1 << 20);
  test.dump().unsampled_bytes = 4 << 20;
  const std::string text = FormatSummary({ResultOf(test)}, {});
  EXPECT_TRUE(Holds(text, "live at end  1.00 MiB (≤5.")) << text;
  TestProfile first;
  first.Add({"main"}, 10000);
  test.profile().quality.unsampled_calls = 45;
  test.profile().quality.unsampled_bytes = 4 << 20;
  test.profile().from_startup = false;
  const std::string others =
      FormatSummary({ResultOf(first), ResultOf(test), ResultOf(test)}, {});
  EXPECT_TRUE(Holds(others,
                    "! 90 allocations (8.00 MiB) of 2 other forked children came too "
                    "early to be sampled"))
      << others;
  EXPECT_FALSE(Holds(others, "attached to")) << others;
}

TEST(SummaryTest, OfMemoryThatWasNotSeenTheLimitIsTold) {
  TestProfile test;
  test.Add({"main"}, 10000);
  ProcessResult result = ResultOf(test);
  EXPECT_FALSE(Holds(FormatSummary({result}, {}), "RSS"));
  result.resident_limit_kib = 21 << 10;
  EXPECT_TRUE(
      Holds(FormatSummary({result}, {}),
            "RSS          at most 21.0 MiB (it ended before it was looked at)\n"));
  result.history = {1, 1};
  EXPECT_TRUE(Holds(FormatSummary({result}, {.use_unicode = true}),
                    "(it ended before it was looked at)  heap "));
  result.history = {};
  result.resident_kib = 1 << 10;
  EXPECT_TRUE(Holds(FormatSummary({result}, {}), "RSS          1.00 MiB\n"));
}

TEST(SummaryTest, RowsThatHoldNothingAreNotShown) {
  TestProfile test;
  test.Add({"Large"}, 40 << 20);
  test.Add({"Small"}, 4);
  test.dump().possible_live = 4 << 20;  // a tenth, by which all rows are shrunk
  const std::string some = FormatSummary({ResultOf(test)}, {});
  EXPECT_TRUE(Holds(some, "Large")) << some;
  EXPECT_FALSE(Holds(some, "Small")) << some;
  test.dump().possible_live = 0;
  const std::string none = FormatSummary({ResultOf(test)}, {});
  EXPECT_FALSE(Holds(none, "Top live memory")) << none;
}

TEST(SummaryTest, WhatAFileDoesNotTellIsNotMadeUp) {
  TestProfile test;
  test.Add({"f"}, 5000);
  test.profile().process.pid = 0;
  test.dump().sampling_interval = 0;
  test.dump().peak_total = {};
  const std::string text = FormatSummary({ResultOf(test)}, {});
  EXPECT_TRUE(Holds(text, "Profile of program, heap libc.malloc\n")) << text;
  EXPECT_TRUE(Holds(text, "live at end  4.88 KiB\n")) << text;
  EXPECT_TRUE(Holds(text, " calls (estimate)\n")) << text;
  EXPECT_FALSE(Holds(text, "trace")) << text;
}

TEST(SummaryTest, OfADumpOfTheMaximumTheEndHasLimitsOnly) {
  TestProfile test;
  test.Add({"f"}, 5000);
  test.dump().certain_live = 1024;
  test.dump().possible_live = 2048;
  ProcessResult result = ResultOf(test);
  result.tells_end = false;
  const std::string text = FormatSummary({result}, {});
  EXPECT_TRUE(Holds(text, "live at end  1.00 KiB to 2.00 KiB")) << text;
}

TEST(SummaryTest, TheCurveOfTheHeapIsAtMostAsWideAsItsPlace) {
  TestProfile test;
  test.Add({"f"}, 50);
  ProcessResult result = ResultOf(test);
  for (int i = 0; i < 400; ++i)
    result.history.push_back(i);
  const std::string text = FormatSummary({result}, {});
  const size_t begin = text.find("heap ▁");
  ASSERT_NE(begin, std::string::npos) << text;
  const std::string curve = text.substr(begin + 5, text.find('\n', begin) - begin - 5);
  EXPECT_EQ(curve.size(), 24u * 3);
  EXPECT_TRUE(curve.ends_with("█")) << curve;
}

TEST(SummaryTest, ImpossibleFiguresAreShownAndNothingElse) {
  TestProfile test;
  test.Add({"f"}, 1e300);
  test.dump().exact_alloc_bytes = UINT64_MAX;
  test.dump().exact_alloc_calls = UINT64_MAX;
  test.dump().peak_total.bytes = 1e308;
  test.dump().peak_ns = UINT64_MAX;
  ProcessResult result = ResultOf(test);
  result.history = {-1e300, 1e-300, -5};
  result.resident_kib = UINT64_MAX;
  const std::string text = FormatSummary({result}, {});
  EXPECT_TRUE(Holds(text, "heap ▁█▁")) << text;
  EXPECT_FALSE(Holds(text, "nan")) << text;
}

TEST(SummaryTest, OtherProcessesGetALineEachAndTheRestIsCounted) {
  TestProfile first("first");
  first.Add({"f"}, 5000);
  TestProfile other("other");
  other.Add({"g"}, 2048);
  other.dump().peak_total = {.bytes = 4096, .low = 4096, .high = 4096};
  std::vector<ProcessResult> processes = {ResultOf(first)};
  for (int i = 0; i < 12; ++i)
    processes.push_back(ResultOf(other));
  const std::string text = FormatSummary(processes, {});
  EXPECT_TRUE(Holds(text, "also other (pid 4711)")) << text;
  EXPECT_TRUE(Holds(text, "peak 4.00 KiB   live at end 2.00 KiB")) << text;
  EXPECT_TRUE(Holds(text, "and 4 more processes")) << text;
}

TEST(SummaryTest, LongNamesAreCutSoThatColumnsStayInLine) {
  TestProfile test;
  test.Add({std::string(300, 'n')}, 5000);
  const std::string text = FormatSummary({ResultOf(test)}, {});
  EXPECT_TRUE(Holds(text, std::string(43, 'n') + "...  4.88 KiB")) << text;
}

TEST(QualityWarningsTest, AGoodRecordingHasNone) {
  TestProfile test;
  test.profile().quality.samples = 1000;
  test.profile().quality.checked_samples = 10;
  test.profile().quality.agreed_samples = 10;
  EXPECT_TRUE(QualityWarnings(ResultOf(test)).empty());
}

TEST(QualityWarningsTest, EveryLossIsToldWithItsRemedy) {
  struct Case {
    void (*damage)(TestProfile&);
    const char* cause;
    const char* remedy;
  };

  const Case cases[] = {
      {[](TestProfile& t) { t.profile().quality.lost_records = 7; }, "7 records",
       "--shmem-size"},
      {[](TestProfile& t) { t.dump().sampling_interval = 8192; }, "from 4096 to 8192",
       "--interval 8192"},
      {[](TestProfile& t) { t.profile().quality.corrupt_records = 3; }, "3 records",
       "AddressSanitizer"},
      {[](TestProfile& t) { t.profile().quality.truncated_stacks = 20; }, "2.0%",
       "512 frames"},
      {[](TestProfile& t) { t.profile().quality.unwind_errors = 50; }, "5.0%",
       "no way was found from a function to its caller; code built with "
       "-fasynchronous-unwind-tables has what is needed"},
      {[](TestProfile& t) {
         t.profile().quality.unwind_errors = 50;
         t.profile().quality.late_stacks = 50;
       },
       "50 stacks end early: the program had ended before the code there was looked at",
       "leave the profiler some processor time"},
      {[](TestProfile& t) { t.profile().quality.hidden_stacks = 50; },
       "50 stacks end early, at [return probe]: the kernel hides the callers of "
       "functions "
       "with a return probe",
       "probe their entries instead"},
      {[](TestProfile& t) { t.profile().quality.gone_files = 1; },
       "1 mapped file was gone, or could not be opened, when first looked at: stacks "
       "through code of theirs may end early or lack names",
       "leave files of running programs in place, or record as root"},
      {[](TestProfile& t) { t.profile().quality.checked_samples = 4; }, "4 of 4",
       "disagreed"},
      {[](TestProfile& t) { t.profile().quality.refused_samples = 7; }, "7 samples",
       "left out: too many are live at once; record with a larger --interval"},
      {[](TestProfile& t) { t.profile().quality.refused_marks = 7; }, "7 marks",
       "10,000"},
      {[](TestProfile& t) { t.profile().quality.threads_without_slot = 2; }, "2 threads",
       "4096"},
      {[](TestProfile& t) { t.profile().quality.deepbind_opens = 1; },
       "1 call of dlopen with RTLD_DEEPBIND: what these libraries allocate in the C "
       "library, past the program's own allocator, is not recorded",
       "record the running program with -p"},
      {[](TestProfile& t) { t.profile().quality.namespace_opens = 2; },
       "2 calls of dlmopen: what libraries in a namespace of their own allocate is not "
       "recorded",
       "record with -p when they are loaded"},
      {[](TestProfile& t) { t.profile().quality.unshaped_blocks = 1; },
       "1 size or lifetime of a sampled block is told of the heap alone, not of their "
       "stacks",
       "larger --interval"},
      {[](TestProfile& t) { t.profile().quality.unlisted_blocks = 3; },
       "3 live blocks, the smallest, are not listed, so that the stacks of direct "
       "buffers",
       "larger --interval"},
      {[](TestProfile& t) {
         t.profile().quality.unsampled_calls = 90;
         t.profile().quality.unsampled_bytes = 4 << 20;
         t.profile().from_startup = false;
       },
       "90 allocations (4.00 MiB) of this forked child came too early to be sampled",
       "start the program under heap_profile"},
      {[](TestProfile& t) { t.profile().quality.unknown_stacks = 20; },
       "2.0% of the samples are without a stack", "never arrived"},
      {[](TestProfile& t) {
         t.profile().late_files = {"/mnt/a.so", "/mnt/b.so"};
       },
       "2 mapped files did not open in time (/mnt/a.so, /mnt/b.so)", "record again"}};
  for (const Case& tested : cases) {
    TestProfile test;
    test.profile().quality.samples = 1000;
    tested.damage(test);
    const std::string warning = OnlyWarning(test);
    EXPECT_TRUE(Holds(warning, tested.cause)) << warning;
    EXPECT_TRUE(Holds(warning, tested.remedy)) << warning;
  }
}

// So that a new figure cannot be forgotten.
TEST(QualityWarningsTest, EveryFigureThatIsAFaultHasWords) {
  for (const Figure& figure : kFigures) {
    TestProfile test;
    test.profile().quality.samples = 1000;
    test.profile().quality.*figure.value = 1000;
    const size_t least = figure.is_fault ? 1 : 0;
    EXPECT_GE(QualityWarnings(ResultOf(test)).size(), least) << figure.name;
  }
}

TEST(QualityWarningsTest, TheAdviceAboutWaitsIsThatOfTheirLimit) {
  TestProfile test;
  test.profile().quality.lost_records = 1;
  test.profile().client_fault = ClientFault::kHitTimeout;
  const auto warning = [&test](uint64_t timeout_us) {
    return QualityWarnings(ResultOf(test), timeout_us).back();
  };
  EXPECT_TRUE(Holds(warning(0), "1 record (0 samples) did not fit")) << warning(0);
  EXPECT_TRUE(Holds(warning(0), "do not stop the profiler")) << warning(0);
  EXPECT_FALSE(Holds(warning(1), "stop the profiler")) << warning(1);
  EXPECT_TRUE(Holds(warning(1), "--block-client-timeout")) << warning(1);
  test.profile().from_startup = false;  // attached to: 50 ms
  EXPECT_FALSE(Holds(warning(0), "stop the profiler")) << warning(0);
}

TEST(FormatSummaryTest, AProcessWithMoreMemoryThanTheFirstIsNamed) {
  TestProfile test;
  test.Add({"main"}, 10000);
  SummaryOptions options;
  options.largest = "cc1plus (pid 12)";
  const std::string text = FormatSummary({ResultOf(test)}, options);
  EXPECT_TRUE(Holds(text, "; more memory was in cc1plus (pid 12)\n")) << text;
}

TEST(FormatSummaryTest, WhatOtherProcessesLackIsTold) {
  TestProfile first;
  first.Add({"main"}, 10000);
  TestProfile lossy("lossy");
  lossy.Add({"main"}, 10);
  lossy.profile().quality.lost_records = 5;
  lossy.profile().quality.corrupt_records = 2;
  TestProfile silent("browser");
  silent.profile().memory.anonymous_kib = 90'000;
  TestProfile small("true");
  small.profile().memory.anonymous_kib = 100;
  const std::string text = FormatSummary(
      {ResultOf(first), ResultOf(lossy), ResultOf(silent), ResultOf(small)}, {});
  EXPECT_TRUE(Holds(text, "! 5 records of the other processes are missing")) << text;
  EXPECT_TRUE(Holds(text, "! 2 records of the other processes were damaged")) << text;
  EXPECT_TRUE(Holds(text,
                    "! 1 process has memory, but called no allocation function that "
                    "can be seen: browser (pid 4711); it allocated nothing meanwhile, "
                    "or keeps pools of its own, or has an allocator linked"))
      << text;
  const std::string of_two = FormatSummary(
      {ResultOf(first), ResultOf(silent), ResultOf(silent), ResultOf(small)}, {});
  EXPECT_TRUE(Holds(of_two, "; they allocated nothing meanwhile, or keep pools"))
      << of_two;
}

TEST(FormatSummaryTest, AChildThatCountsInItsParentIsNotSilent) {
  TestProfile parent;
  parent.Add({"main"}, 10000);
  parent.profile().forked.count = 1;
  TestProfile child("backend");
  child.profile().process.pid = parent.profile().process.pid + 1;
  child.profile().process.parent_pid = parent.profile().process.pid;
  child.profile().memory.anonymous_kib = 90'000;
  const auto is_called_silent = [&](bool from_startup, int32_t parent_pid) {
    child.profile().from_startup = from_startup;
    child.profile().process.parent_pid = parent_pid;
    return Holds(FormatSummary({ResultOf(parent), ResultOf(child)}, {}),
                 "called no allocation function that can be seen");
  };
  const int32_t pid = parent.profile().process.pid;
  EXPECT_FALSE(is_called_silent(/*from_startup=*/true, pid));
  EXPECT_TRUE(is_called_silent(/*from_startup=*/false, pid));
  EXPECT_TRUE(is_called_silent(/*from_startup=*/true, 1));
  parent.profile().forked.count = 0;
  EXPECT_TRUE(is_called_silent(/*from_startup=*/true, pid));
}

TEST(FormatSummaryTest, NamesDoNotSteerTheTerminal) {
  TestProfile test("evil\x1b[2J");
  test.Add({"f\x1b]0;owned\x07"}, 10000);
  const std::string text = FormatSummary({ResultOf(test)}, {});
  EXPECT_TRUE(Holds(text, "evil?[2J")) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(QualityWarningsTest, AFewStacksThatEndEarlyAreNotWorthALine) {
  TestProfile test;
  test.profile().quality.samples = 1000;
  test.profile().quality.truncated_stacks = 10;
  test.profile().quality.unwind_errors = 10;
  EXPECT_TRUE(QualityWarnings(ResultOf(test)).empty());
}

ModuleSymbols ModuleWithout(const std::string& path, MappingId mapping) {
  ModuleSymbols module;
  module.unnamed_frames = 1;
  module.path = path;
  module.mappings = {mapping};
  module.reason = NoSymbolsReason::kNoSymbols;
  return module;
}

TEST(QualityWarningsTest, WhatKeepsMostBytesWithoutANameIsSaid) {
  TestProfile test;
  const MappingId small = test.AddMapping("/lib/libsmall.so");
  const MappingId large = test.AddMapping("/lib/liblarge.so");
  test.AddUnnamed(small, 1, 900);
  test.AddUnnamed(large, 2, 7900);
  test.Add({"named"}, 900);
  ProcessResult result = ResultOf(test);
  result.symbols.modules = {ModuleWithout("/lib/libsmall.so", small),
                            ModuleWithout("/lib/liblarge.so", large)};
  const std::vector<std::string> warnings = QualityWarnings(result);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(
      warnings[0],
      "80% of allocated bytes belong to functions without a name in liblarge.so: it "
      "has no symbols for them; build it without stripping, or name a directory "
      "with its symbol file in PERFETTO_BINARY_PATH");
}

// Nearly every program of Debian's has a stripped function around main, and musl's libc
// is one.
TEST(QualityWarningsTest, OnlyAHolderWithoutANameIsMissed) {
  TestProfile test;
  const MappingId stripped = test.AddMapping("/lib/libstripped.so");
  test.AddAbove(stripped, {"malloc", "holder", "caller", "its_caller", "and_its"}, 900);
  ProcessResult result = ResultOf(test);
  result.symbols.modules = {ModuleWithout("/lib/libstripped.so", stripped)};
  EXPECT_TRUE(QualityWarnings(result).empty());
  test.AddAbove(stripped, {"malloc", "holder"}, 900);
  EXPECT_TRUE(QualityWarnings(result).empty());
  test.AddAbove(stripped, {"malloc"}, 900);
  EXPECT_EQ(QualityWarnings(result).size(), 1u);
}

TEST(QualityWarningsTest, EveryReasonForMissingNamesHasWordsOfItsOwn) {
  struct Case {
    NoSymbolsReason reason;
    const char* words;
  };

  for (const Case& tested :
       {Case{NoSymbolsReason::kNotFound, "the file is gone"},
        Case{NoSymbolsReason::kBuildIdMismatch, "another build"},
        Case{NoSymbolsReason::kUnreadable, "as the reader says"},
        Case{NoSymbolsReason::kWorkerDied, "as the reader says"},
        Case{NoSymbolsReason::kCancelled, "as the reader says"},
        Case{NoSymbolsReason::kNone, "it has no symbols for them; "}}) {
    TestProfile test;
    const MappingId mapping = test.AddMapping("/lib/libfoo.so");
    test.AddUnnamed(mapping, 1, 900);
    ProcessResult result = ResultOf(test);
    result.symbols.modules = {ModuleWithout("/lib/libfoo.so", mapping)};
    result.symbols.modules[0].reason = tested.reason;
    result.symbols.modules[0].error = "as the reader says";
    EXPECT_TRUE(Holds(OnlyWarningOf(result), tested.words)) << OnlyWarningOf(result);
  }
}

std::string AdviceForJit(TestProfile& test, MappingId mapping, const char* error = "") {
  test.AddUnnamed(mapping, 1, 900);
  ProcessResult result = ResultOf(test);
  JitReport jit;
  jit.frames = 1;
  jit.unnamed_frames = 1;
  jit.mappings = {mapping};
  jit.error = error;
  result.symbols.modules.push_back(ModuleOfJitCode(test.profile(), jit));
  return OnlyWarningOf(result);
}

TEST(QualityWarningsTest, OnlyARuntimeThatIsThereIsBlamedForCodeWithoutAFile) {
  TestProfile java("java");
  java.AddMapping("/usr/lib/jvm/lib/server/libjvm.so");
  EXPECT_TRUE(Holds(AdviceForJit(java, java.AddMapping("")), "DumpPerfMapAtExit"));
  TestProfile node("node");
  node.profile().process.executable = "/usr/bin/node";
  EXPECT_TRUE(Holds(AdviceForJit(node, node.AddMapping("")), "--perf-basic-prof"));
  TestProfile other("coroutines");
  EXPECT_TRUE(Holds(
      AdviceForJit(other, other.AddMapping("")),
      "nothing is known about it; a perf map (/tmp/perf-4711.map) would name them"));
  TestProfile damaged("node");
  damaged.profile().process.executable = "/usr/bin/node";
  EXPECT_TRUE(Holds(AdviceForJit(damaged, damaged.AddMapping(""), "it was killed"),
                    "cannot read what its compiler has left: it was killed"));
  TestProfile go("go");
  EXPECT_TRUE(Holds(AdviceForJit(go, kNoId), "in nothing that was known to be mapped"));
}

TEST(QualityWarningsTest, AProcessThatRanAlreadyHasMemoryThatWasNotSeen) {
  TestProfile test;
  test.Add({"f"}, 30 << 20);
  test.profile().from_startup = false;
  ProcessResult result = ResultOf(test);
  result.resident_kib = 236 * 1024;
  EXPECT_EQ(OnlyWarningOf(result),
            "attached while it ran: what it had allocated before is not seen (live 30.0 "
            "MiB beside RSS 236 MiB)");
  TestProfile first;
  first.Add({"f"}, 1000);
  EXPECT_TRUE(Holds(FormatSummary({ResultOf(first), result}, {}),
                    "! 1 other process was attached to while running"));
}

TEST(SummaryTest, WhereRecordsAreMissingNoErrorIsGiven) {
  TestProfile test;
  test.Add({"f"}, 30 << 20);
  test.profile().quality.lost_records = 4002;
  const std::string text = FormatSummary({ResultOf(test)}, {});
  EXPECT_TRUE(Holds(text, "30.0 MiB (incomplete)")) << text;
  EXPECT_FALSE(Holds(text, "±")) << text;
}

TEST(SummaryTest, TheMaximumIsShownWhenItWasAskedFor) {
  TestProfile test;
  const CallsiteId freed = test.Add({"FreedLater", "main"}, 0);
  test.dump().peak[freed].bytes = 5 << 20;
  SummaryOptions options;
  EXPECT_FALSE(Holds(FormatSummary({ResultOf(test)}, options), "at peak"));
  options.dump_at_max = true;
  const std::string text = FormatSummary({ResultOf(test)}, options);
  EXPECT_TRUE(Holds(text, "Top live memory at peak")) << text;
  EXPECT_TRUE(Holds(text, "FreedLater")) << text;
  EXPECT_TRUE(Holds(text, "5.00 MiB      100%")) << text;
}

TEST(SummaryTest, APeakThatIsMoreThanTheEndComesFirst) {
  TestProfile test;
  test.dump().peak[test.Add({"Working", "main"}, 0)].bytes = 200'000;
  test.dump().peak[test.Add({"Cache", "main"}, 1'000'000)].bytes = 1'000'000;
  test.dump().peak_total = {.bytes = 1'199'000, .low = 1'199'000, .high = 1'199'000};
  EXPECT_FALSE(Holds(FormatSummary({ResultOf(test)}, {}), "at peak"));
  test.dump().peak_total = {.bytes = 1'200'000, .low = 1'200'000, .high = 1'200'000};
  const std::string text = FormatSummary({ResultOf(test)}, {});
  EXPECT_LT(text.find("Top live memory at peak"), text.find("Top live memory at end"))
      << text;
  EXPECT_LT(text.find("195 KiB       17%"), text.find("Top live memory at end")) << text;
}

TEST(SummaryTest, WhereNobodyKnowsWhoHeldThePeakThatIsSaid) {
  TestProfile test;
  test.Add({"Cache", "main"}, 1000);
  test.dump().peak_total = {.bytes = 9000, .low = 9000, .high = 9000};
  EXPECT_TRUE(Holds(FormatSummary({ResultOf(test)}, {}),
                    "Who held the memory at the peak is not known."));
}

TEST(SummaryTest, TheProgramThatTheUserNamedIsInTheHeadline) {
  TestProfile test("cc1plus");
  test.Add({"f"}, 5000);
  SummaryOptions options;
  options.program = "g++ (pid 12)";
  EXPECT_TRUE(Holds(FormatSummary({ResultOf(test)}, options),
                    " of g++ (pid 12); the most memory was in cc1plus (pid 4711), heap"));
}

TEST(SummaryTest, WithoutATraceNoneIsOffered) {
  TestProfile test;
  test.Add({"f"}, 5000);
  EXPECT_FALSE(Holds(FormatSummary({ResultOf(test)}, {}), "ui.perfetto.dev"));
}

size_t LongestLine(const std::string& text) {
  size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    longest = std::max(longest, Columns(line));
  return longest;
}

TEST(SummaryTest, LinesFitTheTerminalAndUseIt) {
  TestProfile other(std::string(100, 'p'));
  other.Add({"main"}, 123'456);
  other.profile().forked = {.count = 100, .alloc_calls = 1000, .alloc_bytes = 123'456};
  for (const size_t width : {40u, 60u, 80u, 200u}) {
    TestProfile test;
    test.profile().memory = {.rss_kib = 100'000,
                             .requested = 5000,
                             .allocator = "jemalloc",
                             .allocator_in_use = 5'000'000,
                             .allocator_free = 1000};
    test.Add(
        {std::string(300, 'n'), std::string(100, 'c'), std::string(100, 'd'), "main"},
        5000);
    test.profile().quality.samples = 1000;
    test.profile().quality.unwind_errors = 500;
    test.profile().quality.lost_records = 100;
    test.dump().peak_total = {.bytes = 99e6, .low = 98e6, .high = 100e6};
    test.dump().peak_ns = 1;
    test.dump().peak[test.Add({"Load", "main"}, 0)].bytes = 99e6;
    ProcessResult result = ResultOf(test);
    result.resident_kib = 100'000;
    result.history.assign(30, 5e6);
    SummaryOptions options;
    options.width = width;
    const std::string text = FormatSummary({result, ResultOf(other)}, options);
    EXPECT_TRUE(Holds(text, "Top live memory at peak")) << text;
    EXPECT_TRUE(Holds(text, "also ppp")) << text;
    EXPECT_TRUE(Holds(text, "live at end 121 KiB")) << text;
    EXPECT_TRUE(Holds(text, "by jemalloc")) << text;
    EXPECT_LE(LongestLine(text), width) << text;
    EXPECT_GE(LongestLine(text), width * 7 / 10) << text;
  }
}

TEST(SummaryTest, ColoursAreAddedToWhatIsShownAndToNothingElse) {
  TestProfile test("evil\x1b[2J");
  test.Add({"f"}, 5000);
  test.profile().quality.lost_records = 100;
  SummaryOptions options;
  options.seconds = 1;
  const std::string text = FormatSummary({ResultOf(test)}, options);
  std::string colored = WithColor(text);
  EXPECT_TRUE(Holds(colored, "\033[1mRecorded "));
  EXPECT_TRUE(Holds(colored, "\033[33m  ! \033[m100 records"));
  for (const std::string sequence : {"\033[1m", "\033[33m", "\033[m"}) {
    for (size_t at = 0; (at = colored.find(sequence)) != std::string::npos;)
      colored.erase(at, sequence.size());
  }
  EXPECT_EQ(colored, text);
}

}  // namespace
}  // namespace heapprofd
