#include "cli/managed/left_out_dumps.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(LeftOutDumpsTest, WithoutOneNothingIsSaid) {
  EXPECT_EQ(LeftOutDumps().Text(3), "");
}

TEST(LeftOutDumpsTest, OneIsSaidWithItsReason) {
  LeftOutDumps dumps;
  dumps.NoteEnding();
  EXPECT_EQ(dumps.Text(3),
            "heap_profile: 1 dump of the Java heap was left out: 1 because the recording "
            "was ending\n");
}

TEST(LeftOutDumpsTest, SeveralAreCountedByTheirReasons) {
  LeftOutDumps dumps;
  dumps.NoteUnasked("it sleeps");
  dumps.NoteUnasked("it has ended");
  dumps.NoteBeyond();
  dumps.NoteBusy();
  dumps.NoteBusy();
  EXPECT_EQ(
      dumps.Text(3),
      "heap_profile: 5 dumps of the Java heap were left out: 2 because another one "
      "was being taken; 1 because --java-dumps allows 3; 2 because there was nobody "
      "to ask (it has ended)\n");
}

}  // namespace
}  // namespace heapprofd
