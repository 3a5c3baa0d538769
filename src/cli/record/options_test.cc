// What the command line means, and what a wrong one is told.
#include "cli/record/options.h"

#include <gtest/gtest.h>

#include "cli/record/record_command.h"

namespace heapprofd {
namespace {

using Arguments = std::vector<std::string>;

Result<Options> ParseOptions(const Arguments& arguments) {
  Options options;
  const CommandLine line = RecordingLineFor(options);
  HPD_TRY_ASSIGN(const size_t end, ParseFlags(line.flags, arguments, line.take_word));
  if (end > 0 && arguments[end - 1] == "--")
    HPD_TRY(line.take_rest(
        {arguments.begin() + static_cast<ptrdiff_t>(end), arguments.end()}));
  HPD_TRY(CheckOptions(options));
  return options;
}

Options Parse(Arguments arguments) {
  Result<Options> options = ParseOptions(arguments);
  EXPECT_TRUE(options.ok()) << options.status().message();
  return options.ok() ? options.value() : Options();
}

std::string ErrorOf(Arguments arguments) {
  const Result<Options> options = ParseOptions(arguments);
  EXPECT_FALSE(options.ok());
  if (options.ok())
    return "";
  EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument);
  return options.status().message();
}

TEST(OptionsTest, WithoutOptionsTheDocumentedDefaultsHold) {
  const Options options = Parse({"--", "true"});
  EXPECT_EQ(options.session.interval_bytes, 4096u);
  EXPECT_EQ(options.session.ring_size_bytes, 8u << 20);
  EXPECT_EQ(options.session.when_full, WhenFull::kBlock);
  EXPECT_EQ(options.session.block_timeout_us, 0u);
  EXPECT_TRUE(options.session.follow_children);
  EXPECT_EQ(options.output_directory, "");
  EXPECT_EQ(options.top, 10u);
  EXPECT_FALSE(options.quiet);
  EXPECT_EQ(options.command, Arguments{"true"});
}

TEST(OptionsTest, PerfettosSevenDaysEndARecordingThatNoProgramEnds) {
  EXPECT_EQ(ConfigOf(Parse({"-p", "12"})).duration_ms, 604'800'000u);
  EXPECT_EQ(ConfigOf(Parse({"android", "-n", "x"})).duration_ms, 604'800'000u);
  EXPECT_EQ(ConfigOf(Parse({"-p", "12", "-d", "0"})).duration_ms, 0u);
  EXPECT_EQ(ConfigOf(Parse({"-p", "12", "-d", "5"})).duration_ms, 5u);
  EXPECT_EQ(ConfigOf(Parse({"--", "true"})).duration_ms, 0u);
}

TEST(OptionsTest, EverythingBehindTheSeparatorBelongsToTheProgram) {
  const Options options = Parse({"-q", "--", "ls", "-i", "7", "--", "--help"});
  EXPECT_TRUE(options.quiet);
  EXPECT_EQ(options.session.interval_bytes, 4096u);
  EXPECT_EQ(options.command, (Arguments{"ls", "-i", "7", "--", "--help"}));
}

TEST(OptionsTest, AValueMayFollowBeAttachedOrStandBehindAnEqualsSign) {
  const std::vector<Arguments> forms = {
      {"-i", "77"}, {"-i77"}, {"--interval", "77"}, {"--interval=77"}};
  for (Arguments form : forms) {
    form.insert(form.end(), {"--", "true"});
    EXPECT_EQ(Parse(form).session.interval_bytes, 77u) << form[0];
  }
}

TEST(OptionsTest, SizesTakeUnits) {
  const std::vector<std::pair<std::string, uint64_t>> sizes = {
      {"1", 1},
      {"4k", 4096},
      {"4KiB", 4096},
      {"8M", 8u << 20},
      {"8MB", 8'000'000},
      {"2GiB", uint64_t{2} << 30},
      {"512K", 524'288},
      {"1024G", 1ull << 40},
      {"1TiB", 1ull << 40},
      {"1T", 1ull << 40},
      {"77B", 77}};
  for (const auto& [text, bytes] : sizes)
    EXPECT_EQ(Parse({"-i", text, "--", "true"}).session.interval_bytes, bytes) << text;
}

TEST(OptionsTest, SizesThatMeanNothingAreRefusedWithTheValidRange) {
  for (const char* text :
       {"", "k", "0", "-1", "1x", "1kx", "4.5k", "0x10", " 1", "1 k", "2048G",
        "18446744073709551616", "17179869184G", "2T", "1Ti", "B"})
    EXPECT_NE(ErrorOf({"-i", text, "--", "true"}).find("from 1 to 1 TiB"),
              std::string::npos)
        << text;
}

TEST(OptionsTest, TheBufferIsAPowerOfTwoWithinItsBounds) {
  EXPECT_EQ(Parse({"--shmem-size", "8192", "--", "true"}).session.ring_size_bytes, 8192u);
  EXPECT_EQ(Parse({"--shmem-size", "256M", "--", "true"}).session.ring_size_bytes,
            256u << 20);
  for (const char* text : {"4096", "12288", "1G", "0", "x"})
    EXPECT_NE(ErrorOf({"--shmem-size", text, "--", "true"}).find("power of two"),
              std::string::npos)
        << text;
}

TEST(OptionsTest, WhatHappensWithAFullBufferIsSaidOnce) {
  EXPECT_EQ(Parse({"--no-block-client", "--", "true"}).session.when_full,
            WhenFull::kDrop);
  EXPECT_EQ(Parse({"--block-client", "--", "true"}).session.when_full, WhenFull::kBlock);
  EXPECT_NE(ErrorOf({"--no-block-client", "--block-client", "--", "true"})
                .find("together with --no-block-client"),
            std::string::npos);
  EXPECT_EQ(
      Parse({"--block-client-timeout", "250", "--", "true"}).session.block_timeout_us,
      250u);
  EXPECT_NE(ErrorOf({"--block-client-timeout", "soon", "--", "true"}).find("microsec"),
            std::string::npos);
}

TEST(OptionsTest, SwitchesTakeNoValue) {
  EXPECT_FALSE(Parse({"--no-children", "--", "true"}).session.follow_children);
  EXPECT_NE(ErrorOf({"--no-children=1", "--", "true"}).find("takes no value"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"-qq", "--", "true"}).find("takes no value"), std::string::npos);
}

TEST(OptionsTest, AValueThatIsMissingIsNamed) {
  EXPECT_NE(ErrorOf({"--top"}).find("its value N is missing"), std::string::npos);
  EXPECT_NE(ErrorOf({"-o", "--", "true"}).find("its value DIRECTORY is missing"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"-o", "", "--", "true"}).find("name is empty"), std::string::npos);
}

TEST(OptionsTest, ATypingErrorGetsTheNearestOption) {
  EXPECT_NE(ErrorOf({"--intervall", "5", "--", "true"}).find("did you mean --interval?"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"--shmem-sice=1", "--", "true"}).find("did you mean --shmem-size?"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"--xyzzy-plugh", "--", "true"}).find("--help lists all"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"---", "--", "true"}).find("cannot use option ---"),
            std::string::npos);
}

TEST(OptionsTest, AProgramWithoutSeparatorIsNotGuessed) {
  EXPECT_NE(ErrorOf({"python3", "script.py"}).find("put -- in front"), std::string::npos);
  EXPECT_NE(ErrorOf({}).find("no program is named"), std::string::npos);
  EXPECT_NE(ErrorOf({"--"}).find("no program is named"), std::string::npos);
}

TEST(OptionsTest, JavaHeapsAreThoseOfNamedProcesses) {
  EXPECT_TRUE(Parse({"--with-java", "--pid", "1,2"}).with_java);
  EXPECT_TRUE(Parse({"--with-java", "--", "java"}).with_java);
  EXPECT_EQ(Parse({"--with-java", "--java-dumps", "3", "--pid", "1"}).java_dumps, 3u);
  EXPECT_EQ(ErrorOf({"--java-dumps", "3", "--pid", "1"}),
            "cannot use --java-dumps: it only makes sense with --with-java");
  // Addresses are nobody's business otherwise.
  EXPECT_TRUE(Parse({"--with-java", "--pid", "1"}).session.list_live_blocks);
  EXPECT_FALSE(Parse({"--pid", "1"}).session.list_live_blocks);
  EXPECT_NE(
      ErrorOf({"--with-java", "--name", "java"}).find("name the processes by --pid"),
      std::string::npos);
  EXPECT_EQ(
      ErrorOf({"android", "--with-java", "--name", "app"}),
      "cannot use --with-java on a device; heap_profile java android shows a heap there");
}

}  // namespace
}  // namespace heapprofd
