// A pprof profile (perftools.profiles.Profile) as its message has it: tables whose rows
// refer to each other by ids and places, in any order, and to strings that may come last.
// What they refer to may not be there.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace heapprofd {

struct PprofFunction {
  uint64_t name = 0;
  uint64_t system_name = 0;
  uint64_t file = 0;
};

struct PprofLine {
  uint64_t function = 0;
  uint64_t line = 0;
};

struct PprofMapping {
  uint64_t start = 0;
  uint64_t limit = 0;
  uint64_t offset = 0;
  uint64_t file = 0;
  uint64_t build_id = 0;
};

struct PprofLocation {
  uint64_t id = 0;
  uint64_t mapping = 0;
  uint64_t address = 0;
  std::vector<PprofLine> lines;
};

struct PprofValueType {
  uint64_t type = 0;
  uint64_t unit = 0;
};

struct PprofSample {
  std::vector<uint64_t> locations;  // ids, the innermost first
  std::vector<int64_t> values;
};

class PprofProfile {
 public:
  // False: what follows is no field of a profile; what came before is there. The views in
  // it end with `bytes`.
  bool Read(std::string_view bytes);

  // Empty: there is none.
  std::string_view StringAt(uint64_t index) const {
    return index < strings_.size() ? strings_[index] : std::string_view();
  }

  bool has_strings() const { return !strings_.empty(); }

  // nullptr: there is none.
  const PprofMapping* FindMapping(uint64_t id) const;
  const PprofFunction* FindFunction(uint64_t id) const;

  const std::vector<PprofLocation>& locations() const { return locations_; }

  // Of each value of a sample.
  const std::vector<PprofValueType>& value_types() const { return value_types_; }

  // Messages, for ReadSample.
  const std::vector<std::string_view>& samples() const { return samples_; }

  int64_t time_ns() const { return time_ns_; }

  int64_t duration_ns() const { return duration_ns_; }

  uint64_t period() const { return period_; }

  const PprofValueType& period_type() const { return period_type_; }

  // The type that readers show first; "": the file names none.
  std::string_view default_type() const { return StringAt(default_type_); }

  // Indices of texts.
  const std::vector<uint64_t>& comments() const { return comments_; }

  // Reuses the memory of `sample`. False: it is damaged.
  static bool ReadSample(std::string_view bytes, PprofSample* sample);

 private:
  void ReadFields(std::string_view bytes);
  void ReadMapping(std::string_view bytes);
  void ReadLocation(std::string_view bytes);
  void ReadFunction(std::string_view bytes);

  std::vector<std::string_view> strings_;
  std::vector<PprofValueType> value_types_;
  std::vector<std::string_view> samples_;
  std::vector<PprofLocation> locations_;
  std::unordered_map<uint64_t, PprofMapping> mappings_;
  std::unordered_map<uint64_t, PprofFunction> functions_;
  int64_t time_ns_ = 0;
  int64_t duration_ns_ = 0;
  uint64_t period_ = 0;
  PprofValueType period_type_;
  uint64_t default_type_ = 0;
  std::vector<uint64_t> comments_;
};

}  // namespace heapprofd
