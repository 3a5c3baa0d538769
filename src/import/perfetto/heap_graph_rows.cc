#include "import/perfetto/heap_graph_rows.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "profile/java_classes.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxSuperclasses = 1000;  // a hostile file's may go in a circle

// "X" of "java.lang.Class<X>"; empty for other names and for classes of arrays, which
// have no class in the source.
std::string_view DescribedElementClass(std::string_view name) {
  const std::string_view described = DescribedClass(name);
  return described.ends_with("[]") ? std::string_view() : described;
}

class GraphRows {
 public:
  GraphRows(HeapGraphDump& dump, TraceBuilder* builder)
      : dump_(dump),
        builder_(*builder),
        tables_(builder->trace().heap_graph),
        first_class_(static_cast<uint32_t>(tables_.classes.size())),
        first_row_(static_cast<uint32_t>(tables_.objects.row_count())) {}

  // A row of heap_graph.
  void AddTo(ImportedHeapGraph& graph) {
    graph_ = static_cast<uint32_t>(&graph - tables_.graphs.data());
    AddClasses();
    AddObjects();
    AddRoots();
    FinishClasses();
    for (const uint32_t number : dump_.described.span())
      AddReferences(number);
    InferSuperclasses();
    AddNativeSizes();
    AddBitmaps();
    AddDirectBuffers();
    SetRootDistances(first_row_, builder_.Intern(kReferentField), &tables_);
    if (dump_.heap_size)
      graph.heap_size = dump_.heap_size;
    graph.truncated |= dump_.is_truncated;
    graph.first_object = first_row_;
    graph.object_count = static_cast<uint32_t>(tables_.objects.row_count()) - first_row_;
  }

 private:
  using FieldNames = std::vector<HeapGraphDump::FieldName>;

  // Name and location: a name alone can be that of several classes.
  using ClassKey = std::pair<StringId, StringId>;

  std::string_view Text(StringId id) const { return builder_.trace().Text(id); }

  void CountMalformed() {
    builder_.trace().stats.Add(StatId::kHeapGraphMalformedPacket, dump_.pid, 1);
  }

  void AddClasses() {
    class_rows_.assign(dump_.types.size(), kNoId);
    for (uint32_t type = 0; type < dump_.types.size(); ++type) {
      const HeapGraphDump::Type& from = dump_.types[type];
      if (!from.is_known)
        continue;
      class_rows_[type] = static_cast<uint32_t>(tables_.classes.size());
      HeapClass row;
      row.name = from.name;
      row.kind = from.kind;
      row.is_array = Text(row.name).ends_with("[]");
      if (from.location != kNoId)
        row.location = dump_.locations[from.location].path;
      tables_.classes.push_back(row);
    }
  }

  void AddObjects() {
    HeapObjectTable& rows = tables_.objects;
    rows_.resize(dump_.objects.size(), kNoId);
    for (uint32_t number = 0; number < dump_.objects.size(); ++number) {
      const HeapGraphDump::Object& object = dump_.objects[number];
      if (!object.is_known)
        continue;
      if (class_rows_[object.type] == kNoId) {
        CountMalformed();
        continue;
      }
      const bool is_image = object.heap_type == HeapType::kZygote ||
                            object.heap_type == HeapType::kBootImage;
      rows_[number] = static_cast<uint32_t>(rows.row_count());
      rows.graph.push_back(graph_);
      rows.type.push_back(class_rows_[object.type]);
      rows.self_size.push_back(static_cast<int64_t>(
          object.self_size != 0 ? object.self_size
                                : dump_.types[object.type].object_size));
      rows.native_size.push_back(0);
      rows.first_reference.push_back(kNoId);
      rows.reference_count.push_back(0);
      rows.root_distance.push_back(-1);
      rows.root_type.push_back(is_image ? HeapRootType::kVmInternal
                                        : HeapRootType::kNone);
      rows.heap_type.push_back(object.heap_type);
    }
  }

  // kNoId: it is not in the dump.
  uint32_t RowOf(uint64_t id) {
    const uint32_t number = dump_.ObjectOf(id);
    return number < rows_.size() ? rows_[number] : kNoId;
  }

  void AddRoots() {
    std::vector<bool> is_marked(tables_.objects.row_count() - first_row_, false);
    for (const HeapGraphDump::Root& root : dump_.roots.span()) {
      const uint32_t row = RowOf(root.object);
      if (row == kNoId)
        continue;
      HeapRootType& type = tables_.objects.root_type[row];
      if (!is_marked[row - first_row_] || RankOf(root.type) > RankOf(type))
        type = root.type;
      is_marked[row - first_row_] = true;
    }
  }

  void FinishClasses() {
    const uint32_t count = dump_.types.size();
    for (uint32_t type = 0; type < count; ++type) {
      if (class_rows_[type] == kNoId)
        continue;
      HeapClass& row = tables_.classes[class_rows_[type]];
      row.superclass = ClassRowOf(SuperclassOf(type));
      if (dump_.types[type].classloader != 0)
        row.classloader = RowOf(dump_.types[type].classloader);
    }
  }

  // kNoId: there is none in the dump.
  uint32_t SuperclassOf(uint32_t type) {
    const uint64_t id = dump_.types[type].superclass;
    return id == 0 ? kNoId : dump_.types.NumberOf(id);
  }

  uint32_t ClassRowOf(uint32_t type) const {
    return type < class_rows_.size() ? class_rows_[type] : kNoId;
  }

  // Of the class and then of its superclasses.
  const FieldNames& FieldsOf(uint32_t type) {
    const auto [entry, is_new] = fields_of_.try_emplace(type);
    const HeapClassKind kind = dump_.types[type].kind;
    if (!is_new || kind == HeapClassKind::kNoReferences ||
        kind == HeapClassKind::kArray || kind == HeapClassKind::kString)
      return entry->second;
    uint32_t at = type;
    for (size_t depth = 0; depth < kMaxSuperclasses && ClassRowOf(at) != kNoId; ++depth) {
      for (const uint32_t field : dump_.types[at].fields)
        entry->second.push_back(dump_.field_names[field]);
      at = SuperclassOf(at);
    }
    return entry->second;
  }

  void AddReferences(uint32_t number) {
    const HeapGraphDump::Object& object = dump_.objects[number];
    if (rows_[number] == kNoId || object.reference_count == 0)
      return;
    const uint32_t fields = object.reference_count - object.internal_count;
    const FieldNames* const of_class =
        object.has_fields || fields == 0 ? nullptr : &FieldsOf(object.type);
    const StringId internal = builder_.Intern("runtimeInternalObjects");
    tables_.objects.first_reference[rows_[number]] =
        static_cast<uint32_t>(tables_.references.row_count());
    tables_.objects.reference_count[rows_[number]] = object.reference_count;
    for (uint32_t i = 0; i < object.reference_count; ++i) {
      const HeapGraphDump::Reference& reference =
          dump_.references[object.first_reference + i];
      HeapGraphDump::FieldName field;
      if (i >= fields)
        field.name = internal;
      else if (of_class != nullptr)
        field = i < of_class->size() ? (*of_class)[i] : field;
      else if (reference.field != kNoId)
        field = dump_.field_names[reference.field];
      HeapReferenceTable& rows = tables_.references;
      rows.owner.push_back(rows_[number]);
      rows.owned.push_back(reference.object == kNoId ? kNoId : rows_[reference.object]);
      rows.field_name.push_back(field.name);
      rows.field_type_name.push_back(field.type_name);
      rows.deobfuscated_field_name.push_back(kNoId);
    }
  }

  // Where a field of an object leads; kNoId: nowhere.
  uint32_t OwnedBy(uint32_t row, std::string_view field) const {
    const HeapObjectTable& objects = tables_.objects;
    const StringId name = builder_.trace().strings.Find(field);
    for (uint32_t i = 0; i < objects.reference_count[row]; ++i) {
      const uint32_t reference = objects.first_reference[row] + i;
      if (tables_.references.field_name[reference] == name)
        return tables_.references.owned[reference];
    }
    return kNoId;
  }

  // By class, from first_class_ on: the one whose class objects are of it. kNoId: of
  // none.
  std::vector<uint32_t> DescribedClasses() const {
    std::map<ClassKey, uint32_t> classes;
    for (uint32_t row = first_class_; row < tables_.classes.size(); ++row)
      classes.try_emplace({tables_.classes[row].name, tables_.classes[row].location},
                          row);
    std::vector<uint32_t> described;
    for (uint32_t row = first_class_; row < tables_.classes.size(); ++row) {
      const HeapClass& type = tables_.classes[row];
      const std::string_view name = DescribedElementClass(Text(type.name));
      const auto found =
          classes.find({builder_.trace().strings.Find(name), type.location});
      described.push_back(name.empty() || found == classes.end() ? kNoId : found->second);
    }
    return described;
  }

  void InferSuperclasses() {
    const std::vector<uint32_t> described = DescribedClasses();
    for (uint32_t row = first_row_; row < tables_.objects.row_count(); ++row) {
      const uint32_t type = described[tables_.objects.type[row] - first_class_];
      if (type == kNoId || tables_.classes[type].superclass != kNoId)
        continue;
      const uint32_t super = OwnedBy(row, "java.lang.Class.superClass");
      if (super != kNoId)
        tables_.classes[type].superclass =
            described[tables_.objects.type[super] - first_class_];
    }
  }

  // A Cleaner leads to the registry on behalf of its referent. One that has run is its
  // own next.
  void AddNativeSizes() {
    constexpr uint64_t kIsMalloced = 1;       // the registry's mark in the size
    constexpr uint32_t kMaxReferences = 100;  // of a thunk, which is searched often
    std::map<uint32_t, int64_t> size_of;
    for (const auto& [number, size] : dump_.registry_sizes) {
      if (rows_[number] != kNoId)
        size_of[rows_[number]] =
            static_cast<int64_t>(static_cast<uint64_t>(size) & ~kIsMalloced);
    }
    const StringId cleaner = builder_.Intern("sun.misc.Cleaner");
    for (uint32_t row = first_row_; !size_of.empty() && row < tables_.objects.row_count();
         ++row) {
      if (tables_.classes[tables_.objects.type[row]].name != cleaner ||
          OwnedBy(row, "sun.misc.Cleaner.next") == row)
        continue;
      const uint32_t referent = OwnedBy(row, kReferentField);
      const uint32_t thunk = OwnedBy(row, "sun.misc.Cleaner.thunk");
      if (referent == kNoId || thunk == kNoId ||
          tables_.objects.reference_count[thunk] > kMaxReferences)
        continue;
      const auto registry = size_of.find(
          OwnedBy(thunk, "libcore.util.NativeAllocationRegistry$CleanerThunk.this$0"));
      if (registry != size_of.end())
        AddSaturated(&tables_.objects.native_size[referent], registry->second);
    }
  }

  static void AddSaturated(int64_t* sum, int64_t more) {
    if (__builtin_add_overflow(*sum, more, sum))
      *sum = more < 0 ? INT64_MIN : INT64_MAX;
  }

  void AddBitmaps() {
    constexpr char kPrefix[] = "android.graphics.Bitmap.";
    const StringId long_type = builder_.Intern("long");
    const StringId int_type = builder_.Intern("int");
    std::ranges::sort(dump_.bitmaps, {}, [this](const HeapGraphDump::BitmapFields& of) {
      return rows_[of.object];
    });
    for (const HeapGraphDump::BitmapFields& bitmap : dump_.bitmaps) {
      if (rows_[bitmap.object] == kNoId)
        continue;
      const auto set = static_cast<uint32_t>(tables_.primitives.size());
      const auto add = [&](const char* name, StringId type,
                           const std::optional<int64_t>& value) {
        if (value)
          tables_.primitives.push_back(
              {set, builder_.Intern(std::string(kPrefix) + name), type, *value});
      };
      add("mId", long_type, bitmap.id);
      add("mSourceId", long_type, bitmap.source_id);
      add("mWidth", int_type, bitmap.width);
      add("mHeight", int_type, bitmap.height);
      tables_.object_data.push_back({rows_[bitmap.object], set});
    }
  }

  void AddDirectBuffers() {
    for (const HeapGraphDump::DirectBuffer& buffer : dump_.direct_buffers.span()) {
      if (const uint32_t row = RowOf(buffer.object); row != kNoId)
        tables_.direct_buffers.push_back({row, buffer.address, buffer.bytes});
    }
  }

  HeapGraphDump& dump_;
  TraceBuilder& builder_;
  HeapGraphTables& tables_;
  const uint32_t first_class_;
  const uint32_t first_row_;
  uint32_t graph_ = 0;
  std::vector<uint32_t> class_rows_;          // by type; kNoId: not described
  Column<uint32_t> rows_;                     // by object; kNoId: left out
  std::map<uint32_t, FieldNames> fields_of_;  // by type
};

}  // namespace

HeapGraphDump* HeapGraphQueue::Begin() {
  return dumps_.emplace_back(std::make_unique<HeapGraphDump>()).get();
}

void HeapGraphQueue::End(HeapGraphDump* dump) {
  dump->is_complete = true;
  while (!dumps_.empty() && dumps_.front()->is_complete) {
    HeapGraphDump& first = *dumps_.front();
    GraphRows(first, builder_)
        .AddTo(RowAt(builder_->processes().ProcessOf(first.pid), first.ts));
    dumps_.pop_front();
  }
}

ImportedHeapGraph& HeapGraphQueue::RowAt(uint32_t upid, int64_t ts) {
  std::vector<ImportedHeapGraph>& graphs = builder_->trace().heap_graph.graphs;
  const auto next = static_cast<uint32_t>(graphs.size());
  const auto [known, is_new] = rows_.try_emplace({upid, ts}, next);
  if (!is_new && graphs[known->second].object_count == 0)
    return graphs[known->second];
  known->second = next;
  ImportedHeapGraph& added = graphs.emplace_back();
  added.upid = upid;
  added.ts = ts;
  return added;
}

}  // namespace heapprofd
