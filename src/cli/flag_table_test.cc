#include "cli/flag_table.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

class FlagTableTest : public testing::Test {
 protected:
  FlagTableTest() {
    const auto store = [this](const std::string& text) {
      values_.push_back(text);
      return Status();
    };
    flags_ = {{.letter = 'i',
               .name = "interval",
               .aliases = {"pause"},
               .value_name = "BYTES",
               .help = "Some [bytes]: it's all.",
               .details = "More of it.",
               .group = "how",
               .apply = store},
              {.name = "fast", .help = "Be quick.", .group = "how", .apply = store}};
  }

  Result<size_t> Parse(const std::vector<std::string>& arguments) {
    values_.clear();
    return ParseFlags(flags_, arguments, [this](const std::string& word) {
      words_.push_back(word);
      return Status();
    });
  }

  std::vector<Flag> flags_;
  std::vector<std::string> values_;
  std::vector<std::string> words_;
};

TEST_F(FlagTableTest, AValueIsTakenInEverySpelling) {
  for (const std::vector<std::string>& form : std::vector<std::vector<std::string>>{
           {"-i", "7"}, {"-i7"}, {"--interval", "7"}, {"--interval=7"}, {"--pause=7"}}) {
    ASSERT_TRUE(Parse(form).ok()) << form[0];
    EXPECT_EQ(values_, std::vector<std::string>{"7"}) << form[0];
  }
}

TEST_F(FlagTableTest, EverythingBehindTwoDashesIsLeftAlone) {
  const Result<size_t> rest = Parse({"word", "--fast", "--", "--interval"});
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(rest.value(), 3u);
  EXPECT_EQ(words_, std::vector<std::string>{"word"});
}

TEST_F(FlagTableTest, ACommentOfSqlIsNoFlag) {
  const std::vector<std::string> words = {"-- all\nSELECT 1", "--all\nSELECT 1 = 1",
                                          "-- all"};
  ASSERT_TRUE(Parse(words).ok());
  EXPECT_EQ(words_, words);
  EXPECT_TRUE(values_.empty());
  ASSERT_TRUE(Parse({"--interval=1\n2"}).ok());
  EXPECT_EQ(values_, std::vector<std::string>{"1\n2"});
}

TEST_F(FlagTableTest, MistakesAreNamed) {
  EXPECT_NE(
      Parse({"--intervall", "7"}).status().message().find("did you mean --interval?"),
      std::string::npos);
  EXPECT_NE(Parse({"--interval"}).status().message().find("BYTES is missing"),
            std::string::npos);
  EXPECT_NE(Parse({"--fast=1"}).status().message().find("takes no value"),
            std::string::npos);
  EXPECT_NE(Parse({"-i", "--", "x"}).status().message().find("missing"),
            std::string::npos);
}

TEST_F(FlagTableTest, AUniqueBeginningOfANameStandsForIt) {
  for (const std::string word : {"--int", "--pau", "--i"}) {
    ASSERT_TRUE(Parse({word, "7"}).ok()) << word;
    EXPECT_EQ(values_, std::vector<std::string>{"7"}) << word;
  }
  ASSERT_TRUE(Parse({"--in=8"}).ok());
  EXPECT_EQ(values_, std::vector<std::string>{"8"});
  flags_.push_back({.name = "faster", .help = "Be quicker.", .apply = flags_[1].apply});
  flags_.push_back({.name = "fasten", .help = "Hold.", .apply = flags_[1].apply});
  EXPECT_NE(Parse({"--faste"}).status().message().find("could be --faster, --fasten"),
            std::string::npos);
  EXPECT_TRUE(Parse({"--fast"}).ok());  // all of a name goes before a part of others
  EXPECT_FALSE(Parse({"-in", "7"}).ok() && values_ == std::vector<std::string>{"7"});
}

TEST_F(FlagTableTest, AnEqualsSignBehindALetterIsNoValue) {
  ASSERT_TRUE(Parse({"-i=7"}).ok());
  EXPECT_EQ(values_, std::vector<std::string>{"7"});
}

TEST_F(FlagTableTest, WhatWasProbablyMeantIsNamed) {
  EXPECT_EQ(DidYouMean("qury", {"query", "report"}, "nothing"), "did you mean query?");
  EXPECT_EQ(DidYouMean("shw", {"show", "stats"}, "nothing"), "did you mean show?");
  EXPECT_EQ(DidYouMean("shwo", {"show", "stats"}, "nothing"), "did you mean show?");
  EXPECT_EQ(DidYouMean("tpo", {"doctor", "top"}, "nothing"), "did you mean top?");
  EXPECT_EQ(DidYouMean("hlep", {"hprof", "help"}, "nothing"), "did you mean help?");
  EXPECT_EQ(DidYouMean("ls", {"leaks", "show"}, "nothing"), "nothing");
  EXPECT_EQ(DidYouMean("frobnicate", {"query", "report"}, "nothing"), "nothing");
}

}  // namespace
}  // namespace heapprofd
