// What is in the objects of a heap: numbers in their fields, texts, arrays of numbers.
// There is more of that than of all else, so it stays where it is and is looked up when a
// query asks: `heap_graph_object_data` and `heap_graph_primitive`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace heapprofd {

enum class NumberType : uint8_t {
  kBoolean,
  kByte,
  kChar,
  kShort,
  kInt,
  kLong,
  kFloat,
  kDouble,
};

// "boolean".
const char* NameOf(NumberType type);

constexpr uint32_t BytesOf(NumberType type) {
  constexpr uint8_t kBytes[] = {1, 1, 2, 2, 4, 8, 4, 8};
  return kBytes[static_cast<uint8_t>(type)];
}

constexpr bool IsReal(NumberType type) {
  return type >= NumberType::kFloat;
}

struct Number {
  int64_t integer = 0;  // which of them: IsReal
  double real = 0;
};

// An array of numbers. The bytes of each are in the order of a little-endian machine.
struct NumberArray {
  NumberType type = NumberType::kByte;
  uint32_t length = 0;
  bool has_data = false;  // false: what is in it was not recorded
};

// Objects are those of one graph, by their places in it. The fields of all of them that
// are numbers stand in one row, an object's one behind the other. One thread at a time.
class ObjectContents {
 public:
  ObjectContents(const ObjectContents&) = delete;
  ObjectContents& operator=(const ObjectContents&) = delete;
  virtual ~ObjectContents() = default;

  // To be called before the others, as often as one likes.
  virtual Status Load() = 0;

  // What was answered so far is not to be trusted when this is an error.
  virtual Status Check() const = 0;

  virtual uint64_t field_count() const = 0;

  // Those of `object` end where those of the next one begin.
  virtual uint64_t FirstFieldOf(uint32_t object) const = 0;

  virtual uint32_t OwnerOf(uint64_t field) const = 0;

  // The name lives as long as this.
  virtual std::string_view NameOf(uint64_t field) const = 0;

  // Classes that are missing in the names of their fields so far, as all of those names
  // would take too much memory.
  virtual uint64_t unnamed_classes() const { return 0; }

  virtual NumberType TypeOf(uint64_t field) const = 0;

  // nullopt: the object is cut before it.
  virtual std::optional<Number> ValueOf(uint64_t field) const = 0;

  // As UTF-8; nullopt: the object is no text, or what it consists of is missing.
  virtual std::optional<std::string> TextOf(uint32_t object) const = 0;

  // nullopt: it is none.
  virtual std::optional<NumberArray> ArrayOf(uint32_t object) const = 0;

  // What is in it; empty when it has no data.
  virtual std::string DataOf(uint32_t object) const = 0;

 protected:
  ObjectContents() = default;
};

}  // namespace heapprofd
