#include "hotspot/side_file.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

constexpr uint64_t kKibibyte = 1024;

TEST(SideFileTest, EachCollectorTellsWhatIsUsed) {
  EXPECT_EQ(UsedHeapIn(" DefNew     total 19648K, used 4201K [0x00000000fc000000, 0x0)\n"
                       "  eden space 17472K,  24% used [0x00000000fc000000, 0x0)\n"
                       " Tenured    total 43712K, used 1166K [0x00000000fd550000, 0x0)\n"
                       "  the  space 43712K,   2% used [0x00000000fd550000, 0x0)\n"),
            (4201 + 1166) * kKibibyte);
  EXPECT_EQ(UsedHeapIn("garbage-first heap   total 65536K, used 4266K [0x0, 0x1)\n"
                       "  region size 1024K, 4 young (4096K), 0 survivors (0K)\n"
                       " Metaspace       used 74K, committed 320K, reserved 1114112K\n"
                       "  class space    used 3K, committed 128K\n"),
            4266 * kKibibyte);
  EXPECT_EQ(UsedHeapIn("ZHeap            used 6M, capacity 64M, max capacity 64M\n"
                       " Cache           58M (1)\n"),
            6 * kKibibyte * kKibibyte);
  EXPECT_EQ(UsedHeapIn("Shenandoah Heap\n 65536K max, 65536K committed, 5120K used\n"
                       " 256 x 256 K regions\n"),
            5120 * kKibibyte);
}

TEST(SideFileTest, WhatSaysNothingOfItHasNone) {
  for (const char* text :
       {"", "used", "used 12", "u", "% used", "12% used [0x1)", " used"})
    EXPECT_EQ(UsedHeapIn(text), 0u) << text;
}

}  // namespace
}  // namespace heapprofd
