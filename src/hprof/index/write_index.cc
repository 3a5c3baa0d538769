#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/random_seed.h"
#include "base/row_index.h"
#include "hprof/index/heap_index.h"
#include "object_graph/paths.h"

namespace heapprofd::hprof {
namespace {

template <typename Values>
std::string_view BytesOf(const Values& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(*values.data())};
}

// Numbers the combinations of type and size as they are met.
class Shapes {
 public:
  uint32_t NumberOf(uint32_t type, uint64_t size) {
    Known& last = last_[Mix(size ^ uint64_t{type} << 40) % last_.size()];
    if (last.shape >= shapes_.size() || shapes_[last.shape].type != type ||
        shapes_[last.shape].size != size)
      last.shape = Search(type, size);
    return last.shape;
  }

  const std::vector<ObjectShape>& all() const { return shapes_; }

 private:
  struct Known {
    uint32_t shape = UINT32_MAX;
  };

  struct Hash {
    uint64_t secret;  // sizes are chosen by whoever made the dump

    size_t operator()(const std::pair<uint32_t, uint64_t>& shape) const {
      return Mix(Mix(shape.second ^ secret) + shape.first);
    }
  };

  uint32_t Search(uint32_t type, uint64_t size) {
    const auto number = static_cast<uint32_t>(shapes_.size());
    const auto [found, is_new] = numbers_.try_emplace({type, size}, number);
    if (is_new)
      shapes_.push_back({size, type, 0});
    return found->second;
  }

  std::array<Known, 4096> last_;
  std::vector<ObjectShape> shapes_;
  std::unordered_map<std::pair<uint32_t, uint64_t>, uint32_t, Hash> numbers_{
      0, Hash{RandomSeed()}};
};

class IndexWriter {
 public:
  IndexWriter(const IndexKey& key,
              const DumpFile& file,
              const HeapGraph& heap,
              const Retention& retention)
      : file_(file), heap_(heap), retention_(retention) {
    header_.key = key;
  }

  Status Write(const std::function<Status(std::string_view)>& write) {
    AddObjects();
    AddRoots();
    AddClasses();
    AddIds();
    FillHeader();
    HPD_TRY(write({reinterpret_cast<const char*>(&header_), sizeof(header_)}));
    uint64_t at = sizeof(header_);
    constexpr char kPadding[kIndexAlignment] = {};
    for (size_t i = 0; i < kIndexSections; ++i) {
      HPD_TRY(write({kPadding, header_.sections[i].offset - at}));
      HPD_TRY(write(sections_[i]));
      at = header_.sections[i].offset + sections_[i].size();
    }
    return {};
  }

 private:
  std::string_view& Section(IndexSection section) {
    return sections_[static_cast<size_t>(section)];
  }

  void AddObjects() {
    const ObjectGraph& graph = heap_.graph;
    const uint32_t count = graph.object_count();
    for (Column<uint32_t>* const column : {&wide_, &dominators_, &retained_})
      column->ReserveForRandomAccess(count);
    for (uint32_t object = 0; object < count; ++object) {
      wide_.push_back(shapes_.NumberOf(graph.TypeOf(object), graph.SizeOf(object)));
      dominators_.push_back(retention_.DominatorOf(object));
      const uint64_t retained = retention_.RetainedBy(object);
      retained_.push_back(
          static_cast<uint32_t>(std::min<uint64_t>(retained, KeptObjects::kLarge)));
      if (retained >= KeptObjects::kLarge)
        large_.push_back({retained, object, 0});
    }
    above_ = NearestAbove(graph);
    AddShapes();
    Section(IndexSection::kDominators) = BytesOf(dominators_.span());
    Section(IndexSection::kAbove) = BytesOf(above_.span());
    Section(IndexSection::kRetained) = BytesOf(retained_.span());
    Section(IndexSection::kLarge) = BytesOf(large_);
  }

  void AddShapes() {
    Section(IndexSection::kShapes) = BytesOf(shapes_.all());
    if (shapes_.all().size() > size_t{UINT16_MAX} + 1) {
      Section(IndexSection::kWide) = BytesOf(wide_.span());
      return;
    }
    narrow_.ReserveForRandomAccess(wide_.size());
    for (const uint32_t shape : wide_)
      narrow_.push_back(static_cast<uint16_t>(shape));
    wide_ = Column<uint32_t>();
    Section(IndexSection::kNarrow) = BytesOf(narrow_.span());
  }

  void AddRoots() {
    for (const GraphRoot& root : heap_.graph.roots()) {
      const RootRecord& record = heap_.roots[root.kind];
      roots_.push_back({record.id, root.object, record.thread, record.frame, record.tag});
    }
    Section(IndexSection::kRoots) = BytesOf(roots_);
  }

  void AddClasses() {
    const ClassTable& classes = heap_.census.classes;
    for (uint32_t row = 0; row < classes.size(); ++row) {
      const HeapClass& type = classes[row];
      classes_.push_back({
          .id = type.id,
          .super = type.super,
          .loader = type.loader,
          .instances = type.instances,
          .fields = type.fields == nullptr ? 0 : file_.OffsetOf(type.fields),
          .dumped_bytes = type.dumped_bytes,
          .most_bytes = type.most_bytes,
          .static_references = type.static_references,
          .static_other_bytes = type.static_other_bytes,
          .field_references = type.field_references,
          .field_other_bytes = type.field_other_bytes,
          .hidden_bytes = type.hidden_bytes,
          .field_count = type.field_count,
          .is_dumped = static_cast<uint8_t>(type.is_dumped),
          .is_contended = static_cast<uint8_t>(type.is_contended),
      });
    }
    Section(IndexSection::kClasses) = BytesOf(classes_);
  }

  void AddIds() {
    const AddressIndex::Parts ids = heap_.ids.parts();
    header_.shift = ids.shift;
    Section(IndexSection::kRanges) = BytesOf(ids.ranges);
    Section(IndexSection::kWords) = BytesOf(ids.words);
    Section(IndexSection::kSorted) = BytesOf(ids.sorted);
  }

  void FillHeader() {
    const HeapCensus& census = heap_.census;
    header_.objects = heap_.graph.object_count();
    header_.reachable_count = retention_.reachable_count();
    header_.reachable_bytes = retention_.reachable_bytes();
    header_.missing_references = heap_.missing_references;
    header_.class_objects = census.class_objects;
    header_.roots = census.roots;
    header_.class_class = census.class_class;
    header_.reference_bytes = census.layout.reference_bytes;
    header_.object_header_bytes = census.layout.object_header_bytes;
    header_.array_header_bytes = census.layout.array_header_bytes;
    header_.alignment = census.layout.alignment;
    header_.sizes_are_dumped = static_cast<uint16_t>(census.layout.sizes_are_dumped);
    header_.is_layout_known = static_cast<uint16_t>(census.is_layout_known);
    header_.census_objects = census.objects;
    uint64_t at = sizeof(header_);
    for (size_t i = 0; i < kIndexSections; ++i) {
      at = Padded(at, kIndexAlignment);
      header_.sections[i] = {at, sections_[i].size()};
      at += sections_[i].size();
    }
    header_.check = CheckOf(header_, sections_);
  }

  const DumpFile& file_;
  const HeapGraph& heap_;
  const Retention& retention_;
  IndexHeader header_;
  std::array<std::string_view, kIndexSections> sections_;
  Shapes shapes_;
  Column<uint16_t> narrow_;
  Column<uint32_t> wide_;
  Column<uint32_t> dominators_;
  Column<uint32_t> above_;
  Column<uint32_t> retained_;
  std::vector<LargeNumber> large_;
  std::vector<IndexRoot> roots_;
  std::vector<IndexClass> classes_;
};

}  // namespace

Status WriteIndex(const IndexKey& key,
                  const DumpFile& file,
                  const HeapGraph& heap,
                  const Retention& retention,
                  const std::function<Status(std::string_view)>& write) {
  return IndexWriter(key, file, heap, retention).Write(write);
}

}  // namespace heapprofd::hprof
