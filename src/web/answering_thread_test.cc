#include "web/answering_thread.h"

#include <gtest/gtest.h>

#include <future>

namespace heapprofd {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{60'000};

class AnsweringThreadTest : public ::testing::Test {
 protected:
  // Runs until `let_go_` is given.
  uint64_t SubmitLongOne() {
    const uint64_t number = thread_.Submit([this] {
      began_.set_value();
      let_go_.get_future().wait();
    });
    began_.get_future().wait();
    return number;
  }

  std::atomic<bool> cancel_ = false;
  std::promise<void> began_;
  std::promise<void> let_go_;
  AnsweringThread thread_{2, &cancel_};
};

TEST_F(AnsweringThreadTest, WorksInOrder) {
  std::string done;
  std::promise<void> end;
  EXPECT_EQ(thread_.Submit([&] { done += "a"; }), 1u);
  while (thread_.Submit([&] {
    done += "b";
    end.set_value();
  }) == 0)
    std::this_thread::yield();
  end.get_future().wait();
  EXPECT_EQ(done, "ab");
}

TEST_F(AnsweringThreadTest, TakesNoMoreThanItsShare) {
  EXPECT_NE(SubmitLongOne(), 0u);
  EXPECT_NE(thread_.Submit([] {}), 0u);
  EXPECT_EQ(thread_.Submit([] {}), 0u);
  let_go_.set_value();
}

TEST_F(AnsweringThreadTest, CountsWhatIsBefore) {
  const uint64_t at_work = SubmitLongOne();
  const uint64_t waiting = thread_.Submit([] {});
  EXPECT_EQ(thread_.CountAhead(at_work), 0u);
  EXPECT_EQ(thread_.CountAhead(waiting), 1u);
  EXPECT_EQ(thread_.CountAhead(waiting + 1), 2u);
  thread_.Cancel(waiting);
  EXPECT_EQ(thread_.CountAhead(waiting + 1), 1u);
  let_go_.set_value();
}

TEST_F(AnsweringThreadTest, CancelsOnlyWhatIsMeant) {
  const uint64_t at_work = SubmitLongOne();
  std::atomic<bool> has_run = false;
  const uint64_t waiting = thread_.Submit([&] { has_run = true; });
  thread_.Cancel(waiting);
  EXPECT_FALSE(cancel_);
  thread_.Cancel(at_work);
  EXPECT_TRUE(cancel_);
  let_go_.set_value();
  EXPECT_TRUE(thread_.Stop(kPatience));
  EXPECT_FALSE(has_run);
}

TEST_F(AnsweringThreadTest, TheNextOneIsNotCancelled) {
  const uint64_t number = SubmitLongOne();
  std::promise<bool> is_cancelled;
  thread_.Submit([&] { is_cancelled.set_value(cancel_); });
  thread_.Cancel(number);
  let_go_.set_value();
  EXPECT_FALSE(is_cancelled.get_future().get());
}

TEST_F(AnsweringThreadTest, DoesNotWaitForWhatDoesNotEnd) {
  SubmitLongOne();
  EXPECT_FALSE(thread_.Stop(milliseconds(1)));
  EXPECT_TRUE(cancel_);
  EXPECT_EQ(thread_.Submit([] {}), 0u);
  let_go_.set_value();
}

}  // namespace
}  // namespace heapprofd
