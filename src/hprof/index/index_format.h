// What is found with much work in a dump, kept in a file: so that the next question is
// answered at once. Everything is as the machine has it in memory, so that it is read
// where it lies; a file of another machine, version or dump has another key.
//
//   header, and then sections, each at a multiple of 64 bytes
//
// Per object: 2 bytes for type and size (IndexSection::kNarrow), 4 each for the one that
// dominates it, the one above it on the nearest way from a root, and what it retains;
// and what finds it by its id (12 bytes for each 512 of the heap). References are not
// kept: with the nearest ways no view asks for them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "object_graph/address_index.h"
#include "object_graph/kept_objects.h"

namespace heapprofd::hprof {

inline constexpr uint64_t kIndexMagic = 0x3169706864706811;
inline constexpr uint32_t kIndexVersion = 1;  // of all that is below, and of analyses
inline constexpr uint64_t kIndexAlignment = 64;

// Which dump an index is of, and what was asked of it. No byte is unused.
struct IndexKey {
  uint64_t magic = kIndexMagic;
  uint32_t version = kIndexVersion;
  uint32_t dump = 0;     // of those in the file, from 1
  uint64_t holding = 0;  // Holding
  uint64_t size = 0;     // of the file
  uint64_t inode = 0;
  int64_t changed_s = 0;
  int64_t changed_ns = 0;
  uint64_t sample = 0;  // hash of parts of its bytes

  bool operator==(const IndexKey&) const = default;
};

enum class IndexSection : uint8_t {
  kRanges,  // of AddressIndex
  kWords,
  kSorted,
  kShapes,  // of KeptObjects
  kNarrow,
  kWide,
  kDominators,
  kAbove,
  kRetained,
  kLarge,
  kRoots,
  kClasses,
  kCount,
};

// Those that are not as large as the heap.
inline constexpr IndexSection kCheckedSections[] = {
    IndexSection::kRanges, IndexSection::kShapes, IndexSection::kLarge,
    IndexSection::kRoots, IndexSection::kClasses};

inline constexpr auto kIndexSections = static_cast<size_t>(IndexSection::kCount);

struct IndexPlace {
  uint64_t offset;
  uint64_t bytes;
};

struct IndexHeader {
  IndexKey key;
  uint64_t check = 0;  // hash of the header without this, and of the small sections
  uint32_t objects = 0;
  uint32_t shift = 0;  // of AddressIndex
  uint64_t reachable_count = 0;
  uint64_t reachable_bytes = 0;
  uint64_t missing_references = 0;
  uint64_t class_objects = 0;
  uint64_t roots = 0;
  uint32_t class_class = 0;
  uint32_t reference_bytes = 0;  // of ObjectLayout
  uint32_t object_header_bytes = 0;
  uint32_t array_header_bytes = 0;
  uint32_t alignment = 0;
  uint16_t sizes_are_dumped = 0;
  uint16_t is_layout_known = 0;
  uint64_t census_objects = 0;
  IndexPlace sections[kIndexSections] = {};
};

struct IndexRoot {
  uint64_t id;
  uint32_t object;
  uint32_t thread;
  uint32_t frame;
  uint32_t tag;
};

// A HeapClass, without what only histograms ask for.
struct IndexClass {
  uint64_t id;
  uint64_t super;
  uint64_t loader;
  uint64_t instances;
  uint64_t fields;  // where they are in the dump
  uint32_t dumped_bytes;
  uint32_t most_bytes;
  uint32_t static_references;
  uint32_t static_other_bytes;
  uint32_t field_references;
  uint32_t field_other_bytes;
  uint32_t hidden_bytes;
  uint16_t field_count;
  uint8_t is_dumped;
  uint8_t is_contended;
};

static_assert(std::has_unique_object_representations_v<IndexHeader>);
static_assert(std::has_unique_object_representations_v<IndexRoot>);
static_assert(std::has_unique_object_representations_v<IndexClass>);
static_assert(std::has_unique_object_representations_v<AddressIndex::Range>);
static_assert(std::has_unique_object_representations_v<AddressIndex::Word>);
static_assert(std::has_unique_object_representations_v<ObjectShape>);
static_assert(std::has_unique_object_representations_v<LargeNumber>);

}  // namespace heapprofd::hprof
