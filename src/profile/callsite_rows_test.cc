#include "profile/callsite_rows.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace heapprofd {
namespace {

TEST(CallsiteRows, AreInTheOrderOfTheirIdsHoweverTheyCome) {
  std::mt19937 random(3);
  CallsiteRows<int> rows;
  std::map<uint32_t, int> model;
  for (int i = 0; i < 2000; ++i) {
    const auto id = static_cast<uint32_t>(random() % 500);
    if (random() % 2 == 0) {
      rows.emplace(id, i);
      model.emplace(id, i);
    } else {
      rows[id] += i;
      model[id] += i;
    }
  }
  ASSERT_EQ(rows.size(), model.size());
  EXPECT_TRUE(std::equal(rows.begin(), rows.end(), model.begin(),
                         [](const auto& row, const auto& entry) {
                           return row.first == entry.first && row.second == entry.second;
                         }));
  for (uint32_t id = 0; id < 500; ++id) {
    ASSERT_EQ(rows.find(id) != rows.end(), model.contains(id));
    ASSERT_TRUE(!model.contains(id) || rows.at(id) == model.at(id));
  }
}

TEST(CallsiteRows, NoneAreFoundInNone) {
  const CallsiteRows<int> rows;
  EXPECT_TRUE(rows.empty());
  EXPECT_EQ(rows.find(0), rows.end());
  EXPECT_EQ(rows.find(7), rows.end());
}

}  // namespace
}  // namespace heapprofd
