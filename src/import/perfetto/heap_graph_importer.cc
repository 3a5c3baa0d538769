// Add reads one packet: Add{Field,Location,Type,Roots,DirectBuffer,Object} put what it holds into the
// dump that is being read, where everything has a number in order of its first mention;
// names and types may come after the objects that need them, even in a later packet. The
// last packet of a series ends the dump (FinishDump); HeapGraphQueue makes tables of it
// when they are asked for.
#include "import/perfetto/heap_graph_importer.h"

#include <utility>

#include "trace/fields.h"
#include "trace/message_reader.h"

namespace heapprofd {
namespace {

using GraphField = field::HeapGraph;
using ObjectField = field::HeapGraphObject;

template <typename Enum>
Enum EnumOf(uint64_t value, size_t count) {
  return static_cast<Enum>(value < count ? value : 0);
}

struct InternedText {
  uint64_t iid = 0;
  std::string_view text;
};

InternedText ReadInterned(std::string_view message) {
  InternedText read;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field::InternedString::kIid)
      read.iid = reader.Uint();
    else if (reader.field() == field::InternedString::kStr)
      read.text = reader.Bytes();
  }
  return read;
}

bool ReadBitmapField(MessageReader& reader, HeapGraphDump::BitmapFields* bitmap) {
  switch (reader.field()) {
    case ObjectField::kBitmapIdField:
      bitmap->id = reader.Int();
      return true;
    case ObjectField::kBitmapSourceIdField:
      bitmap->source_id = reader.Int();
      return true;
    case ObjectField::kBitmapWidthField:
      bitmap->width = reader.Int();
      return true;
    case ObjectField::kBitmapHeightField:
      bitmap->height = reader.Int();
      return true;
    default:
      return false;
  }
}

}  // namespace

void HeapGraphImporter::Add(std::string_view message, int64_t ts) {
  bool is_continued = false;
  if (dump_ == nullptr)
    dump_ = queue_->Begin();
  dump_->ts = ts;
  MessageReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case GraphField::kPid:
        dump_->pid = reader.Int();
        break;
      case GraphField::kObjects:
        AddObject(reader.Bytes());
        break;
      case GraphField::kFieldNames:
        AddField(reader.Bytes());
        break;
      case GraphField::kContinued:
        is_continued = reader.Bool();
        break;
      case GraphField::kIndex:
        CheckIndex(reader.Uint());
        break;
      case GraphField::kRoots:
        AddRoots(reader.Bytes());
        break;
      case GraphField::kLocationNames:
        AddLocation(reader.Bytes());
        break;
      case GraphField::kTypes:
        AddType(reader.Bytes());
        break;
      case GraphField::kHeapBytesAllocated:
        dump_->heap_size = reader.Int();
        break;
      case GraphField::kDirectBuffers:
        AddDirectBuffer(reader.Bytes());
        break;
      default:
        break;
    }
  }
  if (!is_continued)
    FinishDump();
}

void HeapGraphImporter::Finish() {
  if (dump_ == nullptr)
    return;
  builder_->trace().stats.Count(StatId::kHeapGraphNonFinalizedGraph);
  dump_->is_truncated = true;
  FinishDump();
}

void HeapGraphImporter::FinishDump() {
  queue_->End(std::exchange(dump_, nullptr));
  last_id_ = 0;
  last_heap_type_ = HeapType::kUnknown;
  next_index_ = 0;
}

void HeapGraphImporter::CheckIndex(uint64_t index) {
  if (index != next_index_) {
    dump_->is_truncated = true;
    builder_->trace().stats.Add(StatId::kHeapGraphMissingPacket, dump_->pid, 1);
  }
  next_index_ = index + 1;
}

void HeapGraphImporter::CountMalformed() {
  builder_->trace().stats.Add(StatId::kHeapGraphMalformedPacket, dump_->pid, 1);
}

// "TYPE NAME", or only a name.
void HeapGraphImporter::AddField(std::string_view message) {
  const InternedText read = ReadInterned(message);
  const size_t blank = read.text.find(' ');
  HeapGraphDump::FieldName& field =
      dump_->field_names[dump_->field_names.NumberOf(read.iid)];
  field = {};
  if (blank != std::string_view::npos)
    field.type_name = builder_->Intern(read.text.substr(0, blank));
  field.name =
      builder_->Intern(read.text.substr(blank == std::string_view::npos ? 0 : blank + 1));
}

void HeapGraphImporter::AddLocation(std::string_view message) {
  const InternedText read = ReadInterned(message);
  HeapGraphDump::Location& location =
      dump_->locations[dump_->locations.NumberOf(read.iid)];
  location.path = builder_->Intern(read.text);
}

void HeapGraphImporter::AddType(std::string_view message) {
  uint64_t id = 0;
  HeapGraphDump::Type type;
  type.is_known = true;
  MessageReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::HeapGraphType::kId:
        id = reader.Uint();
        break;
      case field::HeapGraphType::kLocationId:
        type.location = dump_->locations.NumberOf(reader.Uint());
        break;
      case field::HeapGraphType::kClassName:
        type.name = builder_->Intern(reader.Bytes());
        break;
      case field::HeapGraphType::kObjectSize:
        type.object_size = reader.Uint();
        break;
      case field::HeapGraphType::kSuperclassId:
        type.superclass = reader.Uint();
        break;
      case field::HeapGraphType::kReferenceFieldId:
        reader.Uints([&](uint64_t field) {
          type.fields.push_back(dump_->field_names.NumberOf(field));
        });
        break;
      case field::HeapGraphType::kKind:
        type.kind = EnumOf<HeapClassKind>(reader.Uint(), kHeapClassKinds);
        break;
      case field::HeapGraphType::kClassloaderId:
        type.classloader = reader.Uint();
        break;
      default:
        break;
    }
  }
  HeapGraphDump::Type& known = dump_->types[dump_->types.NumberOf(id)];
  if (!known.is_known)
    known = std::move(type);
}

void HeapGraphImporter::AddRoots(std::string_view message) {
  std::vector<uint64_t> ids;
  HeapRootType type = HeapRootType::kUnknown;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field::HeapGraphRoot::kObjectIds)
      reader.Uints([&](uint64_t object) { ids.push_back(object); });
    else if (reader.field() == field::HeapGraphRoot::kRootType)
      type = EnumOf<HeapRootType>(reader.Uint(), kHeapRootTypes);
  }
  for (const uint64_t id : ids)
    dump_->roots.push_back({id, type});
}

void HeapGraphImporter::AddDirectBuffer(std::string_view message) {
  HeapGraphDump::DirectBuffer buffer;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field::DirectBuffer::kObjectId)
      buffer.object = reader.Uint();
    else if (reader.field() == field::DirectBuffer::kAddress)
      buffer.address = reader.Uint();
    else if (reader.field() == field::DirectBuffer::kBytes)
      buffer.bytes = reader.Uint();
  }
  dump_->direct_buffers.push_back(buffer);
}

void HeapGraphImporter::AddObject(std::string_view message) {
  uint64_t id = last_id_;
  uint64_t base = 0;
  uint64_t type = 0;
  HeapGraphDump::Object object;
  HeapGraphDump::BitmapFields bitmap;
  std::optional<int64_t> registry_size;
  std::vector<uint64_t> fields;
  std::vector<uint64_t> references;
  std::vector<uint64_t> internals;
  bool is_bitmap = false;
  object.is_known = true;
  object.heap_type = last_heap_type_;
  MessageReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case ObjectField::kId:
        id = reader.Uint();
        break;
      case ObjectField::kTypeId:
        type = reader.Uint();
        break;
      case ObjectField::kSelfSize:
        object.self_size = reader.Uint();
        break;
      case ObjectField::kReferenceFieldId:
        reader.Uints([&](uint64_t field) { fields.push_back(field); });
        break;
      case ObjectField::kReferenceObjectId:
        reader.Uints([&](uint64_t to) { references.push_back(to); });
        break;
      case ObjectField::kReferenceFieldIdBase:
        base = reader.Uint();
        break;
      case ObjectField::kIdDelta:
        id = last_id_ + reader.Uint();
        break;
      case ObjectField::kNativeAllocationRegistrySizeField:
        registry_size = reader.Int();
        break;
      case ObjectField::kHeapTypeDelta:
        object.heap_type = EnumOf<HeapType>(reader.Uint(), kHeapTypes);
        break;
      case ObjectField::kRuntimeInternalObjectId:
        reader.Uints([&](uint64_t to) { internals.push_back(to); });
        break;
      default:
        is_bitmap |= ReadBitmapField(reader, &bitmap);
        break;
    }
  }
  last_id_ = id;
  last_heap_type_ = object.heap_type;
  const uint32_t number = dump_->ObjectOf(id);
  if (dump_->objects[number].is_known)
    return CountMalformed();
  object.type = dump_->types.NumberOf(type);
  dump_->objects[number] = object;
  for (uint64_t& to : references)
    to += to != 0 ? base : 0;
  AddReferences(number, fields, references, internals);
  if (registry_size)
    dump_->registry_sizes.emplace_back(number, *registry_size);
  bitmap.object = number;
  if (is_bitmap)
    dump_->bitmaps.push_back(bitmap);
}

void HeapGraphImporter::AddReferences(uint32_t number,
                                      const std::vector<uint64_t>& fields,
                                      const std::vector<uint64_t>& references,
                                      const std::vector<uint64_t>& internals) {
  const auto first = static_cast<uint32_t>(dump_->references.size());
  for (size_t i = 0; i < references.size(); ++i) {
    HeapGraphDump::Reference reference;
    if (references[i] != 0)
      reference.object = dump_->ObjectOf(references[i]);
    if (i < fields.size())
      reference.field = dump_->field_names.NumberOf(fields[i]);
    dump_->references.push_back(reference);
  }
  for (const uint64_t internal : internals)
    dump_->references.push_back({dump_->ObjectOf(internal), kNoId});
  HeapGraphDump::Object& object = dump_->objects[number];
  object.has_fields = !fields.empty();
  object.first_reference = first;
  object.internal_count = static_cast<uint32_t>(internals.size());
  object.reference_count = static_cast<uint32_t>(dump_->references.size() - first);
  dump_->described.push_back(number);
}

}  // namespace heapprofd
