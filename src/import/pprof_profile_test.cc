#include "import/pprof_profile.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "trace/pprof_fields.h"

namespace heapprofd {
namespace {

using protozero::pbf_writer;

// One of each, which refer to strings behind them.
std::string SmallMessage() {
  std::string bytes;
  pbf_writer profile(bytes);
  {
    pbf_writer type(profile, pprof_field::Profile::kSampleType);
    type.add_int64(pprof_field::ValueType::kType, 1);
    type.add_int64(pprof_field::ValueType::kUnit, 2);
  }
  {
    pbf_writer sample(profile, pprof_field::Profile::kSample);
    sample.add_uint64(pprof_field::Sample::kLocationId, 7);
    sample.add_int64(pprof_field::Sample::kValue, -5);
  }
  {
    pbf_writer mapping(profile, pprof_field::Profile::kMapping);
    mapping.add_uint64(pprof_field::Mapping::kId, 3);
    mapping.add_uint64(pprof_field::Mapping::kMemoryStart, 0x1000);
    mapping.add_uint64(pprof_field::Mapping::kMemoryLimit, 0x2000);
    mapping.add_uint64(pprof_field::Mapping::kFileOffset, 0x100);
  }
  {
    pbf_writer location(profile, pprof_field::Profile::kLocation);
    location.add_uint64(pprof_field::Location::kId, 7);
    location.add_uint64(pprof_field::Location::kMappingId, 3);
    location.add_uint64(pprof_field::Location::kAddress, 0x1234);
    pbf_writer line(location, pprof_field::Location::kLine);
    line.add_uint64(pprof_field::Line::kFunctionId, 9);
    line.add_int64(pprof_field::Line::kLine, 42);
  }
  {
    pbf_writer function(profile, pprof_field::Profile::kFunction);
    function.add_uint64(pprof_field::Function::kId, 9);
    function.add_int64(pprof_field::Function::kName, 3);
  }
  for (const char* text : {"", "space", "bytes", "main"})
    profile.add_string(pprof_field::Profile::kStringTable, text);
  profile.add_int64(pprof_field::Profile::kTimeNanos, 1000);
  profile.add_int64(pprof_field::Profile::kDurationNanos, 400);
  profile.add_int64(pprof_field::Profile::kPeriod, 4096);
  return bytes;
}

TEST(PprofProfileTest, EverythingIsWhereItIsReferredTo) {
  const std::string bytes = SmallMessage();
  PprofProfile profile;
  ASSERT_TRUE(profile.Read(bytes));
  ASSERT_EQ(profile.value_types().size(), 1u);
  EXPECT_EQ(profile.StringAt(profile.value_types()[0].type), "space");
  EXPECT_EQ(profile.StringAt(profile.value_types()[0].unit), "bytes");
  ASSERT_EQ(profile.locations().size(), 1u);
  const PprofLocation& location = profile.locations()[0];
  EXPECT_EQ(location.id, 7u);
  EXPECT_EQ(location.address, 0x1234u);
  const PprofMapping* mapping = profile.FindMapping(location.mapping);
  ASSERT_NE(mapping, nullptr);
  EXPECT_EQ(mapping->start, 0x1000u);
  EXPECT_EQ(mapping->limit, 0x2000u);
  EXPECT_EQ(mapping->offset, 0x100u);
  ASSERT_EQ(location.lines.size(), 1u);
  EXPECT_EQ(location.lines[0].line, 42u);
  const PprofFunction* function = profile.FindFunction(location.lines[0].function);
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(profile.StringAt(function->name), "main");
  EXPECT_EQ(profile.time_ns(), 1000);
  EXPECT_EQ(profile.duration_ns(), 400);
  EXPECT_EQ(profile.period(), 4096u);
}

TEST(PprofProfileTest, SamplesAreReadOneAtATime) {
  const std::string bytes = SmallMessage();
  PprofProfile profile;
  ASSERT_TRUE(profile.Read(bytes));
  ASSERT_EQ(profile.samples().size(), 1u);
  PprofSample sample{.locations = {1, 2, 3}, .values = {4}};  // of the one before
  ASSERT_TRUE(PprofProfile::ReadSample(profile.samples()[0], &sample));
  EXPECT_EQ(sample.locations, std::vector<uint64_t>({7}));
  EXPECT_EQ(sample.values, std::vector<int64_t>({-5}));
  EXPECT_FALSE(PprofProfile::ReadSample("\x0a\x7f", &sample));  // longer than it is
}

TEST(PprofProfileTest, WhatIsNotThereIsNotFound) {
  const PprofProfile profile;
  EXPECT_FALSE(profile.has_strings());
  EXPECT_EQ(profile.StringAt(0), "");
  EXPECT_EQ(profile.FindMapping(0), nullptr);
  EXPECT_EQ(profile.FindFunction(0), nullptr);
}

TEST(PprofProfileTest, WhatCameBeforeDamageIsThere) {
  const std::string bytes = SmallMessage() + "\x0a\x7f";
  PprofProfile profile;
  EXPECT_FALSE(profile.Read(bytes));
  EXPECT_EQ(profile.locations().size(), 1u);
  EXPECT_EQ(profile.StringAt(3), "main");
}

}  // namespace
}  // namespace heapprofd
