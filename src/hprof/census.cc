#include "hprof/census.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "hprof/layout/layout_evidence.h"
#include "profile/java_classes.h"

namespace heapprofd::hprof {
namespace {

template <bool kCollectIds>
class CensusTaker {
 public:
  CensusTaker(uint32_t id_bytes,
              uint64_t alignment,
              HeapCensus* census,
              Column<uint64_t>* ids)
      : id_bytes_(id_bytes),
        alignment_(alignment),
        census_(*census),
        ids_(ids),
        evidence_(alignment) {}

  void Root(const RootRecord&) { ++census_.roots; }

  void Class(const ClassRecord& record) {
    Object(record.id);
    ++census_.class_objects;
    HeapClass& type = census_.classes[census_.classes.RowOf(record.id)];
    type.is_dumped = true;
    type.super = record.super;
    type.loader = record.loader;
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
    const uint32_t row = census_.classes.RowOf(record.class_id);
    HeapClass& type = census_.classes[row];
    ++type.instances;
    type.most_bytes = std::max(type.most_bytes, record.byte_count);
    if (type.instances <= kMeasured) {
      measured_ = row;
      measured_id_ = record.id;
    }
  }

  void ObjectArray(const ObjectArrayRecord& record) {
    Object(record.id);
    const uint64_t narrow = uint64_t{record.length} * 4;
    census_.classes[census_.classes.RowOf(record.class_id)].arrays.Add(narrow, narrow * 2,
                                                                       alignment_);
    evidence_.Array(record.id, record.length, 0, true);
  }

  void PrimitiveArray(const PrimitiveArrayRecord& record) {
    Object(record.id);
    const uint32_t element_bytes = ValueBytes(record.type, id_bytes_);
    const uint64_t bytes = uint64_t{record.length} * element_bytes;
    census_.primitive_arrays[record.type].AddNumbers(bytes, alignment_);
    evidence_.Array(record.id, record.length, element_bytes, false);
  }

  const LayoutEvidence& evidence() const { return evidence_; }

 private:
  static constexpr uint64_t kMeasured = 100;  // instances of each class

  void Object(uint64_t id) {
    ++census_.objects;
    evidence_.Object(id);
    if (measured_ != kNoRow)
      Measure(id);
    if constexpr (kCollectIds)
      ids_->push_back(id);
  }

  // `id`: of what comes behind the instance to be measured.
  void Measure(uint64_t id) {
    HeapClass& type = census_.classes[measured_];
    measured_ = kNoRow;
    if (id <= measured_id_) {
      ++type.steps_back;
      return;
    }
    ++type.gaps;
    type.least_gap = std::min(type.least_gap, id - measured_id_);
  }

  static void Count(uint8_t basic, uint32_t* references, uint32_t* other_bytes) {
    if (basic == kObject)
      ++*references;
    else
      *other_bytes += ValueBytes(basic, 0);
  }

  static constexpr uint32_t kNoRow = UINT32_MAX;

  const uint32_t id_bytes_;
  const uint64_t alignment_;
  HeapCensus& census_;
  Column<uint64_t>* const ids_;
  LayoutEvidence evidence_;
  uint32_t measured_ = kNoRow;  // class of the instance that was just seen
  uint64_t measured_id_ = 0;
};

// HotSpot's padding around fields that several processors write at once
// (jdk.internal.vm.annotation.Contended): before and behind them, when nobody has set
// -XX:ContendedPaddingWidth.
constexpr uint32_t kPaddingWidth = 128;

// In a dump that is in the order of addresses: it is written by several threads.
constexpr uint64_t kGapsOfAStepBack = 20;

// Pointers that HotSpot adds to classes of the language and does not dump.
uint32_t HiddenBytes(std::string_view name, uint32_t id_bytes, uint32_t reference_bytes) {
  if (name == kClassClass)
    return 2 * id_bytes + 8 + 3 * reference_bytes;
  if (name == "java.lang.invoke.ResolvedMethodName")
    return id_bytes + reference_bytes;
  const bool has_pointer = name == "java.lang.ClassLoader" ||
                           name == "java.lang.Module" ||
                           name == "java.lang.invoke.MemberName";
  return has_pointer ? id_bytes : 0;
}

// Those of JDK 17.
bool IsKnownAsContended(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "java.lang.Thread",
      "java.util.concurrent.ConcurrentHashMap$CounterCell",
      "java.util.concurrent.Exchanger$Node",
      "java.util.concurrent.ForkJoinPool",
      "java.util.concurrent.ForkJoinPool$WorkQueue",
      "java.util.concurrent.SubmissionPublisher$BufferedSubscription",
      "java.util.concurrent.atomic.Striped64$Cell"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Instances show by what lies behind them how large they may be at most, and how large
// they are when none of several has anything nearer; unless the dump is in no order of
// addresses (collectors that go along references dump so). What is aligned within the
// padding can take some bytes more.
uint32_t PaddingOf(const HeapClass& type, uint64_t bytes_without, bool is_known) {
  constexpr uint32_t kEnoughGaps = 3;
  constexpr uint32_t kUsualPadding = 2 * kPaddingWidth;
  constexpr uint32_t kMostPadding = 8 * kPaddingWidth;  // of several groups of fields
  constexpr uint32_t kMostAligning = 24;
  if (is_known && type.gaps == 0)
    return kUsualPadding;
  const uint64_t left =
      type.least_gap > bytes_without ? type.least_gap - bytes_without : 0;
  const bool is_padding = left >= kUsualPadding && left <= kMostPadding &&
                          left % kPaddingWidth <= kMostAligning;
  const bool is_in_order = type.gaps >= kGapsOfAStepBack * type.steps_back;
  if (is_padding && (is_known || (type.gaps >= kEnoughGaps && is_in_order)))
    return static_cast<uint32_t>(left);
  return is_known && left >= kUsualPadding ? kUsualPadding : 0;
}

// Of one class by chance, of all not.
bool IsInOrder(const ClassTable& classes) {
  uint64_t gaps = 0;
  uint64_t steps_back = 0;
  for (uint32_t row = 1; row < classes.size(); ++row) {
    gaps += classes[row].gaps;
    steps_back += classes[row].steps_back;
  }
  return gaps >= kGapsOfAStepBack * steps_back;
}

// Class dumps do not tell sizes.
bool IsOfHotSpot(const DumpFile& file) {
  return !file.is_android();
}

// Ids are addresses. Those of 4 bytes may be numbers of the old agent; a virtual machine
// of 32 bits has one layout.
bool HasSeveralLayouts(const DumpFile& file) {
  return IsOfHotSpot(file) && file.id_bytes() == 8;
}

// Finds the padding of classes, superclasses first, as theirs is part of what is without.
class PaddingFinder {
 public:
  PaddingFinder(const std::vector<bool>& is_known, bool is_measured, HeapCensus* census)
      : is_known_(is_known),
        is_measured_(is_measured),
        layout_(census->layout),
        classes_(census->classes),
        bytes_(census->classes.size(), kNotAsked) {}

  void Find() {
    for (uint32_t row = 1; row < classes_.size(); ++row)
      FindUpTo(row);
  }

 private:
  static constexpr uint64_t kNotAsked = UINT64_MAX;

  // Each class once, however deep they are, and where they form a circle, too.
  void FindUpTo(uint32_t row) {
    way_.clear();
    uint64_t bytes = layout_.object_header_bytes;
    while (row != UINT32_MAX) {
      if (bytes_[row] != kNotAsked) {
        bytes = bytes_[row];
        break;
      }
      bytes_[row] = bytes;  // for now: in a circle it is the first one
      way_.push_back(row);
      row = classes_[row].super == 0 ? UINT32_MAX : classes_.Find(classes_[row].super);
    }
    for (; !way_.empty(); way_.pop_back()) {
      bytes = BytesOf(way_.back(), bytes);
      bytes_[way_.back()] = bytes;
    }
  }

  // With that of its superclass.
  uint64_t BytesOf(uint32_t row, uint64_t bytes) {
    HeapClass& type = classes_[row];
    bytes += OwnBytes(type, layout_);
    if (!is_known_[row] && (!is_measured_ || type.gaps == 0))
      return bytes;
    const uint32_t padding =
        PaddingOf(type, Padded(bytes, layout_.alignment), is_known_[row]);
    type.hidden_bytes += padding;
    type.is_contended = padding > 0;
    return type.is_contended ? Padded(bytes + padding, 8) : bytes;
  }

  const std::vector<bool>& is_known_;
  const bool is_measured_;
  const ObjectLayout& layout_;
  ClassTable& classes_;
  std::vector<uint64_t> bytes_;  // of an instance, without what aligns it; by row
  std::vector<uint32_t> way_;
};

void AddWhatIsNotDumped(const DumpFile& file, HeapCensus* census) {
  std::vector<bool> is_contended = {false};  // by row
  for (uint32_t row = 1; row < census->classes.size(); ++row) {
    HeapClass& type = census->classes[row];
    const std::string name = file.names().ClassName(type.id);
    if (name == kClassClass)
      census->class_class = row;
    if (!census->layout.sizes_are_dumped)
      type.hidden_bytes =
          HiddenBytes(name, file.id_bytes(), census->layout.reference_bytes);
    is_contended.push_back(IsKnownAsContended(name));
  }
  if (IsOfHotSpot(file))
    PaddingFinder(is_contended, HasSeveralLayouts(file) && IsInOrder(census->classes),
                  census)
        .Find();
}

// A dump whose order tells nothing is walked through once more.
std::optional<ObjectLayout> LayoutOf(const DumpFile& file,
                                     const HeapDump& dump,
                                     const LayoutEvidence& evidence,
                                     uint64_t alignment) {
  if (std::optional<ObjectLayout> best = evidence.Best())
    return best;
  AddressOrder pages(file.id_bytes());
  WalkDump(file, dump, pages);
  return pages.Evidence(alignment).Best();
}

void SetLayout(const DumpFile& file,
               const HeapDump& dump,
               const LayoutEvidence& evidence,
               uint64_t alignment,
               HeapCensus* census) {
  census->layout =
      file.is_android() ? ObjectLayout{4, 8, 12, true} : ObjectLayout{4, 8, 12};
  if (!HasSeveralLayouts(file))
    return;
  const std::optional<ObjectLayout> best = LayoutOf(file, dump, evidence, alignment);
  census->is_layout_known = best.has_value() || census->objects == 0;
  census->layout = best.value_or(kLayouts[0]);
  census->layout.alignment = static_cast<uint32_t>(alignment);
}

// The sums over arrays need the alignment, which is nearly always 8: where it is not, the
// walk is done again.
template <bool kCollectIds>
HeapCensus Take(const DumpFile& file, const HeapDump& dump, Column<uint64_t>* ids) {
  constexpr uint64_t kLeastObjects = 100;  // to tell how all are aligned
  uint64_t alignment = 8;
  while (true) {
    HeapCensus census;
    CensusTaker<kCollectIds> taker(file.id_bytes(), alignment, &census, ids);
    census.damage = WalkDump(file, dump, taker);
    const uint64_t found = taker.evidence().Alignment();
    if (HasSeveralLayouts(file) && found > alignment && census.objects >= kLeastObjects) {
      alignment = found;
      if constexpr (kCollectIds)
        ids->clear();
      continue;
    }
    SetLayout(file, dump, taker.evidence(), alignment, &census);
    AddWhatIsNotDumped(file, &census);
    return census;
  }
}

}  // namespace

HeapCensus TakeCensus(const DumpFile& file, const HeapDump& dump) {
  return Take<false>(file, dump, nullptr);
}

HeapCensus TakeCensus(const DumpFile& file, const HeapDump& dump, Column<uint64_t>* ids) {
  return Take<true>(file, dump, ids);
}

}  // namespace heapprofd::hprof
