// Encodes a perftools.profiles.Profile of a heap. Field numbers: proto/pprof.proto.
//
// Made for two sources: profiles just recorded (export/pprof.h) and imported traces
// (export/trace_pprof.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "base/column.h"
#include "base/row_index.h"
#include "base/string_pool.h"

namespace heapprofd {

// Takes a serialized profile piece by piece.
using PprofOutput = std::function<void(std::string_view)>;

class PprofMessage {
 public:
  explicit PprofMessage(PprofOutput output);

  PprofMessage(const PprofMessage&) = delete;
  PprofMessage& operator=(const PprofMessage&) = delete;

  // One number of every sample, in the order of its values.
  void AddSampleType(std::string_view type, std::string_view unit);

  // What is known of the code in a mapping.
  struct Features {
    bool functions = false;
    bool files = false;
    bool lines = false;
    bool inlines = false;
  };

  struct Mapping {
    uint64_t id = 0;  // not 0
    uint64_t start = 0;
    uint64_t end = 0;
    uint64_t file_offset = 0;
    std::string_view path;
    std::string_view build_id;  // hexadecimal
    Features features;
  };

  // Readers take the first mapping for the program.
  void AddMapping(const Mapping& mapping);

  // The function's id.
  uint64_t InternFunction(std::string_view name,
                          std::string_view system_name,
                          std::string_view file);

  struct Line {
    uint64_t function = 0;
    int64_t line = 0;
  };

  // `lines`: innermost function first. Every location needs a mapping: readers drop those
  // without one.
  void AddLocation(uint64_t id,
                   uint64_t mapping,
                   uint64_t address,
                   std::span<const Line> lines);

  struct Label {
    std::string_view key;
    std::string_view text;
  };

  // `locations`: leaf first.
  void AddSample(std::span<const uint64_t> locations,
                 std::span<const int64_t> values,
                 std::span<const Label> labels = {});

  struct Header {
    uint64_t time_unix_ns = 0;
    uint64_t duration_ns = 0;
    uint64_t sampling_interval = 0;  // bytes
    std::string_view default_sample_type;
    std::vector<std::string> comments;
  };

  // Hands over the rest; ends the use of this object.
  void Finish(const Header& header);

 private:
  // By what functions are told apart.
  struct Function {
    StringId name;
    StringId system_name;
    StringId file;

    bool operator==(const Function&) const = default;
  };

  static uint64_t HashOf(const Function& function) {
    return Mix(Mix((uint64_t{function.name} << 32) | function.system_name) ^
               function.file);
  }

  void Flush();

  PprofOutput output_;
  std::string pending_;  // not yet handed over
  std::string packed_;   // only grows; room for the numbers of a sample
  std::string sample_;   // the current one
  protozero::pbf_writer writer_;
  StringPool strings_;
  Column<Function> functions_;
  RowIndex function_index_;
};

}  // namespace heapprofd
