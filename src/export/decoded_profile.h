// For tests: pprof profiles in memory, and taken apart again.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/trace_pprof.h"
#include "trace/message_reader.h"

namespace heapprofd {

struct EncodedProfile {
  int64_t pid = 0;
  std::string heap_name;
  std::string bytes;
};

inline EncodedProfile Encoded(const DumpProfile& profile) {
  EncodedProfile encoded{.pid = profile.pid, .heap_name = profile.heap_name, .bytes = {}};
  profile.encode([&](std::string_view piece) { encoded.bytes += piece; });
  return encoded;
}

// What tests look at in a perftools.profiles.Profile.
struct Decoded {
  struct Function {
    std::string name;
    std::string system_name;
    std::string file;
  };

  struct Location {
    uint64_t mapping = 0;
    uint64_t address = 0;
    std::vector<std::pair<uint64_t, int64_t>> lines;  // function, line
  };

  struct Mapping {
    std::string path;
    std::string build_id;
    bool has_inlines = false;
  };

  explicit Decoded(const std::string& bytes) {
    ReadStrings(bytes);
    MessageReader reader(bytes);
    while (reader.Next())
      ReadField(reader);
  }

  void ReadStrings(const std::string& bytes) {
    MessageReader reader(bytes);
    while (reader.Next()) {
      if (reader.field() == 6)
        strings.emplace_back(reader.Bytes());
    }
  }

  void ReadField(MessageReader& reader) {
    const uint32_t field = reader.field();
    if (field == 9)
      time_ns = reader.Int();
    else if (field == 10)
      duration_ns = reader.Int();
    else if (field == 12)
      period = reader.Int();
    else if (field == 13)
      comments.insert(strings.at(reader.Uint()));
    else if (field == 14)
      default_type = strings.at(reader.Uint());
    else if (field >= 1 && field <= 5)
      ReadMessage(field, reader.Bytes());
  }

  void ReadMessage(uint32_t kind, std::string_view bytes) {
    MessageReader reader(bytes);
    std::map<uint32_t, uint64_t> numbers;
    std::vector<uint64_t> stack;
    std::vector<int64_t> values;
    Location location;
    while (reader.Next()) {
      const uint32_t field = reader.field();
      if (kind == 2 && field == 1)
        reader.Uints([&](uint64_t id) { stack.push_back(id); });
      else if (kind == 2 && field == 2)
        reader.Uints([&](uint64_t v) { values.push_back(static_cast<int64_t>(v)); });
      else if (kind == 4 && field == 4)
        location.lines.push_back(ReadLine(reader.Bytes()));
      else
        numbers[field] = reader.Uint();
    }
    if (kind == 1)
      types.push_back(strings.at(numbers[1]));
    else if (kind == 2)
      samples.emplace_back(stack, values);
    else if (kind == 3)
      mappings[numbers[1]] = {strings.at(numbers[5]), strings.at(numbers[6]),
                              numbers[10] != 0};
    else if (kind == 5)
      functions[numbers[1]] = {strings.at(numbers[2]), strings.at(numbers[3]),
                               strings.at(numbers[4])};
    if (kind == 4) {
      location.mapping = numbers[2];
      location.address = numbers[3];
      locations[numbers[1]] = location;
    }
  }

  static std::pair<uint64_t, int64_t> ReadLine(std::string_view bytes) {
    std::pair<uint64_t, int64_t> line;
    MessageReader reader(bytes);
    while (reader.Next()) {
      if (reader.field() == 1)
        line.first = reader.Uint();
      else if (reader.field() == 2)
        line.second = reader.Int();
    }
    return line;
  }

  // "render;main 1 500 1 500": a sample, leaf first.
  std::string Sample(size_t index) const {
    std::string text;
    for (const uint64_t id : samples.at(index).first) {
      for (const auto& [function, line] : locations.at(id).lines)
        text += (text.empty() ? "" : ";") + functions.at(function).name +
                (line != 0 ? ":" + std::to_string(line) : "");
    }
    for (const int64_t value : samples.at(index).second)
      text += " " + std::to_string(value);
    return text;
  }

  std::vector<std::string> strings;
  std::vector<std::string> types;
  std::vector<std::pair<std::vector<uint64_t>, std::vector<int64_t>>> samples;
  std::map<uint64_t, Mapping> mappings;
  std::map<uint64_t, Location> locations;
  std::map<uint64_t, Function> functions;
  std::set<std::string> comments;
  std::string default_type;
  int64_t time_ns = 0;
  int64_t duration_ns = 0;
  int64_t period = 0;
};

}  // namespace heapprofd
