#include "engine/target/sample_parts.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace heapprofd {
namespace {

class PayloadBuilder {
 public:
  SampleRecord record{.address = 0x1000,
                      .size = 64,
                      .tsc = 1,
                      .outer_hash = 5,
                      .interval = 4096,
                      .function = 0,
                      .thread_id = 7,
                      .frame_count = 0,
                      .heap_id = 0,
                      .flags = 0};
  std::vector<uint64_t> keys;
  StackCopyHeader copy{.key = 1, .sp = 2, .bp = 3, .size = 0};
  std::vector<std::byte> copy_bytes;

  std::vector<std::byte> Build() const {
    std::vector<std::byte> payload;
    Append(payload, &record, sizeof(record));
    Append(payload, keys.data(), keys.size() * sizeof(uint64_t));
    if ((record.flags & kSampleHasStackCopy) != 0) {
      Append(payload, &copy, sizeof(copy));
      Append(payload, copy_bytes.data(), copy_bytes.size());
    }
    return payload;
  }

 private:
  static void Append(std::vector<std::byte>& to, const void* from, size_t size) {
    const auto* bytes = static_cast<const std::byte*>(from);
    to.insert(to.end(), bytes, bytes + size);
  }
};

PayloadBuilder WithFramesAndCopy() {
  PayloadBuilder builder;
  builder.keys = {11, 22, 33};
  builder.record.frame_count = 3;
  builder.record.flags = kSampleHasStackCopy;
  builder.copy_bytes.assign(80, std::byte{9});
  builder.copy.size = 80;
  return builder;
}

TEST(ParseSampleTest, ASampleWithoutFramesHasNone) {
  const auto payload = PayloadBuilder().Build();
  const auto parts = ParseSample(payload);
  ASSERT_TRUE(parts.has_value());
  EXPECT_EQ(parts->record.size, 64u);
  EXPECT_TRUE(parts->keys.empty());
  EXPECT_TRUE(parts->copy_bytes.empty());
}

TEST(ParseSampleTest, FramesAndCopyAreTakenApart) {
  const auto payload = WithFramesAndCopy().Build();
  const auto parts = ParseSample(payload);
  ASSERT_TRUE(parts.has_value());
  EXPECT_EQ(std::vector<uint64_t>(parts->keys.begin(), parts->keys.end()),
            (std::vector<uint64_t>{11, 22, 33}));
  EXPECT_EQ(parts->copy.bp, 3u);
  ASSERT_EQ(parts->copy_bytes.size(), 80u);
  EXPECT_EQ(parts->copy_bytes[79], std::byte{9});
}

TEST(ParseSampleTest, EveryOtherLengthOfThePayloadIsRefused) {
  auto payload = WithFramesAndCopy().Build();
  for (size_t size = 0; size < payload.size(); ++size)
    EXPECT_FALSE(ParseSample(std::span(payload).first(size)).has_value()) << size;
  payload.resize(payload.size() + 8);
  EXPECT_FALSE(ParseSample(payload).has_value());
}

TEST(ParseSampleTest, ImpossibleFieldsAreRefused) {
  PayloadBuilder no_interval;
  no_interval.record.interval = 0;
  EXPECT_FALSE(ParseSample(no_interval.Build()).has_value());
  PayloadBuilder no_size;  // its estimate would be 0/0
  no_size.record.size = 0;
  EXPECT_FALSE(ParseSample(no_size.Build()).has_value());
  PayloadBuilder too_many;
  too_many.keys.assign(kMaxFrames + 1, 1);
  too_many.record.frame_count = kMaxFrames + 1;
  EXPECT_FALSE(ParseSample(too_many.Build()).has_value());
  PayloadBuilder too_large = WithFramesAndCopy();
  too_large.copy_bytes.resize(kMaxStackCopy + 8);
  too_large.copy.size = kMaxStackCopy + 8;
  EXPECT_FALSE(ParseSample(too_large.Build()).has_value());
  PayloadBuilder lying = WithFramesAndCopy();
  lying.copy.size = UINT64_MAX;
  EXPECT_FALSE(ParseSample(lying.Build()).has_value());
}

TEST(ParseSampleTest, TheLargestSampleIsAccepted) {
  PayloadBuilder builder = WithFramesAndCopy();
  builder.keys.assign(kMaxFrames, 1);
  builder.record.frame_count = kMaxFrames;
  builder.copy_bytes.resize(kMaxStackCopy);
  builder.copy.size = kMaxStackCopy;
  EXPECT_TRUE(ParseSample(builder.Build()).has_value());
}

TEST(ParseFreeTest, OnlyItsExactLengthIsAccepted) {
  const FreeRecord record{.address = 0x10,
                          .tsc = 2,
                          .thread_id = 3,
                          .heap_id = 0,
                          .is_realloc = 1,
                          .reserved = 0};
  std::vector<std::byte> payload(sizeof(record) + 8);
  memcpy(payload.data(), &record, sizeof(record));
  for (size_t size = 0; size <= payload.size(); ++size) {
    const auto parsed = ParseFree(std::span(payload).first(size));
    ASSERT_EQ(parsed.has_value(), size == sizeof(record)) << size;
    if (parsed) {
      EXPECT_EQ(parsed->address, 0x10u);
      EXPECT_EQ(parsed->is_realloc, 1);
    }
  }
}

}  // namespace
}  // namespace heapprofd
