// The preload library in a program, with this test for an engine: how they meet, what a
// hook finds out about its caller, how the rules that it is given make it walk, what
// comes through the ring. Also where nothing but a client can be built: see
// docs/design/architectures.md.
#include <gtest/gtest.h>

#include <array>
#include <cinttypes>
#include <optional>
#include <vector>

#include "client/preload/test_session.h"
#include "walk/stack_hash.h"
#include "walk/step.h"

namespace heapprofd {
namespace {

// What the program says of its own allocation.
struct Said {
  uint64_t block = 0;
  uint64_t inner = 0;              // address of the function that calls malloc
  std::array<uint64_t, 3> keys{};  // outward from its caller
};

class PreloadSessionTest : public PreloadSession {
 protected:
  Said Allocate() {
    Tell();
    Said said;
    const int got =
        fscanf(output_, "%" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
               &said.block, &said.inner, said.keys.data(), &said.keys[1], &said.keys[2]);
    EXPECT_EQ(got, 5);
    return said;
  }

  static void ExpectIsIn(uint64_t key, uint64_t function) {
    EXPECT_GT(key, function);
    EXPECT_LT(key, function + 200);
  }
};

TEST_F(PreloadSessionTest, WithoutRulesARecordHasTheRegistersOfTheCallerAndItsStack) {
  const Said said = Allocate();
  const std::optional<TestSample> sample = TakeSample(said.block);
  ASSERT_TRUE(sample.has_value());
  EXPECT_EQ(sample->record.thread_id, static_cast<uint32_t>(pid_));
  EXPECT_EQ(sample->record.function, static_cast<uint64_t>(AllocationFunction::kMalloc));
  ASSERT_NE(sample->record.flags & kSampleHasStackCopy, 0);
  EXPECT_TRUE(sample->keys.empty());
  ExpectIsIn(sample->from.key, said.inner);
  // The program keeps frame pointers.
  Cursor cursor{.key = sample->from.key, .sp = sample->from.sp, .bp = sample->from.bp};
  const CopiedTestStack stack{.start = sample->from.sp & ~uint64_t{7},
                              .bytes = sample->copy};
  for (const uint64_t key : said.keys) {
    ASSERT_EQ(Step(kFramePointerRule, cursor, stack), StepResult::kOk);
    EXPECT_EQ(cursor.key, key);
  }
}

TEST_F(PreloadSessionTest, ByTheRulesOfItsFramesTheProgramWalksItsStackItself) {
  const Said said = Allocate();
  const std::optional<TestSample> first = TakeSample(said.block);
  ASSERT_TRUE(first.has_value());
  for (const uint64_t key : {first->from.key, said.keys[0], said.keys[1]})
    rules_->Insert(key, kFramePointerRule);
  rules_->Insert(said.keys[2], {.kind = RuleKind::kEnd});
  const std::optional<TestSample> second = TakeSample(Allocate().block);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->record.flags, 0);
  EXPECT_EQ(second->keys, (std::vector<uint64_t>{first->from.key, said.keys[0],
                                                 said.keys[1], said.keys[2]}));
  // The third time the frames are known.
  const std::optional<TestSample> third = TakeSample(Allocate().block);
  ASSERT_TRUE(third.has_value());
  EXPECT_TRUE(third->keys.empty());
  uint64_t hash = kEmptyStackHash;
  EXPECT_EQ(second->record.outer_hash, hash);
  for (size_t i = second->keys.size(); i-- > 0;)
    hash = ExtendStackHash(hash, second->keys[i]);
  EXPECT_EQ(third->record.outer_hash, hash);
}

TEST_F(PreloadSessionTest, TheFreeOfASampledBlockIsReported) {
  const Said said = Allocate();
  ASSERT_TRUE(TakeSample(said.block).has_value());
  Allocate();  // by now the first is free
  RingReader::Record record;
  bool is_freed = false;
  while (reader_->Read(&record, /*writers_gone=*/false) == RingReader::Outcome::kRecord) {
    FreeRecord freed{};
    if (record.type == RecordType::kFree)
      memcpy(&freed, record.payload.data(), sizeof(freed));
    is_freed |= freed.address == said.block;
  }
  EXPECT_TRUE(is_freed);
}

}  // namespace
}  // namespace heapprofd
