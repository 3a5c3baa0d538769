// What several threads inflate is what one would have.
#include "hprof/inflate_members.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <random>
#include <string>

#include "base/fd_path.h"
#include "base/scoped_fd.h"
#include "hprof/mapped_input.h"
#include "import/perfetto/byte_source.h"

namespace heapprofd::hprof {
namespace {

std::string Gzip(const std::string& bytes, int level = 1, int has_header_checksum = 0) {
  constexpr int kGzip = 15 + 16;
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY), Z_OK);
  gz_header header{};
  header.hcrc = has_header_checksum;
  EXPECT_EQ(deflateSetHeader(&stream, &header), Z_OK);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// Hardly compresses.
std::string Noise(size_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::string text(bytes, '\0');
  std::generate(text.begin(), text.end(),
                [&random] { return static_cast<char>(random()); });
  return text;
}

struct Chain {
  std::string packed;
  std::string plain;

  void Add(const std::string& bytes, int level = 1) {
    packed += Gzip(bytes, level);
    plain += bytes;
  }
};

Chain MembersOf(size_t count, size_t bytes) {
  Chain chain;
  for (uint32_t i = 0; i < count; ++i)
    chain.Add(Noise(bytes + i, i));
  return chain;
}

// What is in the file, as far as the part goes.
std::string Inflated(const std::string& packed, InflatedPart* part) {
  const ScopedFd to(memfd_create("inflated", MFD_CLOEXEC));
  EXPECT_EQ(InflateMembers(packed, to.get(), part), 0);
  std::string bytes(part->inflated, '\0');
  EXPECT_EQ(pread(to.get(), bytes.data(), bytes.size(), 0),
            static_cast<ssize_t>(bytes.size()));
  return bytes;
}

// The same by everything that opens a dump.
std::string Opened(const std::string& packed, std::string* damage) {
  const ScopedFd file(memfd_create("packed", MFD_CLOEXEC));
  EXPECT_EQ(write(file.get(), packed.data(), packed.size()),
            static_cast<ssize_t>(packed.size()));
  const Result<MappedInput> input = MappedInput::Open(FdPath(file.get()));
  EXPECT_TRUE(input.ok());
  *damage = input.value().damage();
  return std::string(input.value().bytes());
}

TEST(InflateMembersTest, ManyMembersBecomeOneFile) {
  const Chain chain = MembersOf(40, 100'000);
  InflatedPart part;
  EXPECT_TRUE(Inflated(chain.packed, &part) == chain.plain);
  EXPECT_EQ(part.compressed, chain.packed.size());
}

TEST(InflateMembersTest, SmallAndEmptyMembersShareAThread) {
  Chain chain;
  for (uint32_t i = 0; i < 5000; ++i)
    chain.Add(i % 7 == 0 ? "" : Noise(i % 400, i));
  InflatedPart part;
  EXPECT_TRUE(Inflated(chain.packed, &part) == chain.plain);
  EXPECT_EQ(part.compressed, chain.packed.size());
}

TEST(InflateMembersTest, OneMemberIsLeftToOthers) {
  const Chain chain = MembersOf(1, 1'000'000);
  InflatedPart part;
  EXPECT_EQ(Inflated(chain.packed, &part), "");
  EXPECT_EQ(part.compressed, 0u);
  std::string damage;
  EXPECT_TRUE(Opened(chain.packed, &damage) == chain.plain);
  EXPECT_EQ(damage, "");
}

// HotSpot's have 1 MiB each: the end of a member comes when its last piece is full.
TEST(InflateMembersTest, MembersOfWholePiecesAreWhole) {
  Chain chain;
  for (uint32_t i = 0; i < 4; ++i) {
    chain.Add(Noise(size_t{1} << 20, i));
    chain.Add(std::string(size_t{1} << 20, 'x'));
  }
  InflatedPart part;
  EXPECT_TRUE(Inflated(chain.packed, &part) == chain.plain);
  EXPECT_EQ(part.compressed, chain.packed.size());
}

// Among those that are inflated at once.
TEST(InflateMembersTest, LargeMembersAndThoseWithCheckedHeadersAreWhole) {
  Chain chain;
  for (uint32_t i = 0; i < 4; ++i) {
    chain.Add(Noise((size_t{3} << 20) + i, i));
    const std::string bytes = Noise(100'000, 100 + i);
    chain.packed += Gzip(bytes, 1, /*has_header_checksum=*/1);
    chain.plain += bytes;
    chain.Add(Noise(300'000, 200 + i));
  }
  InflatedPart part;
  EXPECT_TRUE(Inflated(chain.packed, &part) == chain.plain);
  EXPECT_EQ(part.compressed, chain.packed.size());
}

// Stored members hold whole gzip files, which are no members.
TEST(InflateMembersTest, WhatLooksLikeAMemberInsideOfOneIsNone) {
  const std::string inner = Gzip(Noise(300'000, 1));
  Chain chain;
  for (int i = 0; i < 4; ++i)
    chain.Add(inner + inner + inner, 0);
  std::string damage;
  EXPECT_TRUE(Opened(chain.packed, &damage) == chain.plain);
  EXPECT_EQ(damage, "");
}

TEST(InflateMembersTest, UpToWhereItIsCut) {
  const Chain chain = MembersOf(6, 300'000);
  for (const size_t cut : {1u, 8u, 100'000u, 290'000u, 700'000u}) {
    std::string damage;
    const std::string bytes =
        Opened(chain.packed.substr(0, chain.packed.size() - cut), &damage);
    EXPECT_EQ(damage, "it ends in the middle of a compressed stream");
    EXPECT_GE(bytes.size() + cut + 1000, chain.plain.size());
    EXPECT_TRUE(chain.plain.starts_with(bytes));
  }
}

TEST(InflateMembersTest, UpToWhereItIsDamaged) {
  Chain chain = MembersOf(6, 300'000);
  const size_t at = chain.packed.size() * 5 / 12;  // in the middle of the third
  chain.packed.replace(at, 4, "\xff\xff\xff\xff");
  std::string damage;
  const std::string bytes = Opened(chain.packed, &damage);
  EXPECT_TRUE(damage.starts_with("cannot inflate: ")) << damage;
  EXPECT_GE(bytes.size(), size_t{600'000});
  EXPECT_LT(bytes.size(), chain.plain.size());
}

TEST(InflateMembersTest, WhatFollowsTheMembersIsPartOfTheFile) {
  const Chain chain = MembersOf(6, 300'000);
  std::string damage;
  EXPECT_TRUE(Opened(chain.packed + "plain", &damage) == chain.plain + "plain");
}

// As one thread does it: what a hostile file makes of both is the same.
TEST(InflateMembersTest, WhateverIsInTheFileThePartIsWhatOneThreadInflates) {
  std::mt19937 random(17);
  const auto below = [&random](size_t end) { return random() % end; };
  uint64_t done = 0;
  for (uint32_t round = 0; round < 2000; ++round) {
    std::string packed;
    for (size_t members = 1 + below(6); members > 0; --members)
      packed += Gzip(Noise(below(60), round), static_cast<int>(below(3)));
    if (below(4) != 0)
      packed[below(packed.size())] ^= static_cast<char>(1u << below(8));
    if (below(3) == 0)
      packed.insert(below(packed.size()), packed.substr(below(packed.size()), below(40)));
    const ScopedFd to(memfd_create("inflated", MFD_CLOEXEC));
    InflatedPart part;
    ASSERT_EQ(InflateMembers(packed, to.get(), &part, 1), 0);
    std::string parts(part.inflated, '\0');
    ASSERT_EQ(pread(to.get(), parts.data(), parts.size(), 0),
              static_cast<ssize_t>(parts.size()));
    MemorySource source(packed);
    InflatingSource inflating(&source);
    std::string whole(part.inflated, '\0');
    const Result<size_t> count = inflating.ReadFully(whole);
    ASSERT_TRUE(count.ok()) << round;
    ASSERT_TRUE(parts == whole) << round;
    done += part.inflated;
  }
  EXPECT_GT(done, 10'000u);
}

// A member says to have more bytes than a file of its size can have.
TEST(InflateMembersTest, ForgedLengthsAreNotBelieved) {
  Chain chain = MembersOf(6, 300'000);
  std::string forged;
  for (uint32_t i = 0; i < 6; ++i) {
    std::string member = Gzip(Noise(300'000 + i, i));
    member.replace(member.size() - 4, 4,
                   i == 3 ? "\xff\xff\xff\xff" : member.substr(member.size() - 4));
    forged += member;
  }
  InflatedPart part;
  const std::string bytes = Inflated(forged, &part);
  EXPECT_TRUE(chain.plain.starts_with(bytes));
  EXPECT_LT(part.compressed, forged.size());
}

}  // namespace
}  // namespace heapprofd::hprof
