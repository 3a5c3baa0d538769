#include "hprof/direct_buffers.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "hprof/fields/field_layout.h"

namespace heapprofd::hprof {
namespace {

constexpr std::string_view kBufferClass = "java.nio.DirectByteBuffer";
constexpr uint32_t kNoField = UINT32_MAX;
constexpr size_t kMostClasses = 8;  // good dumps have one of this name

// Where the fields are in an instance.
struct BufferFields {
  uint32_t address = kNoField;   // long; offsets
  uint32_t capacity = kNoField;  // int
  uint32_t whole = kNoField;     // what it is a part or a view of
  uint32_t file = kNoField;      // that is mapped
};

class BufferFinder : public HeapVisitor {
 public:
  BufferFinder(const DumpFile& file, const HeapGraph& heap)
      : heap_(heap), id_bytes_(file.id_bytes()) {
    const ClassTable& classes = heap.census.classes;
    const FieldLayouts layouts(file, classes);
    for (uint32_t row = 0; row < classes.size(); ++row) {
      if (heap.graph.types()[row].name == kBufferClass && classes[row].instances > 0 &&
          of_class_.size() < kMostClasses)
        of_class_.emplace_back(classes[row].id, FieldsOf(layouts, row));
    }
  }

  void Instance(const InstanceRecord& record) {
    for (const auto& [id, fields] : of_class_) {
      if (id == record.class_id)
        Add(record, fields);
    }
  }

  // False: a walk would find none.
  bool may_find() const { return !of_class_.empty(); }

  std::vector<DirectBuffer> Finish() {
    std::ranges::stable_sort(found_, std::ranges::less(), &DirectBuffer::address);
    found_.erase(std::unique(found_.begin(), found_.end(),
                             [](const DirectBuffer& a, const DirectBuffer& b) {
                               return a.address == b.address;
                             }),
                 found_.end());
    return std::move(found_);
  }

 private:
  static BufferFields FieldsOf(const FieldLayouts& layouts, uint32_t row) {
    BufferFields fields;
    layouts.FindFields(row, {{"address", kLong, &fields.address},
                             {"capacity", kInt, &fields.capacity},
                             {"att", kObject, &fields.whole},
                             {"fd", kObject, &fields.file}});
    return fields;
  }

  bool IsNull(const InstanceRecord& record, uint32_t field) const {
    return field == kNoField || uint64_t{field} + id_bytes_ > record.byte_count ||
           GetId(record.values + field, id_bytes_) == 0;
  }

  void Add(const InstanceRecord& record, const BufferFields& fields) {
    const uint32_t object = heap_.ids.Find(record.id);
    if (object == kNoObject || fields.address == kNoField ||
        fields.capacity == kNoField || uint64_t{fields.address} + 8 > record.byte_count ||
        uint64_t{fields.capacity} + 4 > record.byte_count ||
        !IsNull(record, fields.whole) || !IsNull(record, fields.file))
      return;
    const DirectBuffer buffer{object, Get64(record.values + fields.address),
                              Get32(record.values + fields.capacity)};
    if (buffer.address != 0 && buffer.bytes != 0 && buffer.bytes <= INT32_MAX)
      found_.push_back(buffer);
  }

  const HeapGraph& heap_;
  const uint32_t id_bytes_;
  std::vector<std::pair<uint64_t, BufferFields>> of_class_;  // by the ids of classes
  std::vector<DirectBuffer> found_;
};

}  // namespace

std::vector<DirectBuffer> DirectBuffersOf(const DumpFile& file,
                                          const HeapDump& dump,
                                          const HeapGraph& heap) {
  BufferFinder finder(file, heap);
  if (finder.may_find())
    WalkDump(file, dump, finder);
  return finder.Finish();
}

}  // namespace heapprofd::hprof
