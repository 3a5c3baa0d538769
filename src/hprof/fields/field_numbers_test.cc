#include "hprof/fields/field_numbers.h"

#include <gtest/gtest.h>

#include <random>

namespace heapprofd::hprof {
namespace {

constexpr uint32_t kFirstObject = 7;
constexpr uint32_t kFirstType = 3;

// Objects in between have none, more than fit in a step.
TEST(FieldNumbers, AreThoseOfCountingThrough) {
  const std::vector<uint32_t> fields_of = {0, 1, 5, 200};
  std::mt19937 random(1);
  Column<uint32_t> types;
  types.resize(kFirstObject, 0);
  std::vector<std::pair<uint32_t, uint32_t>> owners;  // by field
  std::vector<uint64_t> first;                        // by object
  for (uint32_t object = 0; object < 1000; ++object) {
    const uint32_t type =
        object > 300 && object < 600 ? 0 : static_cast<uint32_t>(random() % 4);
    types.push_back(kFirstType + type);
    first.push_back(owners.size());
    for (uint32_t field = 0; field < fields_of[type]; ++field)
      owners.emplace_back(object, field);
  }
  const FieldNumbers numbers(types, kFirstObject, 1000, kFirstType, fields_of);
  ASSERT_EQ(numbers.count(), owners.size());
  for (uint64_t field = 0; field < owners.size(); ++field)
    ASSERT_EQ(numbers.OwnerOf(field), owners[field]) << field;
  for (uint64_t field = owners.size(); field-- > 0;)
    ASSERT_EQ(numbers.OwnerOf(field), owners[field]) << field;
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t field = random() % owners.size();
    ASSERT_EQ(numbers.OwnerOf(field), owners[field]) << field;
    const auto object = static_cast<uint32_t>(random() % 1000);
    ASSERT_EQ(numbers.FirstOf(object), first[object]) << object;
  }
  EXPECT_EQ(numbers.FirstOf(1000), owners.size());
}

TEST(FieldNumbers, OfNothing) {
  const Column<uint32_t> types;
  const FieldNumbers numbers(types, 0, 0, 0, {});
  EXPECT_EQ(numbers.count(), 0u);
  EXPECT_EQ(numbers.FirstOf(0), 0u);
}

}  // namespace
}  // namespace heapprofd::hprof
