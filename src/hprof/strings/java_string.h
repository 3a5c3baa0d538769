// Texts of java.lang.String in a heap dump, of all versions: with bytes (Latin-1 or
// UTF-16) or chars, with an array of their own or a part of one.
#pragma once

#include <cstdint>
#include <string>

#include "hprof/fields/field_layout.h"

namespace heapprofd::hprof {

inline constexpr uint8_t kUtf16Coder = 1;  // of String.coder

// Where the fields are in an instance of the class in this row.
struct StringFields {
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t value = kNone;  // offsets
  uint32_t coder = kNone;
  uint32_t offset = kNone;
  uint32_t count = kNone;
};

// Whether the class in this row is java.lang.String; several class loaders may have one.
bool IsStringClass(const DumpFile& file, const ClassTable& classes, uint32_t row);

// The first that has instances; UINT32_MAX: there is none.
uint32_t RowOfStringClass(const DumpFile& file, const ClassTable& classes);

StringFields StringFieldsOf(const FieldLayouts& layouts, uint32_t row);

// What a String says of the array with its characters.
struct StringCharacters {
  uint64_t array = 0;           // its id; 0: none
  uint32_t offset = 0;          // characters
  uint32_t count = UINT32_MAX;  // all of the array
  uint8_t coder = 0;
};

StringCharacters CharactersOf(const InstanceRecord& record,
                              const StringFields& fields,
                              uint32_t id_bytes);

// The bytes of a text in its array.
struct StringBytes {
  const uint8_t* data = nullptr;  // nullptr: the array is none of characters
  uint32_t bytes = 0;
  uint8_t type = 0;  // of the array's elements
  uint8_t coder = 0;

  uint32_t length() const;  // characters
};

StringBytes BytesOf(const StringCharacters& characters,
                    const PrimitiveArrayRecord& record);

// The first `most` characters, as UTF-8.
std::string TextOf(const StringBytes& bytes, size_t most);

}  // namespace heapprofd::hprof
