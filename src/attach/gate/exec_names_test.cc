#include "attach/gate/exec_names.h"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <random>

namespace heapprofd {
namespace {

ExecNames Names(const std::vector<std::string>& names) {
  ExecNames result;
  for (const std::string& name : names)
    result.AddName(name);
  const std::optional<ExecNames> decoded = ExecNames::Decode(result.Encode());
  EXPECT_TRUE(decoded);
  return decoded.value_or(ExecNames());
}

TEST(ExecNamesTest, NamesAreThoseOfTheFile) {
  const ExecNames names = Names({"server", "/opt/old/tool@2"});
  EXPECT_TRUE(names.MayMatch("/usr/bin/server"));
  EXPECT_TRUE(names.MayMatch("/usr/bin/server@1.0"));
  EXPECT_TRUE(names.MayMatch("/usr/bin/tool"));
  EXPECT_FALSE(names.MayMatch("/usr/bin/servers"));
  EXPECT_FALSE(names.MayMatch("/usr/server/bin"));
}

TEST(ExecNamesTest, FilesAreComparedAsAWhole) {
  ExecNames names;
  names.AddFile("/usr/bin/python3.11");
  EXPECT_TRUE(names.MayMatch("/usr/bin/python3.11"));
  EXPECT_FALSE(names.MayMatch("/opt/python3.11"));
}

TEST(ExecNamesTest, PatternsMatchAtLeastWhatFnmatchDoes) {
  std::mt19937 random(1);
  const auto text = [&random](std::string_view alphabet) {
    std::string result;
    for (size_t i = random() % 8; i > 0; --i)
      result += alphabet[random() % alphabet.size()];
    return result;
  };
  int matches = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::string pattern = text("ab*?[]!-") + "*" + text("ab*?[]");
    const std::string name = text("ab[]-");
    if (pattern[0] == '/' || fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) != 0)
      continue;
    ++matches;
    EXPECT_TRUE(Names({pattern}).MayMatch("/bin/" + name)) << pattern << " " << name;
  }
  EXPECT_GT(matches, 1000);
}

TEST(ExecNamesTest, PatternsDoNotMatchEverything) {
  EXPECT_FALSE(Names({"py*3"}).MayMatch("/usr/bin/perl"));
  EXPECT_FALSE(Names({"/opt/*"}).MayMatch("/usr/bin/opt"));
  EXPECT_TRUE(Names({"/opt/*"}).MayMatch("/opt/bin/x"));
}

TEST(ExecNamesTest, WhatIsTooMuchIsRefused) {
  ExecNames many;
  for (size_t i = 0; i <= ExecNames::kMaxCount; ++i)
    many.AddName("n");
  EXPECT_FALSE(ExecNames::Decode(many.Encode()));
  ExecNames large;
  large.AddName(std::string(ExecNames::kMaxBytes, 'n'));
  EXPECT_FALSE(ExecNames::Decode(large.Encode()));
  EXPECT_TRUE(ExecNames::Decode(ExecNames().Encode()));
  EXPECT_FALSE(ExecNames::Decode(""));
}

}  // namespace
}  // namespace heapprofd
