#include "service/visitor_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace heapprofd {
namespace {

Visitor VisitorOf(uid_t user, uint64_t number, uint64_t deadline_ns = 0) {
  Visitor visitor;
  visitor.rights.user = user;
  visitor.number = number;
  visitor.deadline_ns = deadline_ns;
  return visitor;
}

TEST(VisitorQueueTest, UsersTakeTurnsAndEachKeepsHisOrder) {
  VisitorQueue queue;
  for (uint64_t number = 1; number <= 3; ++number)
    queue.Add(VisitorOf(7, number));
  queue.Add(VisitorOf(8, 4));
  EXPECT_EQ(queue.size(), 4u);
  EXPECT_EQ(queue.size_of(7), 3u);
  EXPECT_EQ(queue.size_of(9), 0u);
  std::vector<uint64_t> order;
  while (!queue.empty()) {
    const uint64_t next = queue.next().number;
    order.push_back(queue.Take().number);
    EXPECT_EQ(order.back(), next);
  }
  EXPECT_EQ(order, std::vector<uint64_t>({1, 4, 2, 3}));
  EXPECT_EQ(queue.size(), 0u);
}

TEST(VisitorQueueTest, ThoseWhoseTimeIsUpAreTakenOut) {
  VisitorQueue queue;
  queue.Add(VisitorOf(7, 1, /*deadline_ns=*/10));
  queue.Add(VisitorOf(7, 2, /*deadline_ns=*/30));
  queue.Add(VisitorOf(8, 3, /*deadline_ns=*/20));
  EXPECT_TRUE(queue.TakeOverdue(9).empty());
  const std::deque<Visitor> overdue = queue.TakeOverdue(20);
  ASSERT_EQ(overdue.size(), 2u);
  EXPECT_EQ(overdue[0].number, 1u);
  EXPECT_EQ(overdue[1].number, 3u);
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue.size_of(8), 0u);
  EXPECT_EQ(queue.Take().number, 2u);
}

TEST(VisitorQueueTest, EverybodyIsSeenOnce) {
  VisitorQueue queue;
  queue.Add(VisitorOf(7, 1));
  queue.Add(VisitorOf(8, 2));
  uint64_t sum = 0;
  queue.ForEach([&sum](Visitor& visitor) { sum += visitor.number; });
  EXPECT_EQ(sum, 3u);
  queue.clear();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.size(), 0u);
}

}  // namespace
}  // namespace heapprofd
