#include "hprof/class_table.h"

#include <gtest/gtest.h>

namespace heapprofd::hprof {
namespace {

// Class `id` below `super`.
uint32_t Add(ClassTable* classes, uint64_t id, uint64_t super) {
  const uint32_t row = classes->RowOf(id);
  (*classes)[row].super = super;
  return row;
}

TEST(ClassTableTest, AncestryEndsWhereTheDumpHasNoSuperclass) {
  ClassTable classes;
  const uint32_t top = Add(&classes, 10, 0);
  const uint32_t middle = Add(&classes, 20, 10);
  const uint32_t orphan = Add(&classes, 40, 99);
  const uint32_t leaf = Add(&classes, 30, 20);
  EXPECT_EQ(classes.Ancestry(leaf), (std::vector<uint32_t>{leaf, middle, top}));
  EXPECT_EQ(classes.Ancestry(orphan), (std::vector<uint32_t>{orphan}));
}

TEST(ClassTableTest, ACircleIsWalkedOnce) {
  ClassTable classes;
  const uint32_t own = Add(&classes, 10, 10);
  EXPECT_EQ(classes.Ancestry(own), (std::vector<uint32_t>{own}));
  const uint32_t one = Add(&classes, 20, 30);
  const uint32_t other = Add(&classes, 30, 20);
  const uint32_t outside = Add(&classes, 40, 20);
  EXPECT_EQ(classes.Ancestry(outside), (std::vector<uint32_t>{outside, one, other}));
}

// A walk of which each step looked through those before took half a minute here.
TEST(ClassTableTest, DeepChainsAreCutAndTakeNoTime) {
  constexpr uint64_t kClasses = 20'000;
  ClassTable classes;
  for (uint64_t id = 1; id <= kClasses; ++id)
    Add(&classes, id, id - 1);
  size_t rows = 0;
  for (uint64_t id = 1; id <= kClasses; ++id)
    rows += classes.Ancestry(classes.Find(id)).size();
  EXPECT_EQ(rows, 1000 * (kClasses - 1000) + 1000 * 1001 / 2);
}

}  // namespace
}  // namespace heapprofd::hprof
