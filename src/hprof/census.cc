#include "hprof/census.h"

#include <algorithm>

namespace heapprofd::hprof {
namespace {

// Concludes from neighbours in memory how objects are laid out: a virtual machine that
// has just collected garbage leaves no gaps between arrays and what comes behind them.
class LayoutEvidence {
 public:
  // Every object, in the order of the file.
  void Object(uint64_t id) {
    if (previous_ == 0)
      return;
    for (size_t i = 0; i < kLayouts; ++i)
      votes_[i] += static_cast<uint64_t>(id - previous_ == bytes_[i]);
    previous_ = 0;
  }

  // Behind Object(id).
  void Array(uint64_t id, uint64_t length, uint32_t element_bytes, bool are_references) {
    if (length < kLeastLength || seen_ == kEnough)
      return;
    ++seen_;
    previous_ = id;
    for (size_t i = 0; i < kLayouts; ++i)
      bytes_[i] = ArrayBytes(
          length * (are_references ? Layout(i).reference_bytes : element_bytes),
          Layout(i));
  }

  ObjectLayout Best() const {
    return Layout(static_cast<size_t>(
        std::max_element(std::begin(votes_), std::end(votes_)) - std::begin(votes_)));
  }

 private:
  static constexpr size_t kLayouts = 3;
  static constexpr uint64_t kLeastLength =
      5;  // differ in all layouts, whatever they hold
  static constexpr uint64_t kEnough = 100'000;

  // Compressed references and class pointers; only the latter; none.
  static constexpr ObjectLayout Layout(size_t i) {
    constexpr ObjectLayout kOf[kLayouts] = {
        {4, 12, 16, false}, {8, 12, 16, false}, {8, 16, 24, false}};
    return kOf[i];
  }

  uint64_t previous_ = 0;  // id of an array that was just seen
  uint64_t bytes_[kLayouts] = {};
  uint64_t votes_[kLayouts] = {};
  uint64_t seen_ = 0;
};

ObjectLayout LayoutOf(const DumpFile& file, const LayoutEvidence& evidence) {
  if (file.is_android())
    return {4, 8, 12, true};
  if (file.id_bytes() == 4)
    return {4, 8, 12, false};
  return evidence.Best();
}

template <bool kCollectIds>
class CensusTaker {
 public:
  CensusTaker(uint32_t id_bytes, HeapCensus* census, Column<uint64_t>* ids)
      : id_bytes_(id_bytes), census_(*census), ids_(ids) {}

  void Root(const RootRecord&) { ++census_.roots; }

  void Class(const ClassRecord& record) {
    Object(record.id);
    ++census_.class_objects;
    HeapClass& type = census_.classes[census_.classes.RowOf(record.id)];
    type.is_dumped = true;
    type.super = record.super;
    type.dumped_bytes = record.instance_bytes;
    type.field_count = record.field_count;
    type.fields = record.fields;
    type.field_references = type.field_other_bytes = 0;
    for (uint32_t i = 0; i < record.field_count; ++i)
      Count(record.fields[i * (id_bytes_ + 1) + id_bytes_], &type.field_references,
            &type.field_other_bytes);
    type.static_references = type.static_other_bytes = 0;
    ForEachStatic(record, id_bytes_,
                  [&type](const uint8_t*, uint8_t basic, const uint8_t*) {
                    Count(basic, &type.static_references, &type.static_other_bytes);
                  });
  }

  void Instance(const InstanceRecord& record) {
    Object(record.id);
    HeapClass& type = census_.classes[census_.classes.RowOf(record.class_id)];
    ++type.instances;
    type.most_bytes = std::max(type.most_bytes, record.byte_count);
  }

  void ObjectArray(const ObjectArrayRecord& record) {
    Object(record.id);
    const uint64_t narrow = uint64_t{record.length} * 4;
    Add(&census_.classes[census_.classes.RowOf(record.class_id)].arrays, narrow,
        narrow * 2);
    evidence_.Array(record.id, record.length, 0, true);
  }

  void PrimitiveArray(const PrimitiveArrayRecord& record) {
    Object(record.id);
    const uint32_t element_bytes = ValueBytes(record.type, id_bytes_);
    const uint64_t bytes = uint64_t{record.length} * element_bytes;
    Add(&census_.primitive_arrays[record.type], bytes, bytes);
    evidence_.Array(record.id, record.length, element_bytes, false);
  }

  const LayoutEvidence& evidence() const { return evidence_; }

 private:
  void Object(uint64_t id) {
    ++census_.objects;
    evidence_.Object(id);
    if constexpr (kCollectIds)
      ids_->push_back(id);
  }

  static void Add(ArrayFigures* arrays, uint64_t bytes, uint64_t wide) {
    ++arrays->count;
    arrays->padded += PaddedTo8(bytes);
    arrays->padded_behind_4 += PaddedTo8(bytes + 4);
    arrays->wide += PaddedTo8(wide);
  }

  static void Count(uint8_t basic, uint32_t* references, uint32_t* other_bytes) {
    if (basic == kObject)
      ++*references;
    else
      *other_bytes += ValueBytes(basic, 0);
  }

  const uint32_t id_bytes_;
  HeapCensus& census_;
  Column<uint64_t>* const ids_;
  LayoutEvidence evidence_;
};

// Fields that HotSpot adds to classes of the language and does not dump: most are
// pointers, java.lang.Thread's is the padding around what other threads must not slow
// down.
uint32_t HiddenBytes(std::string_view name, uint32_t id_bytes, uint32_t reference_bytes) {
  if (name == kClassClass)
    return 2 * id_bytes + 8 + 3 * reference_bytes;
  if (name == "java.lang.Thread")
    return kContendedBytes;
  if (name == "java.lang.invoke.ResolvedMethodName")
    return id_bytes + reference_bytes;
  const bool has_pointer = name == "java.lang.ClassLoader" ||
                           name == "java.lang.Module" ||
                           name == "java.lang.invoke.MemberName";
  return has_pointer ? id_bytes : 0;
}

void AddWhatIsNotDumped(const DumpFile& file, HeapCensus* census) {
  for (uint32_t row = 1; row < census->classes.size(); ++row) {
    HeapClass& type = census->classes[row];
    const std::string name = file.ClassName(type.id);
    if (name == kClassClass)
      census->class_class = row;
    if (!census->layout.sizes_are_dumped)
      type.hidden_bytes =
          HiddenBytes(name, file.id_bytes(), census->layout.reference_bytes);
  }
}

template <bool kCollectIds>
HeapCensus Take(const DumpFile& file, const HeapDump& dump, Column<uint64_t>* ids) {
  HeapCensus census;
  CensusTaker<kCollectIds> taker(file.id_bytes(), &census, ids);
  census.damage = WalkDump(file, dump, taker);
  census.layout = LayoutOf(file, taker.evidence());
  AddWhatIsNotDumped(file, &census);
  return census;
}

}  // namespace

HeapCensus TakeCensus(const DumpFile& file, const HeapDump& dump) {
  return Take<false>(file, dump, nullptr);
}

HeapCensus TakeCensus(const DumpFile& file, const HeapDump& dump, Column<uint64_t>* ids) {
  return Take<true>(file, dump, ids);
}

}  // namespace heapprofd::hprof
