#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "hprof/index/heap_index.h"

namespace heapprofd::hprof {
namespace {

// What a kept graph refers to.
struct OpenIndex {
  std::shared_ptr<const MappedInput> input;
  KeptObjects objects;
};

// The header and the small sections are checked as a whole; what is as large as the heap
// by each answer (KeptObjects, AddressIndex).
class IndexReader {
 public:
  IndexReader(std::string_view index, const DumpFile& file, std::string_view dump)
      : index_(index), file_(file), dump_(dump) {}

  // False: it is no index.
  bool ReadHeader() {
    if (index_.size() < sizeof(header_))
      return false;
    memcpy(&header_, index_.data(), sizeof(header_));
    if (header_.key.magic != kIndexMagic)
      return false;
    if (header_.key.version != kIndexVersion)
      return true;  // what comes after the key is not known
    for (size_t i = 0; i < kIndexSections; ++i) {
      const IndexPlace& place = header_.sections[i];
      if (place.offset % kIndexAlignment != 0 || place.offset > index_.size() ||
          place.bytes > index_.size() - place.offset)
        return false;
      sections_[i] = index_.substr(place.offset, place.bytes);
    }
    return header_.check == CheckOf(header_, sections_) &&
           header_.objects < kNoObject - 1;
  }

  const IndexKey& key() const { return header_.key; }

  // nullopt: what it says does not fit together.
  std::optional<HeapGraph> Read(const std::shared_ptr<OpenIndex>& open) {
    KeptObjects& objects = open->objects;
    if (!FillObjects(&objects))
      return std::nullopt;
    HeapGraph heap{{},
                   AddressIndex(AddressIndex::Parts{
                       header_.objects, header_.shift,
                       Section<AddressIndex::Range>(IndexSection::kRanges),
                       Section<AddressIndex::Word>(IndexSection::kWords),
                       Section<uint64_t>(IndexSection::kSorted)}),
                   ObjectGraph(std::shared_ptr<const KeptObjects>(open, &objects)),
                   {},
                   header_.missing_references};
    if (!FillCensus(&heap.census) || !FillRoots(&heap))
      return std::nullopt;
    AddTypes(file_, &heap);
    objects.type_count = static_cast<uint32_t>(heap.graph.types().size());
    return heap;
  }

 private:
  template <typename T>
  std::span<const T> Section(IndexSection section) const {
    const std::string_view bytes = sections_[static_cast<size_t>(section)];
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  bool FillObjects(KeptObjects* objects) const {
    objects->count = header_.objects;
    objects->reachable_count = header_.reachable_count;
    objects->reachable_bytes = header_.reachable_bytes;
    objects->shapes = Section<ObjectShape>(IndexSection::kShapes);
    objects->narrow = Section<uint16_t>(IndexSection::kNarrow);
    objects->wide = Section<uint32_t>(IndexSection::kWide);
    objects->dominators = Section<uint32_t>(IndexSection::kDominators);
    objects->above = Section<uint32_t>(IndexSection::kAbove);
    objects->retained = Section<uint32_t>(IndexSection::kRetained);
    objects->large = Section<LargeNumber>(IndexSection::kLarge);
    const size_t shaped =
        objects->narrow.empty() ? objects->wide.size() : objects->narrow.size();
    return shaped == objects->count && objects->dominators.size() == objects->count &&
           objects->above.size() == objects->count &&
           objects->retained.size() == objects->count;
  }

  bool FillCensus(HeapCensus* census) const {
    census->class_objects = header_.class_objects;
    census->objects = header_.census_objects;
    census->roots = header_.roots;
    census->layout = {header_.reference_bytes, header_.object_header_bytes,
                      header_.array_header_bytes, header_.sizes_are_dumped != 0,
                      header_.alignment};
    census->is_layout_known = header_.is_layout_known != 0;
    const auto classes = Section<IndexClass>(IndexSection::kClasses);
    for (uint32_t row = 0; row < classes.size(); ++row) {
      if (!AddClass(classes[row], row, &census->classes))
        return false;
    }
    census->class_class = header_.class_class;
    return census->class_class < census->classes.size() &&
           std::has_single_bit(header_.alignment);
  }

  bool AddClass(const IndexClass& kept, uint32_t row, ClassTable* classes) const {
    const uint64_t field_bytes = uint64_t{kept.field_count} * (file_.id_bytes() + 1);
    if (classes->RowOf(kept.id) != row || kept.fields > dump_.size() ||
        field_bytes > dump_.size() - kept.fields)
      return false;
    HeapClass& type = (*classes)[row];
    type.super = kept.super;
    type.loader = kept.loader;
    type.is_dumped = kept.is_dumped != 0;
    type.dumped_bytes = kept.dumped_bytes;
    type.most_bytes = kept.most_bytes;
    type.static_references = kept.static_references;
    type.static_other_bytes = kept.static_other_bytes;
    type.field_count = kept.field_count;
    type.field_references = kept.field_references;
    type.field_other_bytes = kept.field_other_bytes;
    type.hidden_bytes = kept.hidden_bytes;
    type.is_contended = kept.is_contended != 0;
    type.instances = kept.instances;
    if (kept.fields != 0)
      type.fields = reinterpret_cast<const uint8_t*>(dump_.data()) + kept.fields;
    return kept.fields != 0 || kept.field_count == 0;
  }

  bool FillRoots(HeapGraph* heap) const {
    for (const IndexRoot& root : Section<IndexRoot>(IndexSection::kRoots)) {
      if (root.object >= header_.objects)
        return false;
      heap->graph.AddRoot(root.object, static_cast<uint32_t>(heap->roots.size()));
      heap->roots.push_back(
          {static_cast<uint8_t>(root.tag), root.id, root.thread, root.frame});
    }
    return true;
  }

  const std::string_view index_;
  const DumpFile& file_;
  const std::string_view dump_;
  IndexHeader header_;
  std::array<std::string_view, kIndexSections> sections_;
};

}  // namespace

Result<HeapGraph> ReadIndex(std::shared_ptr<const MappedInput> index,
                            const IndexKey& key,
                            const DumpFile& file,
                            std::string_view bytes) {
  IndexReader reader(index->bytes(), file, bytes);
  const bool is_index = reader.ReadHeader();
  if (is_index && reader.key() != key)
    return Status(StatusCode::kNotFound, "it is of another dump");
  const auto open = std::make_shared<OpenIndex>(OpenIndex{std::move(index), {}});
  std::optional<HeapGraph> heap = is_index ? reader.Read(open) : std::nullopt;
  if (!heap)
    return Status(StatusCode::kCorrupt, "it is damaged, or no index");
  return std::move(*heap);
}

}  // namespace heapprofd::hprof
