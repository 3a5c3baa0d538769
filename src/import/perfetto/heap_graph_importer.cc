#include "import/perfetto/heap_graph_importer.h"

#include <algorithm>
#include <utility>

#include "trace/message_reader.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxSuperclasses = 1000;  // a hostile file's may go in a circle

enum GraphField : uint32_t {
  kPid = 1,
  kObjects = 2,
  kFieldNames = 4,
  kContinued = 5,
  kIndex = 6,
  kRoots = 7,
  kLocationNames = 8,
  kTypes = 9,
  kHeapBytesAllocated = 10,
};

template <typename Enum>
Enum EnumOf(uint64_t value, size_t count) {
  return static_cast<Enum>(value < count ? value : 0);
}

}  // namespace

void HeapGraphImporter::Add(std::string_view message, int64_t ts) {
  bool is_continued = false;
  dump_.ts = ts;
  is_open_ = true;
  MessageReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case kPid:
        dump_.pid = reader.Int();
        break;
      case kObjects:
        AddObject(reader.Bytes());
        break;
      case kFieldNames:
        AddName(dump_.field_names, reader.Bytes());
        break;
      case kContinued:
        is_continued = reader.Bool();
        break;
      case kIndex:
        CheckIndex(reader.Uint());
        break;
      case kRoots:
        AddRoots(reader.Bytes());
        break;
      case kLocationNames:
        AddName(dump_.location_names, reader.Bytes());
        break;
      case kTypes:
        AddType(reader.Bytes());
        break;
      case kHeapBytesAllocated:
        dump_.heap_size = reader.Int();
        break;
      default:
        break;
    }
  }
  if (!is_continued)
    FinishDump();
}

void HeapGraphImporter::Finish() {
  if (!is_open_)
    return;
  builder_->trace().stats.Count(StatId::kHeapGraphNonFinalizedGraph);
  dump_.is_truncated = true;
  FinishDump();
}

void HeapGraphImporter::CheckIndex(uint64_t index) {
  if (index != next_index_) {
    dump_.is_truncated = true;
    builder_->trace().stats.Add(StatId::kHeapGraphMissingPacket, dump_.pid, 1);
  }
  next_index_ = index + 1;
}

void HeapGraphImporter::AddName(std::unordered_map<uint64_t, StringId>& names,
                                std::string_view message) {
  uint64_t iid = 0;
  std::string_view text;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == 1)
      iid = reader.Uint();
    else if (reader.field() == 2)
      text = reader.Bytes();
  }
  names.try_emplace(iid, builder_->Intern(text));
}

void HeapGraphImporter::AddType(std::string_view message) {
  uint64_t id = 0;
  Type type;
  HeapClass row;
  MessageReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case 1:
        id = reader.Uint();
        break;
      case 2:
        type.location = reader.Uint();
        break;
      case 3:
        row.name = builder_->Intern(reader.Bytes());
        break;
      case 4:
        type.object_size = reader.Uint();
        break;
      case 5:
        type.superclass = reader.Uint();
        break;
      case 6:
        reader.Uints([&](uint64_t field) { type.fields.push_back(field); });
        break;
      case 7:
        row.kind = EnumOf<HeapClassKind>(reader.Uint(), kHeapClassKinds);
        break;
      case 8:
        type.classloader = reader.Uint();
        break;
      default:
        break;
    }
  }
  row.is_array = builder_->trace().Text(row.name).ends_with("[]");
  std::vector<HeapClass>& classes = builder_->trace().heap_graph.classes;
  type.row = static_cast<uint32_t>(classes.size());
  if (dump_.types.try_emplace(id, std::move(type)).second)
    classes.push_back(row);
}

void HeapGraphImporter::AddRoots(std::string_view message) {
  std::vector<uint64_t> objects;
  HeapRootType type = HeapRootType::kUnknown;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == 1)
      reader.Uints([&](uint64_t object) { objects.push_back(object); });
    else if (reader.field() == 2)
      type = EnumOf<HeapRootType>(reader.Uint(), kHeapRootTypes);
  }
  for (const uint64_t object : objects) {
    const auto [root, is_new] = dump_.roots.try_emplace(object, type);
    if (!is_new && RankOf(type) > RankOf(root->second))
      root->second = type;
  }
}

void HeapGraphImporter::AddObject(std::string_view message) {
  Object object;
  object.id = dump_.last_id;
  object.heap_type = dump_.last_heap_type;
  object.first_reference = static_cast<uint32_t>(dump_.references.size());
  uint64_t base = 0;
  std::vector<uint64_t> fields;
  MessageReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case 1:
        object.id = reader.Uint();
        break;
      case 2:
        object.type = reader.Uint();
        break;
      case 3:
        object.self_size = reader.Uint();
        break;
      case 4:
        reader.Uints([&](uint64_t field) { fields.push_back(field); });
        break;
      case 5:
        reader.Uints([&](uint64_t id) { dump_.references.push_back({id, 0}); });
        break;
      case 6:
        base = reader.Uint();
        break;
      case 7:
        object.id = dump_.last_id + reader.Uint();
        break;
      case 9:
        object.heap_type = EnumOf<HeapType>(reader.Uint(), kHeapTypes);
        break;
      default:
        break;
    }
  }
  object.reference_count =
      static_cast<uint32_t>(dump_.references.size()) - object.first_reference;
  object.has_fields = !fields.empty();
  for (uint32_t i = 0; i < object.reference_count; ++i) {
    Reference& reference = dump_.references[object.first_reference + i];
    reference.object += reference.object != 0 ? base : 0;
    reference.field = i < fields.size() ? fields[i] : 0;
  }
  dump_.last_id = object.id;
  dump_.last_heap_type = object.heap_type;
  dump_.objects.push_back(object);
}

std::vector<StringId> HeapGraphImporter::FieldsOf(uint64_t type) const {
  std::vector<StringId> names;
  for (size_t depth = 0; depth < kMaxSuperclasses; ++depth) {
    const auto found = dump_.types.find(type);
    if (found == dump_.types.end())
      break;
    for (const uint64_t field : found->second.fields) {
      const auto name = dump_.field_names.find(field);
      names.push_back(name == dump_.field_names.end() ? kEmptyString : name->second);
    }
    type = found->second.superclass;
  }
  return names;
}

void HeapGraphImporter::FinishClasses(
    const std::unordered_map<uint64_t, uint32_t>& objects) {
  for (const auto& [id, type] : dump_.types) {
    HeapClass& row = builder_->trace().heap_graph.classes[type.row];
    if (const auto location = dump_.location_names.find(type.location);
        location != dump_.location_names.end())
      row.location = location->second;
    if (const auto super = dump_.types.find(type.superclass);
        type.superclass != 0 && super != dump_.types.end())
      row.superclass = super->second.row;
    if (const auto loader = objects.find(type.classloader); loader != objects.end())
      row.classloader = loader->second;
  }
}

void HeapGraphImporter::FinishObjects(uint32_t graph,
                                      std::unordered_map<uint64_t, uint32_t>& rows) {
  HeapGraphTables& tables = builder_->trace().heap_graph;
  HeapObjectTable& objects = tables.objects;
  for (const Object& object : dump_.objects.span()) {
    const auto type = dump_.types.find(object.type);
    const auto row = static_cast<uint32_t>(objects.row_count());
    if (type == dump_.types.end() || !rows.try_emplace(object.id, row).second) {
      builder_->trace().stats.Add(StatId::kHeapGraphMalformedPacket, dump_.pid, 1);
      continue;
    }
    const auto root = dump_.roots.find(object.id);
    const bool is_image =
        object.heap_type == HeapType::kZygote || object.heap_type == HeapType::kBootImage;
    objects.graph.push_back(graph);
    objects.type.push_back(type->second.row);
    objects.self_size.push_back(static_cast<int64_t>(
        object.self_size != 0 ? object.self_size : type->second.object_size));
    objects.native_size.push_back(0);
    objects.first_reference.push_back(kNoId);
    objects.reference_count.push_back(0);
    objects.root_distance.push_back(-1);
    objects.root_type.push_back(root != dump_.roots.end() ? root->second
                                : is_image                ? HeapRootType::kVmInternal
                                                          : HeapRootType::kNone);
    objects.heap_type.push_back(object.heap_type);
  }
}

void HeapGraphImporter::AddReference(uint32_t owner, uint32_t owned, StringId field) {
  HeapGraphTables& tables = builder_->trace().heap_graph;
  const std::string_view text = builder_->trace().Text(field);
  const size_t blank = text.find(' ');
  const bool has_type = blank != std::string_view::npos;
  const StringId type = has_type ? builder_->Intern(text.substr(0, blank)) : kEmptyString;
  const StringId name = has_type ? builder_->Intern(text.substr(blank + 1)) : field;
  if (tables.objects.first_reference[owner] == kNoId)
    tables.objects.first_reference[owner] =
        static_cast<uint32_t>(tables.references.row_count());
  ++tables.objects.reference_count[owner];
  tables.references.owner.push_back(owner);
  tables.references.owned.push_back(owned);
  tables.references.field_name.push_back(name);
  tables.references.field_type_name.push_back(type);
  tables.references.deobfuscated_field_name.push_back(kNoId);
}

void HeapGraphImporter::FinishReferences(
    uint32_t first_row, const std::unordered_map<uint64_t, uint32_t>& rows) {
  std::unordered_map<uint64_t, std::vector<StringId>> fields_of;
  uint32_t next_row = first_row;
  for (const Object& object : dump_.objects.span()) {
    const auto row = rows.find(object.id);
    if (row == rows.end() || row->second != next_row)
      continue;  // it was left out
    ++next_row;
    const std::vector<StringId>* of_class = nullptr;
    if (!object.has_fields && object.reference_count > 0) {
      const auto [entry, is_new] = fields_of.try_emplace(object.type);
      if (is_new)
        entry->second = FieldsOf(object.type);
      of_class = &entry->second;
    }
    for (uint32_t i = 0; i < object.reference_count; ++i) {
      const Reference& reference = dump_.references[object.first_reference + i];
      const auto owned = rows.find(reference.object);
      const auto name = dump_.field_names.find(reference.field);
      const StringId field = of_class != nullptr
                                 ? (i < of_class->size() ? (*of_class)[i] : kEmptyString)
                             : name != dump_.field_names.end() ? name->second
                                                               : kEmptyString;
      AddReference(row->second, owned == rows.end() ? kNoId : owned->second, field);
    }
  }
}

void HeapGraphImporter::FinishDump() {
  HeapGraphTables& tables = builder_->trace().heap_graph;
  const auto graph = static_cast<uint32_t>(tables.graphs.size());
  const auto first_row = static_cast<uint32_t>(tables.objects.row_count());
  std::unordered_map<uint64_t, uint32_t> rows;
  rows.reserve(dump_.objects.size());
  FinishObjects(graph, rows);
  FinishClasses(rows);
  FinishReferences(first_row, rows);
  SetRootDistances(first_row, builder_->Intern(kReferentField), &tables);
  ImportedHeapGraph added;
  added.upid = builder_->ProcessOf(dump_.pid);
  added.ts = dump_.ts;
  added.heap_size = dump_.heap_size;
  added.truncated = dump_.is_truncated;
  added.first_object = first_row;
  added.object_count = static_cast<uint32_t>(tables.objects.row_count()) - first_row;
  tables.graphs.push_back(added);
  dump_ = Dump();
  is_open_ = false;
}

}  // namespace heapprofd
