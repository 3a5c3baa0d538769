#include <algorithm>
#include <charconv>
#include <utility>

#include "cli/hprof/loaded_heap.h"
#include "cli/hprof/opened/kept_index.h"
#include "hprof/object_values.h"
#include "hprof/strings/string_texts.h"
#include "profile/java_classes.h"

namespace heapprofd {
namespace {

class HeapOfDump : public LoadedHeap {
 public:
  HeapOfDump(const DumpOfFile& from, hprof::HeapGraph heap)
      : from_(from), heap_(std::move(heap)) {}

  const ObjectGraph& graph() const override { return heap_.graph; }

  std::string RootName(uint32_t kind) const override {
    return hprof::RootName(heap_.roots[kind].tag);
  }

  std::string ObjectName(uint32_t object) const override {
    const std::string& name = graph().types()[graph().TypeOf(object)].name;
    const uint64_t id = heap_.ids.IdOf(object);
    return name == kClassClass && from_.file.names().HasName(id)
               ? "class " + from_.file.names().ClassName(id)
               : name;
  }

  std::string HandleOf(uint32_t object) const override {
    return hprof::HexOf(heap_.ids.IdOf(object));
  }

  uint32_t FindHandle(const std::string& text) const override {
    if (!text.starts_with("0x"))
      return kNoObject;
    uint64_t id = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + 2, end, id, 16);
    return error == std::errc() && at == end ? heap_.ids.Find(id) : kNoObject;
  }

  void Identify(uint32_t object, nlohmann::json* row) const override {
    (*row)["address"] = HandleOf(object);
  }

  std::vector<ClassObject> ClassObjects() const override {
    std::vector<ClassObject> objects;
    for (const ObjectType& type : graph().types()) {
      if (type.object != kNoObject)
        objects.push_back({type.object, type.name});
    }
    std::ranges::stable_sort(objects, {}, &ClassObject::object);
    return objects;
  }

  std::vector<LoadedClass> Classes() const override {
    const hprof::ClassTable& classes = heap_.census.classes;
    std::vector<LoadedClass> loaded;
    for (uint32_t row = 1; row < classes.size(); ++row) {
      const uint64_t id = classes[row].loader;
      const uint32_t loader = id == 0 ? kNoObject : heap_.ids.Find(id);
      if (classes[row].is_dumped)
        loaded.push_back({row,
                          {loader, loader == kNoObject ? id : 0},
                          !graph().types()[row].name.ends_with("[]")});
    }
    return loaded;
  }

  // A walk through all of the dump.
  void NameSteps(std::vector<NamedStep>* steps) const override {
    std::vector<hprof::NamedReference> references;
    references.reserve(steps->size());
    for (const NamedStep& step : *steps)
      references.push_back({heap_.ids.IdOf(step.owner), heap_.ids.IdOf(step.target), ""});
    if (!references.empty())
      NameReferences(from_.file, *from_.dump, heap_.census, &references);
    for (size_t i = 0; i < references.size(); ++i)
      (*steps)[i].name = std::move(references[i].name);
  }

  FieldValues ValuesOf(uint32_t object, size_t most, size_t characters) const override {
    const hprof::ClassTable& classes = heap_.census.classes;
    const hprof::ObjectValues read =
        hprof::ValuesOf(from_.file, *from_.dump, classes, heap_.ids.IdOf(object), most)
            .value_or(hprof::ObjectValues());
    FieldValues found{.values = {}, .count = read.count, .has_data = read.has_data};
    std::vector<uint64_t> strings;
    WantText(object, &strings);
    for (const hprof::ObjectValue& value : read.values) {
      const uint32_t target =
          value.reference == 0 ? kNoObject : heap_.ids.Find(value.reference);
      WantText(target, &strings);
      found.values.push_back({.name = value.name,
                              .type = hprof::TypeName(value.type),
                              .number = value.text,
                              .is_reference = value.type == hprof::kObject,
                              .object = target,
                              .missing = target == kNoObject ? value.reference : 0});
    }
    for (auto& [id, text] :
         FindTexts(from_.file, *from_.dump, classes, strings, characters))
      found.texts.emplace(heap_.ids.Find(id), std::move(text));
    return found;
  }

  const hprof::HeapGraph* of_dump() const override { return &heap_; }

 private:
  void WantText(uint32_t object, std::vector<uint64_t>* strings) const {
    if (object != kNoObject &&
        graph().types()[graph().TypeOf(object)].name == "java.lang.String")
      strings->push_back(heap_.ids.IdOf(object));
  }

  const DumpOfFile& from_;
  const hprof::HeapGraph heap_;
};

}  // namespace

Result<std::unique_ptr<LoadedHeap>> LoadHeap(OpenedDump* opened) {
  if (opened->is_of_trace())
    return LoadHeapOfTrace(*opened);
  const DumpOfFile& from = *opened->source;
  HPD_TRY_ASSIGN(hprof::HeapGraph heap, LoadGraphOf(opened));
  AddDamage(heap.census, opened);
  return std::unique_ptr<LoadedHeap>(std::make_unique<HeapOfDump>(from, std::move(heap)));
}

}  // namespace heapprofd
