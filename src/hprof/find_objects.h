// Objects of a dump that are looked for by their class and by what is in their fields.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "hprof/census.h"
#include "hprof/strings/java_string.h"

namespace heapprofd::hprof {

// The classes that are meant by a name, in which * stands for anything.
class ClassPattern {
 public:
  explicit ClassPattern(const std::string& classes);

  bool Matches(const std::string& name) const;

 private:
  const std::string pattern_;
};

Status NoSuchClass(const std::string& classes);

// "size=0", "next=null", "owner=0x7f30", "name=main": the value of a field;
// "name~pool": a string that has this somewhere. A field may be named with its class
// ("java.util.HashMap.size"). Field `value` of a java.lang.String is its text.
struct FieldCondition {
  std::string field;
  std::string value;
  bool is_part = false;
};

Result<FieldCondition> ParseCondition(const std::string& text);

// Fields that a condition may mean in objects of one class: each class may have one of
// that name, and a dump may claim any number.
inline constexpr size_t kMostNamesakes = 64;

struct ObjectQuery {
  std::string classes;  // a name; in it * stands for anything
  std::vector<FieldCondition> conditions;
};

struct FoundObject {
  uint64_t id = 0;
  uint64_t bytes = 0;
  std::string class_name = {};
  // In the dump: those of the strings that the conditions are about (TextOf).
  std::vector<StringBytes> texts = {};
};

struct FoundObjects {
  uint64_t count = 0;
  uint64_t bytes = 0;
  bool is_whole = true;        // false: too much text to compare all
  bool has_all_fields = true;  // false: a class has more than kMostNamesakes
};

// use(object) for each, in the order of the dump. kNotFound: no class has the name, or
// none of those has a field.
Result<FoundObjects> FindObjects(const DumpFile& file,
                                 const HeapDump& dump,
                                 const HeapCensus& census,
                                 const ObjectQuery& query,
                                 const std::function<void(FoundObject)>& use);

}  // namespace heapprofd::hprof
