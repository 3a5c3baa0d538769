// For tests: pprof profiles as other programs write them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "trace/pprof_fields.h"

namespace heapprofd {

struct MadePprof {
  struct Sample {
    std::vector<std::string> stack;  // the innermost function first
    std::vector<int64_t> values;
  };

  struct Function {
    std::string name;
    std::string system_name;
  };

  std::vector<std::pair<std::string, std::string>> types;  // name and unit
  std::vector<Sample> samples = {};
  std::string default_type = {};
  uint64_t period = 0;                   // bytes
  std::vector<Function> functions = {};  // those with two names
  bool has_strings_first = false;

  std::string Encode() {
    std::string body;
    protozero::pbf_writer profile(body);
    for (const auto& [type, unit] : types) {
      protozero::pbf_writer message(profile, pprof_field::Profile::kSampleType);
      message.add_int64(pprof_field::ValueType::kType, Text(type));
      message.add_int64(pprof_field::ValueType::kUnit, Text(unit));
    }
    for (const Sample& sample : samples) {
      protozero::pbf_writer message(profile, pprof_field::Profile::kSample);
      for (const std::string& name : sample.stack)
        message.add_uint64(pprof_field::Sample::kLocationId, LocationOf(name));
      for (const int64_t value : sample.values)
        message.add_int64(pprof_field::Sample::kValue, value);
    }
    for (size_t i = 0; i < names.size(); ++i)
      AddLocation(i, profile);
    if (period > 0) {
      protozero::pbf_writer type(profile, pprof_field::Profile::kPeriodType);
      type.add_int64(pprof_field::ValueType::kType, Text("space"));
      type.add_int64(pprof_field::ValueType::kUnit, Text("bytes"));
      type.commit();
      profile.add_int64(pprof_field::Profile::kPeriod, static_cast<int64_t>(period));
    }
    if (!default_type.empty())
      profile.add_int64(pprof_field::Profile::kDefaultSampleType, Text(default_type));
    std::string strings;
    protozero::pbf_writer table(strings);
    for (const std::string& text : texts)
      table.add_string(pprof_field::Profile::kStringTable, text);
    return has_strings_first ? strings + body : body + strings;
  }

  int64_t Text(const std::string& text) {
    for (size_t i = 0; i < texts.size(); ++i) {
      if (texts[i] == text)
        return static_cast<int64_t>(i);
    }
    texts.push_back(text);
    return static_cast<int64_t>(texts.size() - 1);
  }

  uint64_t LocationOf(const std::string& name) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name)
        return i + 1;
    }
    names.push_back(name);
    return names.size();
  }

  // One of a function of its own.
  void AddLocation(size_t i, protozero::pbf_writer& profile) {
    std::string system_name = names[i];
    for (const Function& function : functions) {
      if (function.name == names[i])
        system_name = function.system_name;
    }
    {
      protozero::pbf_writer location(profile, pprof_field::Profile::kLocation);
      location.add_uint64(pprof_field::Location::kId, i + 1);
      protozero::pbf_writer line(location, pprof_field::Location::kLine);
      line.add_uint64(pprof_field::Line::kFunctionId, i + 1);
    }
    protozero::pbf_writer function(profile, pprof_field::Profile::kFunction);
    function.add_uint64(pprof_field::Function::kId, i + 1);
    function.add_int64(pprof_field::Function::kName, Text(names[i]));
    function.add_int64(pprof_field::Function::kSystemName, Text(system_name));
  }

  std::vector<std::string> texts = {""};  // as Encode finds them
  std::vector<std::string> names = {};
};

}  // namespace heapprofd
