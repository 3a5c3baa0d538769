#include "hprof/graph_tables.h"

#include <algorithm>
#include <array>
#include <utility>

#include "hprof/direct_buffers.h"
#include "hprof/fields/field_layout.h"
#include "hprof/graph_contents.h"
#include "hprof/load_graph.h"
#include "profile/java_classes.h"

namespace heapprofd::hprof {
namespace {

HeapRootType RootTypeOf(uint8_t tag) {
  switch (tag) {
    case kRootJniGlobal:
      return HeapRootType::kJniGlobal;
    case kRootJniLocal:
      return HeapRootType::kJniLocal;
    case kRootJavaFrame:
      return HeapRootType::kJavaFrame;
    case kRootNativeStack:
      return HeapRootType::kNativeStack;
    case kRootStickyClass:
      return HeapRootType::kStickyClass;
    case kRootThreadBlock:
      return HeapRootType::kThreadBlock;
    case kRootMonitorUsed:
      return HeapRootType::kMonitorUsed;
    case kRootThreadObject:
      return HeapRootType::kThreadObject;
    case kRootInternedString:
      return HeapRootType::kInternedString;
    case kRootFinalizing:
      return HeapRootType::kFinalizing;
    case kRootDebugger:
      return HeapRootType::kDebugger;
    case kRootReferenceCleanup:
      return HeapRootType::kReferenceCleanup;
    case kRootVmInternal:
      return HeapRootType::kVmInternal;
    case kRootJniMonitor:
      return HeapRootType::kJniMonitor;
    default:
      return HeapRootType::kUnknown;
  }
}

// Of a class that has this name or a superclass of it.
HeapClassKind KindOfAncestor(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, HeapClassKind>, 8> kKinds = {
      {{"java.lang.String", HeapClassKind::kString},
       {"java.lang.Class", HeapClassKind::kClass},
       {"java.lang.ClassLoader", HeapClassKind::kClassLoader},
       {"java.lang.ref.SoftReference", HeapClassKind::kSoftReference},
       {"java.lang.ref.WeakReference", HeapClassKind::kWeakReference},
       {"java.lang.ref.FinalReference", HeapClassKind::kFinalizerReference},
       {"java.lang.ref.FinalizerReference", HeapClassKind::kFinalizerReference},
       {"java.lang.ref.PhantomReference", HeapClassKind::kPhantomReference}}};
  for (const auto& [known, kind] : kKinds) {
    if (name == known)
      return kind;
  }
  return HeapClassKind::kNormal;
}

// The rows of references, in the order of the dump.
class ReferenceRows : public HeapVisitor {
 public:
  ReferenceRows(const DumpFile& file,
                const HeapGraph& heap,
                uint32_t first_row,
                uint64_t* name_bytes_left,
                TraceBuilder* builder)
      : file_(file),
        id_bytes_(file.id_bytes()),
        heap_(heap),
        first_row_(first_row),
        name_bytes_left_(*name_bytes_left),
        builder_(*builder),
        tables_(builder->trace().heap_graph),
        layouts_(file, heap.census.classes),
        class_name_(builder->Intern("<class>")),
        fields_of_(heap.census.classes.size()),
        is_known_(heap.census.classes.size(), false) {}

  void Class(const ClassRecord& record) {
    if (!Begin(record.id))
      return;
    ReferToClass(heap_.census.classes[heap_.census.class_class].id);
    Refer(ObjectOf(record.super), builder_.Intern("<superclass>"));
    Refer(ObjectOf(record.loader), builder_.Intern("<class loader>"));
    Refer(ObjectOf(record.signers), builder_.Intern("<signers>"));
    Refer(ObjectOf(record.domain), builder_.Intern("<protection domain>"));
    ForEachStatic(record, id_bytes_,
                  [&](const uint8_t* field, uint8_t type, const uint8_t* value) {
                    const uint32_t object =
                        type == kObject ? ObjectOf(GetId(value, id_bytes_)) : kNoObject;
                    if (object != kNoObject)
                      Refer(object, NameOf(record.id, field));
                  });
  }

  void Instance(const InstanceRecord& record) {
    const uint32_t row = heap_.census.classes.Find(record.class_id);
    if (row == UINT32_MAX || !Begin(record.id))
      return;
    ReferToClass(record.class_id);
    for (NamedField& field : FieldsOf(row)) {
      if (uint64_t{field.offset} + id_bytes_ > record.byte_count)
        continue;
      const uint32_t object = ObjectOf(GetId(record.values + field.offset, id_bytes_));
      if (object != kNoObject && field.name == kNoId)
        field.name = NameOf(heap_.census.classes[field.declaring].id, field.field);
      Refer(object, field.name);
    }
  }

  void ObjectArray(const ObjectArrayRecord& record) {
    if (!Begin(record.id))
      return;
    ReferToClass(record.class_id);
    for (uint32_t i = 0; i < record.length; ++i)
      Refer(ObjectOf(GetId(record.elements + uint64_t{i} * id_bytes_, id_bytes_)),
            kEmptyString);
  }

  // There are more than numbers.
  bool is_full() const { return is_full_; }

  // Some are without that of their class.
  bool has_short_names() const { return has_short_names_; }

 private:
  struct NamedField {
    uint32_t offset;
    uint32_t declaring;     // row of its class
    const uint8_t* field;   // in the dump
    StringId name = kNoId;  // when it has been asked for
  };

  // False: there is no such object, or it was there before: a hostile file may repeat it.
  bool Begin(uint64_t id) {
    const uint32_t object = heap_.ids.Find(id);
    if (object == kNoObject)
      return false;
    owner_ = first_row_ + object;
    return tables_.objects.first_reference[owner_] == kNoId;
  }

  uint32_t ObjectOf(uint64_t id) const {
    return id == 0 ? kNoObject : heap_.ids.Find(id);
  }

  void Refer(uint32_t object, StringId name) {
    if (object == kNoObject)
      return;
    HeapReferenceTable& rows = tables_.references;
    is_full_ |= rows.row_count() >= kNoId - 1;
    if (is_full_)
      return;
    uint32_t& first = tables_.objects.first_reference[owner_];
    if (first == kNoId)
      first = static_cast<uint32_t>(rows.row_count());
    ++tables_.objects.reference_count[owner_];
    rows.owner.push_back(owner_);
    rows.owned.push_back(first_row_ + object);
    rows.field_name.push_back(name);
    rows.field_type_name.push_back(kNoId);
    rows.deobfuscated_field_name.push_back(kNoId);
  }

  void ReferToClass(uint64_t class_id) {
    const uint32_t object = heap_.ids.Find(class_id);
    if (object != kNoObject &&
        tables_.objects.root_type[first_row_ + object] == HeapRootType::kNone)
      Refer(object, class_name_);
  }

  std::vector<NamedField>& FieldsOf(uint32_t row) {
    std::vector<NamedField>& fields = fields_of_[row];
    if (is_known_[row])
      return fields;
    is_known_[row] = true;
    layouts_.ForEachField(
        row, heap_.census.classes[row].most_bytes,
        [&](uint32_t declaring, const uint8_t* field, uint8_t type, uint32_t offset) {
          if (type == kObject)
            fields.push_back({offset, declaring, field});
        });
    return fields;
  }

  // "java.util.HashMap.table".
  StringId NameOf(uint64_t class_id, const uint8_t* field) {
    const std::string_view own = file_.names().StringOf(GetId(field, id_bytes_));
    const std::string name = file_.names().ClassName(class_id).append(1, '.').append(own);
    if (name.size() > name_bytes_left_) {
      has_short_names_ = true;
      return builder_.Intern(own);
    }
    const size_t known = builder_.trace().strings.size();
    const StringId id = builder_.Intern(name);
    name_bytes_left_ -= builder_.trace().strings.size() > known ? name.size() : 0;
    return id;
  }

  const DumpFile& file_;
  const uint32_t id_bytes_;
  const HeapGraph& heap_;
  const uint32_t first_row_;
  uint64_t& name_bytes_left_;
  TraceBuilder& builder_;
  HeapGraphTables& tables_;
  const FieldLayouts layouts_;
  const StringId class_name_;
  std::vector<std::vector<NamedField>> fields_of_;  // by class
  std::vector<bool> is_known_;                      // by class: in fields_of_
  uint32_t owner_ = 0;
  bool is_full_ = false;
  bool has_short_names_ = false;
};

// `own_kinds`: of each class by its own name.
HeapClassKind KindOf(const std::vector<HeapClassKind>& own_kinds,
                     const ClassTable& classes,
                     uint32_t row) {
  for (const uint32_t at : classes.Ancestry(row)) {
    if (own_kinds[at] != HeapClassKind::kNormal)
      return own_kinds[at];
  }
  return HeapClassKind::kNormal;
}

// One for each type of the graph, in its order.
void AddClasses(const HeapGraph& heap,
                uint32_t first_class,
                uint32_t first_row,
                TraceBuilder* builder) {
  const ClassTable& classes = heap.census.classes;
  const std::vector<ObjectType>& types = heap.graph.types();
  std::vector<HeapClassKind> own_kinds;
  for (uint32_t row = 0; row < classes.size(); ++row)
    own_kinds.push_back(KindOfAncestor(types[row].name));
  for (uint32_t type = 0; type < types.size(); ++type) {
    heapprofd::HeapClass row;
    row.name = builder->Intern(types[type].name);
    row.is_array = types[type].name.ends_with("[]");
    row.kind = row.is_array ? HeapClassKind::kArray : HeapClassKind::kNormal;
    const uint64_t loader = type < classes.size() ? classes[type].loader : 0;
    const uint32_t object = loader == 0 ? kNoObject : heap.ids.Find(loader);
    if (object != kNoObject)
      row.classloader = first_row + object;
    if (type < classes.size() && !row.is_array) {
      row.kind = KindOf(own_kinds, classes, type);
      const uint32_t super =
          classes[type].super == 0 ? UINT32_MAX : classes.Find(classes[type].super);
      row.superclass = super == UINT32_MAX ? kNoId : first_class + super;
    }
    builder->trace().heap_graph.classes.push_back(row);
  }
}

void AddObjects(const HeapGraph& heap,
                uint32_t graph,
                uint32_t first_class,
                HeapGraphTables* tables) {
  HeapObjectTable& rows = tables->objects;
  while (rows.address.size() < rows.row_count())
    rows.address.push_back(0);
  for (uint32_t object = 0; object < heap.graph.object_count(); ++object) {
    rows.graph.push_back(graph);
    rows.type.push_back(first_class + heap.graph.TypeOf(object));
    rows.self_size.push_back(static_cast<int64_t>(heap.graph.SizeOf(object)));
    rows.native_size.push_back(0);
    rows.first_reference.push_back(kNoId);
    rows.reference_count.push_back(0);
    rows.root_distance.push_back(-1);
    rows.root_type.push_back(HeapRootType::kNone);
    rows.heap_type.push_back(HeapType::kUnknown);
    rows.address.push_back(heap.ids.IdOf(object));
  }
}

// The object that stands for a class gets a type of its own, named as in a trace of
// Android: "java.lang.Class<com.example.Node>".
void AddTypesOfClassObjects(const HeapGraph& heap,
                            uint32_t first_class,
                            uint32_t first_row,
                            TraceBuilder* builder) {
  const uint32_t class_class = heap.census.class_class;
  HeapGraphTables& tables = builder->trace().heap_graph;
  for (uint32_t row = 0; row < heap.census.classes.size(); ++row) {
    const ObjectType& type = heap.graph.types()[row];
    if (!heap.census.classes[row].is_dumped || type.object == kNoObject ||
        heap.graph.TypeOf(type.object) != class_class)
      continue;
    tables.objects.type[first_row + type.object] =
        static_cast<uint32_t>(tables.classes.size());
    heapprofd::HeapClass own;
    own.name = builder->Intern(ClassOfClass(type.name));
    own.superclass = first_class + class_class;
    own.kind = HeapClassKind::kClass;
    tables.classes.push_back(own);
  }
}

void AddRoots(const HeapGraph& heap, uint32_t first_row, HeapGraphTables* tables) {
  for (const GraphRoot& root : heap.graph.roots()) {
    HeapRootType& type = tables->objects.root_type[first_row + root.object];
    const HeapRootType other = RootTypeOf(heap.roots[root.kind].tag);
    if (type == HeapRootType::kNone || RankOf(other) > RankOf(type))
      type = other;
  }
}

}  // namespace

Status AddGraph(const DumpFile& file,
                const HeapDump& dump,
                GraphSource* source,
                TraceBuilder* builder,
                std::vector<std::string>* notes) {
  HPD_TRY_ASSIGN(HeapGraph heap, LoadGraph(file, dump));
  notes->insert(notes->end(), heap.census.damage.begin(), heap.census.damage.end());
  if (!heap.census.is_layout_known)
    notes->emplace_back(kUnknownLayout);
  HeapGraphTables& tables = builder->trace().heap_graph;
  const auto graph = static_cast<uint32_t>(tables.graphs.size());
  const auto first_class = static_cast<uint32_t>(tables.classes.size());
  const auto first_row = static_cast<uint32_t>(tables.objects.row_count());
  Status full(StatusCode::kUnavailable,
              "cannot make tables of a heap with more than 4,294,967,293 objects "
              "or references; heap_profile hprof has views without such tables");
  if (heap.graph.object_count() >= kNoId - 1 - first_row)
    return full;
  AddClasses(heap, first_class, first_row, builder);
  AddObjects(heap, graph, first_class, &tables);
  AddTypesOfClassObjects(heap, first_class, first_row, builder);
  AddRoots(heap, first_row, &tables);
  ReferenceRows references(file, heap, first_row, &source->name_bytes_left, builder);
  WalkDump(file, dump, references);
  if (references.is_full())
    return full;
  if (references.has_short_names())
    notes->emplace_back(
        "names of fields would take more than 64 MiB: some are without their class");
  for (const DirectBuffer& buffer : DirectBuffersOf(file, dump, heap))
    tables.direct_buffers.push_back(
        {first_row + buffer.object, buffer.address, buffer.bytes});
  SetRootDistances(first_row, builder->Intern(kReferentField), &tables);
  ImportedHeapGraph added;
  added.upid = source->upid;
  added.ts = source->ts;
  added.has_contents = source->contents != nullptr;
  added.truncated = source->is_damaged || !heap.census.damage.empty();
  added.first_object = first_row;
  added.object_count = heap.graph.object_count();
  if (source->contents != nullptr)
    source->contents->push_back(std::make_shared<GraphContents>(
        source->kept, dump, std::move(heap.census.classes), tables,
        GraphRows{first_row, added.object_count, first_class,
                  static_cast<uint32_t>(tables.classes.size()) - first_class}));
  tables.graphs.push_back(added);
  return {};
}

Status AddGraphs(const DumpFile& file,
                 GraphSource source,
                 TraceBuilder* builder,
                 std::vector<std::string>* notes) {
  constexpr uint64_t kNsPerMs = 1'000'000;
  constexpr uint64_t kMostMs = INT64_MAX / kNsPerMs / 2;  // a later one is none
  if (file.time_ms() <= kMostMs)
    source.ts = static_cast<int64_t>(file.time_ms() * kNsPerMs);
  for (const HeapDump& dump : file.dumps()) {
    HPD_TRY(AddGraph(file, dump, &source, builder, notes));
    ++source.ts;  // a file has one time, and graphs are told apart by theirs
  }
  return {};
}

}  // namespace heapprofd::hprof
