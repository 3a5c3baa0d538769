// Code that is late arrives once; the names of files that were late stay.
#include "unwind/late_code.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(LateCodeTest, ArrivesOnce) {
  LateCode late;
  late.Note(100);
  EXPECT_FALSE(late.Arrive(200));
  EXPECT_TRUE(late.Arrive(100));
  EXPECT_FALSE(late.Arrive(100));
  EXPECT_TRUE(late.files().empty());
}

TEST(LateCodeTest, NamesOfFilesAreKeptOnceAndSoManyOfThem) {
  LateCode late;
  late.NoteFile(100, "/lib/a.so");
  late.NoteFile(200, "/lib/a.so");
  EXPECT_EQ(late.files(), std::vector<std::string>{"/lib/a.so"});
  late.ForgetPlaces();
  EXPECT_FALSE(late.Arrive(100));
  EXPECT_EQ(late.files().size(), 1U);
  for (int i = 0; i < 100; ++i)
    late.NoteFile(300, "/lib/" + std::to_string(i));
  EXPECT_EQ(late.files().size(), 64U);
}

}  // namespace
}  // namespace heapprofd
