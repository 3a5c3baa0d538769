// Columns within and beyond a budget. The budget is that of the process: one test sets it.
#include "base/column_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "base/column.h"

namespace heapprofd {
namespace {

void Fill(Column<uint64_t>* column, uint64_t rows) {
  for (uint64_t row = column->size(); row < rows; ++row)
    column->push_back(row * 3);
}

bool IsFilled(const Column<uint64_t>& column) {
  for (uint64_t row = 0; row < column.size(); ++row) {
    if (column[row] != row * 3)
      return false;
  }
  return true;
}

TEST(ColumnMemoryTest, WhatIsBeyondTheBudgetIsInFiles) {
  if (!SetColumnBudget({.bytes = 4 << 20, .directory = "/var/tmp"}).ok())
    GTEST_SKIP() << "/var/tmp is in memory";
  const uint64_t before = ColumnBytesInMemory();
  {
    Column<uint64_t> first;
    Fill(&first, 100'000);  // 800 kB
    EXPECT_EQ(ColumnBytesInFiles(), 0u);
    EXPECT_GE(ColumnBytesInMemory(), before + 800'000);
    Column<uint64_t> second;
    Fill(&second, 1'000'000);  // moved there while it grew
    EXPECT_GE(ColumnBytesInFiles(), 8'000'000u);
    EXPECT_LE(ColumnBytesInMemory(), uint64_t{4} << 20);
    EXPECT_TRUE(IsFilled(first));
    EXPECT_TRUE(IsFilled(second));
    Column<uint64_t> third = std::move(second);
    Fill(&third, 3'000'000);
    EXPECT_TRUE(IsFilled(third));
    third = Column<uint64_t>();
    EXPECT_EQ(ColumnBytesInFiles(), 0u);
  }
  EXPECT_EQ(ColumnBytesInMemory(), before);
}

TEST(ColumnMemoryTest, ADirectoryInMemoryIsRefused) {
  const Status status = SetColumnBudget({.bytes = 1, .directory = "/dev/shm"});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "cannot keep to a memory budget: files in /dev/shm are in memory themselves; "
            "name a directory on a disk in TMPDIR");
  EXPECT_EQ(SetColumnBudget({.bytes = 1, .directory = "/nonexistent"}).code(),
            StatusCode::kIo);
}

// In a process of its own, whose files may not become large.
TEST(ColumnMemoryDeathTest, WithoutRoomTheProgramIsToldAndEnds) {
  const auto run = [] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    (void)SetColumnBudget(
        {.bytes = 1, .directory = "/var/tmp", .give_up = [](const std::string& why) {
           fprintf(stderr, "gave up: %s\n", why.c_str());
           _exit(7);
         }});
    Column<uint64_t> column;
    Fill(&column, 1'000'000);
    _exit(ColumnBytesInFiles() == 0 ? 7 : 0);  // /var/tmp is in memory
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace heapprofd
