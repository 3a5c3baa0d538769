#include "trace/field_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

namespace heapprofd {
namespace {

TEST(FieldReaderTest, FieldsOfEveryTypeAreRead) {
  std::string message;
  protozero::pbf_writer writer(message);
  writer.add_uint64(1, UINT64_MAX);
  writer.add_fixed32(2, 7);
  writer.add_double(10001, 0.5);
  writer.add_string(4, "text");
  const std::vector<uint64_t> packed = {1, 300};
  writer.add_packed_uint64(5, packed.begin(), packed.end());
  FieldReader reader(message);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 1u);
  EXPECT_EQ(reader.Uint(), UINT64_MAX);
  EXPECT_EQ(reader.Bytes(), "");
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.Uint(), 7u);
  EXPECT_EQ(reader.Double(), 0);  // not of that type
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 10001u);
  EXPECT_EQ(reader.Double(), 0.5);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.Bytes(), "text");
  EXPECT_EQ(reader.Uint(), 0u);
  ASSERT_TRUE(reader.Next());
  EXPECT_EQ(reader.field(), 5u);
  EXPECT_FALSE(reader.Next());
  EXPECT_FALSE(reader.is_malformed());
}

TEST(FieldReaderTest, RepeatedNumbersAreReadPackedOrNot) {
  std::string message;
  protozero::pbf_writer writer(message);
  const std::vector<uint64_t> packed = {1, 300, 70000};
  writer.add_packed_uint64(2, packed.begin(), packed.end());
  writer.add_uint64(2, 5);
  writer.add_uint64(2, 200);
  writer.add_uint64(3, 6);
  std::vector<uint64_t> values;
  FieldReader reader(message);
  while (reader.Next())
    reader.Uints([&](uint64_t value) { values.push_back(value); });
  EXPECT_EQ(values, (std::vector<uint64_t>{1, 300, 70000, 5, 200, 6}));
}

TEST(FieldReaderTest, WhatEndsTooEarlyIsMalformed) {
  const std::string truncated[] = {
      "\x08",  // no value
      std::string("\x0a\x05"
                  "abc",
                  5),  // a text of five bytes
      "\x09\x01\x02",  // a number of eight bytes
      "\x08\xff\xff",  // a varint that goes on
      std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12),  // too long
      std::string("\x00\x01", 2),                                           // field 0
      "\x0b",                                                               // a group
  };
  for (const std::string& bytes : truncated) {
    FieldReader reader(bytes);
    EXPECT_FALSE(reader.Next()) << testing::PrintToString(bytes);
    EXPECT_TRUE(reader.is_malformed()) << testing::PrintToString(bytes);
    EXPECT_FALSE(reader.Next());
  }
}

// The next tag has more than 32 bits: protozero takes the lower ones.
bool HasLargeTag(const protozero::pbf_reader& reader) {
  const protozero::data_view rest = reader.data();
  const char* at = rest.data();
  return rest.size() > 0 && protozero::decode_varint(&at, at + rest.size()) > UINT32_MAX;
}

// Any bytes: as long as protozero finds fields, so do we, and the same ones.
TEST(FieldReaderTest, RandomBytesGiveWhatProtozeroReads) {
  std::mt19937 random(301);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random() % 24, '\0');
    for (char& byte : bytes)
      byte = static_cast<char>(random() % (round % 2 == 0 ? 256 : 24));
    FieldReader ours(bytes);
    protozero::pbf_reader theirs(bytes);
    try {
      while (!HasLargeTag(theirs) && theirs.next()) {
        const uint32_t field = theirs.tag();  // forgotten once the value is read
        const bool is_number = theirs.wire_type() == protozero::pbf_wire_type::varint;
        uint64_t number = 0;
        std::string text;
        if (is_number)
          number = theirs.get_uint64();
        else if (theirs.wire_type() == protozero::pbf_wire_type::length_delimited)
          text = theirs.get_string();
        else
          theirs.skip();
        ASSERT_TRUE(ours.Next()) << testing::PrintToString(bytes);
        EXPECT_EQ(ours.field(), field);
        if (is_number) {
          EXPECT_EQ(ours.Uint(), number);
        }
        EXPECT_EQ(ours.Bytes(), text);
      }
      EXPECT_FALSE(ours.Next());
      EXPECT_EQ(ours.is_malformed(), HasLargeTag(theirs))
          << testing::PrintToString(bytes);
    } catch (const protozero::exception&) {
      bool has_reserved_number = false;  // protozero reads no further
      while (ours.Next())
        has_reserved_number |= ours.field() >= 19'000 && ours.field() < 20'000;
      EXPECT_TRUE(ours.is_malformed() || has_reserved_number)
          << testing::PrintToString(bytes);
    }
  }
}

}  // namespace
}  // namespace heapprofd
