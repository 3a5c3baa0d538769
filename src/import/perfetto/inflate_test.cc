// Whole gzip streams at once: what zlib says of them is true.
#include "import/perfetto/inflate.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <random>
#include <string>

namespace heapprofd {
namespace {

constexpr size_t kMostBytes = size_t{1} << 18;
constexpr int kRaw = -15;  // zlib's windowBits: neither header nor trailer

enum HeaderPart : uint8_t {
  kText = 1,
  kChecksum = 2,
  kExtra = 4,
  kName = 8,
  kComment = 16
};

class Random {
 public:
  explicit Random(uint32_t seed) : random_(seed) {}

  size_t Below(size_t end) { return random_() % end; }

  // Numbers of bits that differ from text to text, with repetitions near and far.
  std::string Bytes(size_t count) {
    const auto different = 1 + Below(256);
    std::string text;
    while (text.size() < count) {
      if (text.empty() || Below(3) == 0)
        text.push_back(static_cast<char>(Below(different)));
      else
        text += text.substr(Below(text.size()), Below(300));
    }
    text.resize(count);
    return text;
  }

 private:
  std::mt19937 random_;
};

std::string Number(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i)
    text.push_back(static_cast<char>(value >> 8 * i));
  return text;
}

std::string Deflate(const std::string& bytes, int level, int strategy) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, kRaw, 8, strategy), Z_OK);
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

uint32_t ChecksumOf(const std::string& bytes) {
  return static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()),
                                     static_cast<uInt>(bytes.size())));
}

std::string Header(size_t parts, Random& random) {
  std::string header = "\x1f\x8b\x08" + std::string(1, static_cast<char>(parts)) +
                       Number(random.Below(1000), 4) + Number(0x0302, 2);
  if ((parts & kExtra) != 0) {
    const size_t bytes = random.Below(300);
    header += Number(bytes, 2) + random.Bytes(bytes);
  }
  for (const HeaderPart part : {kName, kComment}) {
    if ((parts & part) != 0)
      header += std::string(random.Below(40), 'n') + '\0';
  }
  if ((parts & kChecksum) != 0)
    header += Number(ChecksumOf(header), 2);
  return header;
}

std::string Trailer(const std::string& bytes) {
  return Number(ChecksumOf(bytes), 4) + Number(bytes.size(), 4);
}

struct Member {
  std::string packed;
  std::string plain;
  size_t header_bytes;
};

Member RandomMember(Random& random, size_t most_bytes, size_t parts) {
  Member member;
  member.plain = random.Bytes(random.Below(most_bytes));
  const std::string header = Header(parts, random);
  member.header_bytes = header.size();
  member.packed = header +
                  Deflate(member.plain, static_cast<int>(random.Below(10)),
                          static_cast<int>(random.Below(Z_FIXED + 1))) +
                  Trailer(member.plain);
  return member;
}

// Bytes that end where the memory of the process ends.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    mapped_ = (bytes + page - 1) / page * page + page;
    memory_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(memory_ + mapped_ - page, page, PROT_NONE), 0);
    bytes_ = {memory_ + mapped_ - page - bytes, bytes};
  }

  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  ~GuardedBytes() { munmap(memory_, mapped_); }

  std::span<char> bytes() const { return bytes_; }

 private:
  char* memory_;
  size_t mapped_;
  std::span<char> bytes_;
};

// Neither a byte behind the input is read, nor one behind the output written.
std::optional<Inflater::Progress> InflateGuarded(std::string_view packed,
                                                 size_t room,
                                                 std::string* plain) {
  static WholeInflater inflater;
  const GuardedBytes input(packed.size());
  const GuardedBytes output(room);
  std::copy(packed.begin(), packed.end(), input.bytes().begin());
  const std::optional<Inflater::Progress> progress =
      inflater.Inflate({input.bytes().data(), input.bytes().size()}, output.bytes());
  if (progress)
    plain->assign(output.bytes().data(), progress->produced);
  return progress;
}

bool IsRefused(std::string_view packed, size_t room = kMostBytes) {
  std::string plain;
  return !InflateGuarded(packed, room, &plain);
}

TEST(WholeInflaterTest, StreamsOfEveryKindAreWhatTheyWere) {
  Random random(1);
  for (size_t round = 0; round < 500; ++round) {
    const Member member = RandomMember(random, kMostBytes, 4 * random.Below(8));
    const std::string more = random.Bytes(random.Below(20));
    std::string plain;
    const std::optional<Inflater::Progress> progress =
        InflateGuarded(member.packed + more, member.plain.size(), &plain);
    ASSERT_TRUE(progress) << round;
    ASSERT_TRUE(progress->is_end);
    ASSERT_EQ(progress->consumed, member.packed.size());
    ASSERT_TRUE(plain == member.plain) << round;
  }
}

TEST(WholeInflaterTest, WhatIsCutAnywhereIsRefused) {
  Random random(2);
  for (size_t parts = 0; parts < 32; ++parts) {
    const Member member = RandomMember(random, 2000, parts);
    for (size_t bytes = 0; bytes < member.packed.size(); ++bytes)
      ASSERT_TRUE(IsRefused(member.packed.substr(0, bytes))) << parts << " " << bytes;
  }
}

TEST(WholeInflaterTest, TooLittleRoomIsRefused) {
  Random random(3);
  for (size_t round = 0; round < 200; ++round) {
    const Member member = RandomMember(random, 5000, kName);
    if (member.plain.empty())
      continue;
    ASSERT_TRUE(IsRefused(member.packed, random.Below(member.plain.size())));
  }
}

TEST(WholeInflaterTest, WrongChecksumsAndLengthsAreRefused) {
  Random random(4);
  for (size_t round = 0; round < 200; ++round) {
    Member member = RandomMember(random, 5000, random.Below(32) & ~size_t{kChecksum});
    const size_t wrong = member.packed.size() - 1 - random.Below(8);
    member.packed[wrong] ^= static_cast<char>(1u << random.Below(8));
    ASSERT_TRUE(IsRefused(member.packed)) << round;
  }
}

// Whether it is right is for an Inflater to say.
TEST(WholeInflaterTest, AHeaderWithAChecksumIsRefused) {
  Random random(5);
  EXPECT_TRUE(IsRefused(RandomMember(random, 5000, kChecksum).packed));
}

TEST(WholeInflaterTest, UnknownFlagsAndMethodsAreRefused) {
  Random random(6);
  const Member member = RandomMember(random, 5000, 0);
  for (const auto& [at, byte] : {std::pair{0, '\0'},
                                 {1, '\0'},
                                 {2, '\7'},
                                 {3, '\x20'},
                                 {3, '\x40'},
                                 {3, '\x80'}}) {
    std::string changed = member.packed;
    changed[static_cast<size_t>(at)] = byte;
    EXPECT_TRUE(IsRefused(changed)) << at;
  }
}

// The bytes between header and trailer, by zlib. -1: they are no stream.
ssize_t InflateByZlib(std::string_view deflated, std::string* plain) {
  plain->resize(kMostBytes);
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, kRaw), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(deflated.data()));
  stream.avail_in = static_cast<uInt>(deflated.size());
  stream.next_out = reinterpret_cast<Bytef*>(plain->data());
  stream.avail_out = static_cast<uInt>(plain->size());
  const int result = inflate(&stream, Z_FINISH);
  plain->resize(stream.total_out);
  const auto consumed = static_cast<ssize_t>(stream.total_in);
  inflateEnd(&stream);
  return result == Z_STREAM_END ? consumed : -1;
}

// Streams that nobody has written on purpose, with the checksums that fit them.
TEST(WholeInflaterTest, WhatZlibMakesOfDamageIsMadeOfItHere) {
  Random random(7);
  size_t streams = 0;
  for (size_t round = 0; round < 20'000; ++round) {
    const Member member = RandomMember(random, 400, 0);
    std::string body = member.packed.substr(member.header_bytes);
    for (size_t changes = 1 + random.Below(3); changes > 0; --changes)
      body[random.Below(body.size())] ^= static_cast<char>(1u << random.Below(8));
    std::string expected;
    const ssize_t consumed = InflateByZlib(body, &expected);
    if (consumed < 0)
      continue;
    ++streams;
    const std::string packed = member.packed.substr(0, member.header_bytes) +
                               body.substr(0, static_cast<size_t>(consumed)) +
                               Trailer(expected);
    std::string plain;
    const std::optional<Inflater::Progress> progress =
        InflateGuarded(packed, kMostBytes, &plain);
    ASSERT_TRUE(progress) << round;
    ASSERT_EQ(progress->consumed, packed.size()) << round;
    ASSERT_TRUE(plain == expected) << round;
  }
  EXPECT_GT(streams, 1000u);
}

}  // namespace
}  // namespace heapprofd
