#include "import/perfetto/read_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>

namespace heapprofd {
namespace {

constexpr size_t kSize = size_t{20} << 20;

char ByteAt(size_t position) {
  return static_cast<char>(position * 31 + position / 4096);
}

// Gives kSize bytes in pieces of many lengths, then ends or fails.
class PiecesSource : public ByteSource {
 public:
  explicit PiecesSource(Status end) : end_(std::move(end)) {}

  Result<size_t> Read(std::span<char> output) override {
    const size_t piece = 1 + given_ * 7919 % 300'000;
    const size_t count = std::min({output.size(), piece, kSize - given_});
    if (count == 0 && !end_.ok())
      return end_;
    for (size_t i = 0; i < count; ++i)
      output[i] = ByteAt(given_ + i);
    given_ += count;
    return count;
  }

  size_t given() const { return given_; }

 private:
  Status end_;
  std::atomic<size_t> given_ = 0;
};

// Reads all in pieces of `step` bytes; says how many were as expected.
size_t ReadAll(ByteSource& source, size_t step, Status* end) {
  std::string piece(step, '\0');
  size_t position = 0;
  while (true) {
    Result<size_t> count = source.Read(piece);
    if (!count.ok())
      *end = std::move(count).status();
    if (!count.ok() || count.value() == 0)
      return position;
    for (size_t i = 0; i < count.value(); ++i, ++position) {
      if (piece[i] != ByteAt(position))
        return position;
    }
  }
}

TEST(ReadAheadTest, AllBytesArriveInOrderWhateverThePieces) {
  for (const size_t step : {size_t{1000}, size_t{1} << 20, size_t{3'000'001}}) {
    PiecesSource pieces{Status()};
    ReadAheadSource ahead(&pieces);
    Status end;
    EXPECT_EQ(ReadAll(ahead, step, &end), kSize);
    EXPECT_TRUE(end.ok());
    char more = 0;
    EXPECT_EQ(ahead.Read({&more, 1}).value(), 0u);  // the end stays the end
  }
}

TEST(ReadAheadTest, AnErrorComesBehindTheBytesBeforeItAndStays) {
  PiecesSource pieces{Status(StatusCode::kCorrupt, "broken")};
  ReadAheadSource ahead(&pieces);
  Status end;
  EXPECT_EQ(ReadAll(ahead, 4096, &end), kSize);
  EXPECT_EQ(end.code(), StatusCode::kCorrupt);
  char more = 0;
  EXPECT_FALSE(ahead.Read({&more, 1}).ok());
}

TEST(ReadAheadTest, WhoStopsReadingNeedNotReadToTheEnd) {
  PiecesSource pieces{Status()};
  {
    ReadAheadSource ahead(&pieces);
    char first = 1;
    ASSERT_EQ(ahead.Read({&first, 1}).value(), 1u);
    EXPECT_EQ(first, ByteAt(0));
    ahead.Stop();
    EXPECT_EQ(ahead.Read({&first, 1}).value(), 0u);
  }
  EXPECT_LT(pieces.given(), kSize);
}

TEST(ReadAheadTest, AShortSourceIsRead) {
  const std::string bytes = "short";
  MemorySource memory(bytes);
  ReadAheadSource ahead(&memory);
  std::string output(10, '\0');
  EXPECT_EQ(ahead.ReadFully(output).value(), 5u);
  EXPECT_EQ(output.substr(0, 5), bytes);
}

}  // namespace
}  // namespace heapprofd
