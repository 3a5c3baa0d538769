// What is mapped next to something of its kind is one stretch; gaps are nothing.
#include "unwind/mapped_memory.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

MapEntry Entry(uint64_t start, uint64_t end, bool writable, bool executable) {
  MapEntry entry;
  entry.start = start;
  entry.end = end;
  entry.readable = true;
  entry.writable = writable;
  entry.executable = executable;
  return entry;
}

TEST(MappedMemoryTest, EachAddressIsOfTheKindOfItsMapping) {
  MappedMemory memory;
  memory.Note(Entry(10, 20, /*writable=*/false, /*executable=*/true));
  memory.Note(Entry(20, 30, false, true));
  memory.Note(Entry(30, 40, true, false));
  memory.Note(Entry(50, 60, true, false));
  const std::pair<uint64_t, MemoryKind> cases[] = {
      {9, MemoryKind::kNone},         {10, MemoryKind::kExecutable},
      {29, MemoryKind::kExecutable},  {30, MemoryKind::kData},
      {39, MemoryKind::kData},        {40, MemoryKind::kNone},
      {59, MemoryKind::kData},        {60, MemoryKind::kNone},
      {UINT64_MAX, MemoryKind::kNone}};
  for (const auto& [address, kind] : cases)
    EXPECT_EQ(memory.KindAt(address), kind) << address;
}

TEST(MappedMemoryTest, StacksCanBeWhereItIsReadAndWritten) {
  MappedMemory memory;
  MapEntry unreadable = Entry(1, 2, true, false);
  unreadable.readable = false;
  memory.Note(unreadable);
  memory.Note(Entry(10, 20, false, true));
  memory.Note(Entry(30, 40, true, false));
  ASSERT_EQ(memory.writable().size(), 1u);
  EXPECT_EQ(memory.writable()[0].start, 30u);
  EXPECT_EQ(memory.writable()[0].end, 40u);
}

TEST(MappedMemoryTest, WithoutAnythingThereIsNothing) {
  EXPECT_EQ(MappedMemory().KindAt(0), MemoryKind::kNone);
}

}  // namespace
}  // namespace heapprofd
