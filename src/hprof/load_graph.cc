#include "hprof/load_graph.h"

#include <utility>

#include "hprof/fields/field_layout.h"
#include "hprof/histogram.h"
#include "profile/java_classes.h"

namespace heapprofd::hprof {
namespace {

class GraphLoader : public HeapVisitor {
 public:
  GraphLoader(const DumpFile& file, Holding holding, HeapGraph* heap)
      : id_bytes_(file.id_bytes()),
        heap_(*heap),
        graph_(heap->graph),
        classes_(heap->census.classes),
        layout_(heap->census.layout),
        fields_(file, heap->census.classes, holding) {
    for (uint32_t row = 0; row < classes_.size(); ++row)
      instance_bytes_.push_back(classes_.InstanceBytes(row, layout_));
    FindFinalizers(file);
  }

  void Root(const RootRecord& record) {
    const uint32_t object = heap_.ids.Find(record.id);
    if (object == kNoObject || record.tag == kUnreachableObject)
      return;
    graph_.AddRoot(object, static_cast<uint32_t>(heap_.roots.size()));
    heap_.roots.push_back(record);
  }

  void Class(const ClassRecord& record) {
    const uint32_t object = heap_.ids.Find(record.id);
    const uint32_t row = RowOf(record.id);
    if (object == kNoObject || row == kNoRow)
      return NoteChange();
    const uint32_t class_class = heap_.census.class_class;
    graph_.SetObject(object, class_class,
                     classes_.ClassObjectBytes(row, class_class, layout_));
    for (const uint64_t id : {record.super, record.loader, record.signers, record.domain})
      Refer(id);
    ForEachStatic(record, id_bytes_,
                  [this](const uint8_t*, uint8_t type, const uint8_t* value) {
                    if (type == kObject)
                      Refer(GetId(value, id_bytes_));
                  });
    graph_.EndReferences(object);
  }

  void Instance(const InstanceRecord& record) {
    const uint32_t object = heap_.ids.Find(record.id);
    const uint32_t row = RowOf(record.class_id);
    if (object == kNoObject || row == kNoRow)
      return NoteChange();
    graph_.SetObject(object, row, instance_bytes_[row]);
    for (const uint32_t offset : fields_.HoldingReferences(row)) {
      if (uint64_t{offset} + id_bytes_ <= record.byte_count)
        Refer(GetId(record.values + offset, id_bytes_));
    }
    graph_.EndReferences(object);
    if (row == finalizer_row_)
      HoldWhatIsQueued(record);
  }

  void ObjectArray(const ObjectArrayRecord& record) {
    const uint32_t object = heap_.ids.Find(record.id);
    const uint32_t row = RowOf(record.class_id);
    if (object == kNoObject || row == kNoRow)
      return NoteChange();
    graph_.SetObject(
        object, row,
        ArrayBytes(uint64_t{record.length} * layout_.reference_bytes, layout_));
    for (uint32_t i = 0; i < record.length; ++i)
      Refer(GetId(record.elements + uint64_t{i} * id_bytes_, id_bytes_));
    graph_.EndReferences(object);
  }

  void PrimitiveArray(const PrimitiveArrayRecord& record) {
    const uint32_t object = heap_.ids.Find(record.id);
    if (object == kNoObject)
      return NoteChange();
    graph_.SetObject(
        object, classes_.size() + record.type,
        ArrayBytes(uint64_t{record.length} * ValueBytes(record.type, id_bytes_),
                   layout_));
  }

  bool has_changed() const { return has_changed_; }

 private:
  static constexpr uint32_t kNoRow = UINT32_MAX;

  // What the census has not seen was written into the file since.
  void NoteChange() { has_changed_ = true; }

  void FindFinalizers(const DumpFile& file) {
    for (uint32_t row = 0; row < classes_.size(); ++row) {
      if (classes_[row].instances == 0 ||
          file.names().ClassName(classes_[row].id) != "java.lang.ref.Finalizer")
        continue;
      finalizer_row_ = row;
      fields_.FindFields(row, {{"referent", kObject, &referent_},
                               {"next", kObject, &next_},
                               {"discovered", kObject, &discovered_}});
    }
  }

  // 0: it has no such field.
  uint64_t ReferenceAt(const InstanceRecord& record, uint32_t offset) const {
    return uint64_t{offset} + id_bytes_ > record.byte_count
               ? 0
               : GetId(record.values + offset, id_bytes_);
  }

  // What nothing else holds waits for its finalizer to run, and is not free before. The
  // virtual machine has linked it into its list of those (discovered) or into their queue
  // (next, the last one with itself).
  void HoldWhatIsQueued(const InstanceRecord& record) {
    if (ReferenceAt(record, next_) == 0 && ReferenceAt(record, discovered_) == 0)
      return;
    const uint64_t id = ReferenceAt(record, referent_);
    if (id != 0)
      Root({kRootFinalizing, id, 0, UINT32_MAX});
  }

  // Of a class of the census. Most objects have that of the one before.
  uint32_t RowOf(uint64_t class_id) {
    if (class_id != last_class_id_) {
      last_class_id_ = class_id;
      last_row_ = classes_.Find(class_id);
    }
    return last_row_;
  }

  void Refer(uint64_t id) {
    if (id == 0)
      return;
    const uint32_t target = heap_.ids.Find(id);
    if (target == kNoObject)
      ++heap_.missing_references;
    else
      graph_.AddReference(target);
  }

  const uint32_t id_bytes_;
  HeapGraph& heap_;
  ObjectGraph& graph_;
  const ClassTable& classes_;
  const ObjectLayout& layout_;
  FieldLayouts fields_;
  std::vector<uint64_t> instance_bytes_;  // by class
  uint64_t last_class_id_ = 0;
  uint32_t last_row_ = 0;  // what has no class
  bool has_changed_ = false;
  uint32_t finalizer_row_ = kNoRow;
  uint32_t referent_ = UINT32_MAX;  // offsets in its instances
  uint32_t next_ = UINT32_MAX;
  uint32_t discovered_ = UINT32_MAX;
};

}  // namespace

// In a dump without java.lang.Class the objects of classes have no class themselves.
void AddTypes(const DumpFile& file, HeapGraph* heap) {
  const ClassTable& classes = heap->census.classes;
  const bool has_class_class = heap->census.class_class != 0;
  heap->graph.AddType(has_class_class ? file.names().ClassName(0)
                                      : std::string(kClassClass));
  for (uint32_t row = 1; row < classes.size(); ++row)
    heap->graph.AddType(file.names().ClassName(classes[row].id),
                        heap->ids.Find(classes[row].id));
  for (uint8_t type = 0; type < kBasicTypeCount; ++type)
    heap->graph.AddType(PrimitiveArrayName(type));
}

Result<HeapGraph> LoadGraph(const DumpFile& file, const HeapDump& dump, Holding holding) {
  Column<uint64_t> ids;
  uint64_t bytes = 0;
  for (const HeapRange& range : dump.ranges)
    bytes += static_cast<uint64_t>(range.end - range.begin);
  constexpr uint64_t kUsualBytes = 40;  // of an object in a dump
  ids.ReserveForRandomAccess(bytes / kUsualBytes);
  HeapCensus census = TakeCensus(file, dump, &ids);
  return LoadGraph(file, dump, std::move(census), std::move(ids), holding);
}

Result<HeapGraph> LoadGraph(const DumpFile& file,
                            const HeapDump& dump,
                            HeapCensus census,
                            Column<uint64_t> ids,
                            Holding holding) {
  AddressIndex index(ids);
  const size_t usual_references = ids.size() * 3 / 2;
  ids = Column<uint64_t>();
  if (index.size() >= kNoObject - 1)
    return Status(StatusCode::kUnavailable,
                  "cannot analyse a dump of more than 4,294,967,293 objects; its "
                  "histogram has no such limit");
  const uint32_t object_count = index.size();
  HeapGraph heap{std::move(census), std::move(index), ObjectGraph(object_count), {}, 0};
  heap.graph.ReserveReferences(usual_references);
  AddTypes(file, &heap);
  GraphLoader loader(file, holding, &heap);
  WalkDump(file, dump, loader);
  if (loader.has_changed())
    return Status(StatusCode::kCorrupt,
                  "cannot analyse the dump: it was changed while it was read; analyse a "
                  "copy of it");
  return heap;
}

const char* RootName(uint8_t tag) {
  switch (tag) {
    case kRootJniGlobal:
      return "ROOT_JNI_GLOBAL";
    case kRootJniLocal:
      return "ROOT_JNI_LOCAL";
    case kRootJavaFrame:
      return "ROOT_JAVA_FRAME";
    case kRootNativeStack:
      return "ROOT_NATIVE_STACK";
    case kRootStickyClass:
      return "ROOT_STICKY_CLASS";
    case kRootThreadBlock:
      return "ROOT_THREAD_BLOCK";
    case kRootMonitorUsed:
      return "ROOT_MONITOR_USED";
    case kRootThreadObject:
      return "ROOT_THREAD_OBJECT";
    case kRootInternedString:
      return "ROOT_INTERNED_STRING";
    case kRootFinalizing:
      return "ROOT_FINALIZING";
    case kRootDebugger:
      return "ROOT_DEBUGGER";
    case kRootReferenceCleanup:
      return "ROOT_REFERENCE_CLEANUP";
    case kRootVmInternal:
      return "ROOT_VM_INTERNAL";
    case kRootJniMonitor:
      return "ROOT_JNI_MONITOR";
    default:
      return "ROOT_UNKNOWN";
  }
}

}  // namespace heapprofd::hprof
