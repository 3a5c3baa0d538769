#include "hotspot/machine_memory.h"

#include <gtest/gtest.h>

#include "hotspot/resident_memory.h"

namespace heapprofd {
namespace {

constexpr uint64_t kKib = 1024;

// What is said of the heap by each collector, of JDK 17 where not said otherwise.
struct HeapText {
  const char* text;
  uint64_t used_kib;
  uint64_t committed_kib;
};

TEST(MachineMemoryTest, EachCollectorsHeapIsUnderstood) {
  const HeapText texts[] = {
      {" def new generation   total 78656K, used 24040K [0x00000000f0000000, "
       "0x00000000f5550000, 0x00000000f5550000)\n"
       "  eden space 69952K,  34% used [0x00000000f0000000, 0x00000000f177a308, "
       "0x00000000f4450000)\n"
       " tenured generation   total 174784K, used 8K [0x00000000f5550000, "
       "0x0000000100000000, 0x0000000100000000)\n"
       "   the space 174784K,   0% used [0x00000000f5550000, 0x0000000100000000)\n",
       24048, 253440},
      {" garbage-first heap   total 262144K, used 13202K [0x00000000f0000000, "
       "0x0000000100000000)\n"
       "  region size 1024K, 11 young (11264K), 2 survivors (2048K)\n",
       13202, 262144},
      {" garbage-first heap   total reserved 4194304K, committed 262144K, used 1400K "
       "[0x00000000f0000000, 0x0000000100000000)\n",  // JDK 25
       1400, 262144},
      {" ZHeap           used 24M, capacity 256M, max capacity 256M\n", 24 * 1024,
       256 * 1024},
      {"Shenandoah Heap\n 256M max, 256M soft max, 256M committed, 21376K used\n 1024 x "
       "256K regions\n"
       "Reserved region:\n - [0x00000000f0000000, 0x0000000100000000) \n",
       21376, 256 * 1024}};
  for (const HeapText& heap : texts) {
    const MachineMemory memory = MachineMemoryIn(heap.text);
    ASSERT_TRUE(memory.heap.has_value()) << heap.text;
    EXPECT_EQ(memory.heap->used, heap.used_kib * kKib) << heap.text;
    EXPECT_EQ(memory.heap->committed, heap.committed_kib * kKib) << heap.text;
    if (std::string_view(heap.text).find("0x") != std::string_view::npos) {
      EXPECT_EQ(memory.heap_ranges.front().begin, 0xf0000000);
      EXPECT_EQ(memory.heap_ranges.back().end, 0x100000000);
    }
  }
}

TEST(MachineMemoryTest, ClassesAndCodeAreUnderstood) {
  const MachineMemory memory = MachineMemoryIn(
      " Metaspace       used 9451K, committed 9664K, reserved 1114112K\n"
      "  class space    used 1152K, committed 1280K, reserved 1048576K\n"
      "CodeHeap 'profiled nmethods': size=120032Kb used=10Kb max_used=1989Kb "
      "free=118042Kb\n"
      " bounds [0x1000, 0x5000, 0x9000]\n"
      "CodeHeap 'non-nmethods': size=5692Kb used=2Kb max_used=1149Kb free=4551Kb\n"
      " bounds [0xa000, 0xb000, 0xf000]\n");
  ASSERT_TRUE(memory.metaspace && memory.code);
  EXPECT_FALSE(memory.heap.has_value());
  EXPECT_EQ(memory.metaspace->used, 9451 * kKib);
  EXPECT_EQ(memory.metaspace->committed, 9664 * kKib);
  EXPECT_EQ(memory.code->used, 12 * kKib);
  EXPECT_EQ(memory.code->committed, 0x5000);
  EXPECT_EQ(memory.code_ranges.size(), 2);
}

TEST(MachineMemoryTest, WhatIsNotUnderstoodIsLeftOut) {
  for (const char* text :
       {"", "\n\n", " total ", "x total used ", "x total 99999999999999999999K, used 1K",
        "Metaspace used 5", " bounds [0x5, 0x1, 0x9]",
        "CodeHeap used=1Kb\n bounds [0x, 0x", "- [0x9, 0x1)", " soft max, "}) {
    const MachineMemory memory = MachineMemoryIn(text);
    EXPECT_FALSE(memory.heap || memory.metaspace || memory.code) << text;
    EXPECT_TRUE(memory.heap_ranges.empty() && memory.code_ranges.empty()) << text;
  }
}

TEST(ResidentMemoryTest, EachMappingBelongsSomewhere) {
  MachineMemory memory;
  memory.heap_ranges = {{0x10000, 0x20000}};
  memory.code_ranges = {{0x30000, 0x40000}};
  const ResidentMemory sums = ResidentMemoryIn(
      "10000-18000 rw-p 00000000 00:00 0 \nSize: 99 kB\nRss:      1 kB\n"
      "18000-20000 rw-p 00000000 fe:00 7      /x/classes.jsa\nRss: 2 kB\n"  // in the heap
      "30000-31000 rwxp 00000000 00:00 0\nRss: 4 kB\n"
      "50000-60000 rw-p 00000000 00:00 0 \nRss: 8 kB\n"
      "60000-61000 r-xp 00000000 fe:00 7      /usr/lib/a b.so\nRss: 16 kB\n"
      "70000-71000 rw-s 00000000 00:01 7      /memfd:java_heap (deleted)\nRss: 96 "
      "kB\nPss: 32 kB\n"
      "80000-81000 rw-p 00000000 00:00 0      [heap]\nRss: 64 kB\n"
      "90000-91000 rw-p 00000000 00:00 0      [stack]\nRss: 128 kB\nVmFlags: rd\n",
      memory, {0, 0x50010, 0x90100, 0x99999});
  EXPECT_EQ(sums.heap, 35 * kKib);
  EXPECT_EQ(sums.code, 4 * kKib);
  EXPECT_EQ(sums.stacks, 136 * kKib);
  EXPECT_EQ(sums.files, 16 * kKib);
  EXPECT_EQ(sums.rest, 64 * kKib);
  EXPECT_EQ(sums.all, 255 * kKib);
  EXPECT_EQ(sums.stack_count, 2);
  EXPECT_EQ(sums.thread_count, 4);
}

TEST(ResidentMemoryTest, OddTextIsNoHarm) {
  for (const char* text : {"", "Rss:", "Rss: x", "1-2", "1-", "zz-1 a", "1-2 rw-p",
                           "10000-20000 \nRss: 1 kB"})
    EXPECT_LE(ResidentMemoryIn(text, {}, {0x10001}).all, 1 * kKib) << text;
}

}  // namespace
}  // namespace heapprofd
