// References, roots and classes are rows of the trace's tables.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "cli/hprof/loaded_heap.h"
#include "hprof/histogram.h"
#include "profile/java_classes.h"
#include "query/objects/graph_of_rows.h"

namespace heapprofd {
namespace {

constexpr std::string_view kHandle = "id=";  // of heap_graph_object

std::span<const HeapClassKind> WeakKinds(hprof::Holding holding) {
  static constexpr HeapClassKind kKinds[] = {
      HeapClassKind::kWeakReference, HeapClassKind::kFinalizerReference,
      HeapClassKind::kPhantomReference, HeapClassKind::kSoftReference};
  switch (holding) {
    case hprof::Holding::kStrong:
      return kKinds;
    case hprof::Holding::kSoft:
      return std::span(kKinds).first(3);
    default:
      return {};
  }
}

bool IsArrayOfNumbers(std::string_view name) {
  for (uint8_t type = 0; type < hprof::kBasicTypeCount; ++type) {
    if (name == hprof::PrimitiveArrayName(type))
      return true;
  }
  return false;
}

class HeapOfTrace : public LoadedHeap {
 public:
  HeapOfTrace(const ImportedTrace& trace, GraphOfRows rows)
      : trace_(trace), tables_(trace.heap_graph), rows_(std::move(rows)) {}

  const ObjectGraph& graph() const override { return rows_.graph; }

  std::string RootName(uint32_t kind) const override {
    return NameOf(static_cast<HeapRootType>(kind));
  }

  std::string ObjectName(uint32_t object) const override {
    const std::string_view described = StandsFor(object);
    return described.empty() ? graph().types()[graph().TypeOf(object)].name
                             : "class " + std::string(described);
  }

  std::string HandleOf(uint32_t object) const override {
    return std::string(kHandle) + std::to_string(rows_.RowOf(object));
  }

  uint32_t FindHandle(const std::string& text) const override {
    if (!text.starts_with(kHandle))
      return kNoObject;
    uint32_t row = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + kHandle.size(), end, row);
    return error == std::errc() && at == end ? rows_.ObjectOf(row) : kNoObject;
  }

  void Identify(uint32_t object, nlohmann::json* row) const override {
    (*row)["id"] = rows_.RowOf(object);
  }

  std::vector<ClassObject> ClassObjects() const override {
    std::vector<ClassObject> objects;
    for (uint32_t object = 0; object < rows_.row_count; ++object) {
      if (const std::string_view name = StandsFor(object); !name.empty())
        objects.push_back({object, name});
    }
    return objects;
  }

  // Classes with objects have a loader in the trace; others have an object that stands
  // for them and refers to it.
  std::vector<LoadedClass> Classes() const override {
    ClassList list;
    std::map<std::string_view, uint32_t> loader_of;  // by name: of the first one
    const std::vector<ClassObject> class_objects = ClassObjects();
    for (const ClassObject& described : class_objects)
      loader_of.try_emplace(described.name, LoaderOfClassObject(described.object));
    for (uint32_t type = 0; type < rows_.class_of_type.size(); ++type) {
      const uint32_t row = rows_.class_of_type[type];
      const std::string& name = graph().types()[type].name;
      if (row == GraphOfRows::kNoRow || IsArrayOfNumbers(name))
        continue;
      const uint32_t loader = rows_.ObjectOf(tables_.classes[row].classloader);
      const auto known = loader_of.find(name);
      list.Add(name, type,
               loader != kNoObject || known == loader_of.end() ? loader : known->second);
    }
    for (const ClassObject& described : class_objects)
      list.Add(
          described.name,
          described.name == kClassClass ? rows_.type_of_classes : LoadedClass::kNoType,
          LoaderOfClassObject(described.object));
    return list.Take();
  }

  // The rows of each owner are read once.
  void NameSteps(std::vector<NamedStep>* steps) const override {
    std::vector<NamedStep*> sorted;
    sorted.reserve(steps->size());
    for (NamedStep& step : *steps)
      sorted.push_back(&step);
    const auto place = [](const NamedStep* step) {
      return std::pair(step->owner, step->target);
    };
    std::ranges::sort(sorted, {}, place);
    for (auto first = sorted.begin(); first != sorted.end();) {
      const uint32_t owner = (*first)->owner;
      const auto end =
          std::ranges::upper_bound(first, sorted.end(), owner, {}, &NamedStep::owner);
      ForEachReference(owner, [&](size_t reference) {
        const uint32_t target = rows_.ObjectOf(tables_.references.owned[reference]);
        for (auto step = std::lower_bound(first, end, target,
                                          [](const NamedStep*one, uint32_t wanted) {
                                            return one->target < wanted;
                                          });
             step != end && (*step)->target == target; ++step)
          (*step)->name = ShortName(owner, reference);
      });
      first = end;
    }
  }

  // Of numbers a trace has those of few classes.
  FieldValues ValuesOf(uint32_t object,
                       size_t most,
                       size_t /*characters*/) const override {
    FieldValues found;
    const auto add = [&](FieldValue value) {
      if (found.count++ < most)
        found.values.push_back(std::move(value));
    };
    ForEachReference(object, [&](size_t reference) {
      add({.name = FieldName(reference),
           .type = "object",
           .is_reference = true,
           .object = rows_.ObjectOf(tables_.references.owned[reference])});
    });
    const uint32_t row = rows_.RowOf(object);
    const auto data =
        std::ranges::lower_bound(tables_.object_data, row, {}, &HeapObjectData::object);
    if (object >= rows_.row_count || data == tables_.object_data.end() ||
        data->object != row)
      return found;
    const uint32_t set = data->first_primitive;
    for (size_t i = set;
         i < tables_.primitives.size() && tables_.primitives[i].set == set; ++i)
      add({.name = std::string(trace_.Text(tables_.primitives[i].field_name)),
           .type = std::string(trace_.Text(tables_.primitives[i].field_type)),
           .number = std::to_string(tables_.primitives[i].value)});
    return found;
  }

 private:
  // Each class of a loader counts once.
  class ClassList {
   public:
    void Add(std::string_view name, uint32_t type, uint32_t loader) {
      const bool is_new = seen_.emplace(name, loader).second;
      const bool is_array = name.ends_with("[]");
      if (type != LoadedClass::kNoType || (is_new && !is_array))
        classes_.push_back({type, {loader, 0}, is_new && !is_array});
    }

    std::vector<LoadedClass> Take() { return std::move(classes_); }

   private:
    std::set<std::pair<std::string_view, uint32_t>> seen_;
    std::vector<LoadedClass> classes_;
  };

  // Empty: for no class.
  std::string_view StandsFor(uint32_t object) const {
    return object < rows_.row_count && graph().TypeOf(object) == rows_.type_of_classes
               ? ClassStoodFor(trace_, rows_.RowOf(object))
               : std::string_view();
  }

  template <typename Use>
  void ForEachReference(uint32_t object, Use use) const {
    if (object >= rows_.row_count)
      return;
    const uint32_t row = rows_.RowOf(object);
    const uint32_t first = tables_.objects.first_reference[row];
    const uint32_t count = first == kNoId ? 0 : tables_.objects.reference_count[row];
    for (uint32_t i = 0; i < count; ++i)
      use(size_t{first} + i);
  }

  // "java.util.HashMap.table"; "[]": an element of an array.
  std::string FieldName(size_t reference) const {
    const HeapReferenceTable& references = tables_.references;
    const StringId better = references.deobfuscated_field_name[reference];
    const std::string_view name =
        trace_.Text(better != kNoId ? better : references.field_name[reference]);
    const uint32_t type = tables_.objects.type[references.owner[reference]];
    const bool is_element =
        name.empty() && trace_.Text(tables_.classes[type].name).ends_with("[]");
    return is_element ? "[]" : std::string(name);
  }

  // As the views of dumps have it: without the class that has declared it.
  std::string ShortName(uint32_t owner, size_t reference) const {
    std::string name = FieldName(reference);
    if (name.empty() || name == "[]")
      return name;
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos)
      return "." + name;
    const bool is_static = dot > 0 && name.substr(0, dot) == StandsFor(owner);
    return (is_static ? ".static " : ".") + name.substr(dot + 1);
  }

  // kNoObject: that of the virtual machine, or it is not known.
  uint32_t LoaderOfClassObject(uint32_t object) const {
    uint32_t loader = kNoObject;
    ForEachReference(object, [&](size_t reference) {
      const std::string_view name = trace_.Text(tables_.references.field_name[reference]);
      if (name == "<class loader>" || name == "java.lang.Class.classLoader")
        loader = rows_.ObjectOf(tables_.references.owned[reference]);
    });
    return loader;
  }

  const ImportedTrace& trace_;
  const HeapGraphTables& tables_;
  const GraphOfRows rows_;
};

}  // namespace

std::unique_ptr<LoadedHeap> LoadHeapOfTrace(const OpenedDump& opened) {
  const ImportedTrace& trace = opened.trace->tables;
  return std::make_unique<HeapOfTrace>(
      trace, LoadGraphOfRows(trace, opened.trace->graph, WeakKinds(opened.holding)));
}

}  // namespace heapprofd
