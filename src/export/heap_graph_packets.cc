#include "export/heap_graph_packets.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "trace/fields.h"

namespace heapprofd {
namespace {

using protozero::pbf_writer;

using GraphField = field::HeapGraph;
using ObjectField = field::HeapGraphObject;
using TypeField = field::HeapGraphType;

constexpr size_t kPacketBytes = size_t{512} << 10;  // about; Perfetto's are as large

// Names, types and objects have the numbers of their rows, and one more: 0 is none.
class GraphWriter {
 public:
  using Use = std::function<Status(const std::string& packet)>;

  GraphWriter(const ImportedTrace& trace,
              uint32_t graph,
              const HeapGraphSource& source,
              const Use& use)
      : trace_(trace),
        tables_(trace.heap_graph),
        first_(tables_.graphs[graph].first_object),
        end_(first_ + tables_.graphs[graph].object_count),
        source_(source),
        use_(use),
        is_named_(trace.strings.size(), false),
        is_typed_(tables_.classes.size(), false) {}

  Status Write() {
    for (uint32_t object = first_; object < end_; ++object) {
      AddType(tables_.objects.type[object]);
      AddObject(object);
      HPD_TRY(FlushWhenFull());
    }
    HPD_TRY(WriteRoots());
    HPD_TRY(WriteDirectBuffers());
    return Flush(/*is_last=*/true);
  }

 private:
  static uint64_t IdOf(uint32_t row) { return uint64_t{row} + 1; }

  uint64_t ObjectId(uint32_t row) const { return IdOf(row - first_); }

  // With its superclasses: the importer wants them, whether or not they have objects.
  void AddType(uint32_t row) {
    for (; row < is_typed_.size() && !is_typed_[row];
         row = tables_.classes[row].superclass) {
      is_typed_[row] = true;
      const HeapClass& type = tables_.classes[row];
      pbf_writer writer(graph_, GraphField::kTypes);
      writer.add_uint64(TypeField::kId, IdOf(row));
      writer.add_string(TypeField::kClassName, Text(type.name));
      if (type.superclass != kNoId)
        writer.add_uint64(TypeField::kSuperclassId, IdOf(type.superclass));
      writer.add_uint32(TypeField::kKind, static_cast<uint32_t>(type.kind));
      if (type.classloader != kNoId)
        writer.add_uint64(TypeField::kClassloaderId, ObjectId(type.classloader));
    }
  }

  void AddName(StringId name) {
    if (is_named_[name])
      return;
    is_named_[name] = true;
    const std::string text = Text(name);
    pbf_writer writer(graph_, GraphField::kFieldNames);
    writer.add_uint64(field::InternedString::kIid, IdOf(name));
    // Readers take what is before the first blank for the type.
    writer.add_string(field::InternedString::kStr,
                      text.find(' ') == std::string::npos ? text : " " + text);
  }

  void AddObject(uint32_t object) {
    const HeapObjectTable& objects = tables_.objects;
    const HeapReferenceTable& references = tables_.references;
    fields_.clear();
    targets_.clear();
    const uint64_t first = objects.first_reference[object];
    for (uint64_t at = first; at < first + objects.reference_count[object]; ++at) {
      const StringId name = references.field_name[at];
      if (name != kNoId)
        AddName(name);
      fields_.push_back(name == kNoId ? 0 : IdOf(name));
      const uint32_t owned = references.owned[at];
      targets_.push_back(owned == kNoId ? 0 : ObjectId(owned));
    }
    pbf_writer writer(graph_, GraphField::kObjects);
    writer.add_uint64(ObjectField::kId, ObjectId(object));
    writer.add_uint64(ObjectField::kTypeId, IdOf(objects.type[object]));
    writer.add_uint64(ObjectField::kSelfSize,
                      static_cast<uint64_t>(objects.self_size[object]));
    if (!fields_.empty()) {
      writer.add_packed_uint64(ObjectField::kReferenceFieldId, fields_.begin(),
                               fields_.end());
      writer.add_packed_uint64(ObjectField::kReferenceObjectId, targets_.begin(),
                               targets_.end());
    }
  }

  Status WriteRoots() {
    std::array<std::vector<uint64_t>, kHeapRootTypes> roots;
    for (uint32_t object = first_; object < end_; ++object) {
      const auto type = static_cast<size_t>(tables_.objects.root_type[object]);
      if (type < roots.size())
        roots[type].push_back(ObjectId(object));
    }
    for (uint32_t type = 0; type < roots.size(); ++type) {
      constexpr size_t kMost = kPacketBytes / 8;
      const std::vector<uint64_t>& all = roots[type];
      for (size_t at = 0; at < all.size(); at += kMost) {
        const std::span<const uint64_t> part =
            std::span(all).subspan(at, std::min(kMost, all.size() - at));
        {
          pbf_writer writer(graph_, GraphField::kRoots);
          writer.add_packed_uint64(field::HeapGraphRoot::kObjectIds, part.begin(),
                                   part.end());
          writer.add_uint32(field::HeapGraphRoot::kRootType, type);
        }
        HPD_TRY(FlushWhenFull());
      }
    }
    return {};
  }

  Status WriteDirectBuffers() {
    for (const HeapDirectBuffer& buffer : tables_.direct_buffers) {
      if (buffer.object < first_ || buffer.object >= end_)
        continue;
      {
        pbf_writer writer(graph_, GraphField::kDirectBuffers);
        writer.add_uint64(field::DirectBuffer::kObjectId, ObjectId(buffer.object));
        writer.add_uint64(field::DirectBuffer::kAddress, buffer.address);
        writer.add_uint64(field::DirectBuffer::kBytes, buffer.bytes);
      }
      HPD_TRY(FlushWhenFull());
    }
    return {};
  }

  Status FlushWhenFull() {
    return message_.size() < kPacketBytes ? Status() : Flush(/*is_last=*/false);
  }

  Status Flush(bool is_last) {
    graph_.add_int32(GraphField::kPid, static_cast<int32_t>(source_.pid));
    graph_.add_bool(GraphField::kContinued, !is_last);
    graph_.add_uint64(GraphField::kIndex, index_++);
    std::string bytes;
    pbf_writer packet(bytes);
    packet.add_uint64(field::TracePacket::kTimestamp, source_.ts);
    packet.add_uint32(field::TracePacket::kTrustedPacketSequenceId, source_.sequence_id);
    packet.add_message(field::TracePacket::kHeapGraph, message_);
    message_.clear();
    return use_(bytes);
  }

  std::string Text(StringId id) const { return std::string(trace_.Text(id)); }

  const ImportedTrace& trace_;
  const HeapGraphTables& tables_;
  const uint32_t first_;
  const uint32_t end_;
  const HeapGraphSource& source_;
  const Use& use_;
  std::vector<bool> is_named_;  // by text: written already
  std::vector<bool> is_typed_;  // by class
  std::vector<uint64_t> fields_;
  std::vector<uint64_t> targets_;
  std::string message_;  // the HeapGraph that is being made
  pbf_writer graph_{message_};
  uint64_t index_ = 0;  // of the next packet
};

}  // namespace

Status WriteHeapGraph(const ImportedTrace& trace,
                      uint32_t graph,
                      const HeapGraphSource& source,
                      const std::function<Status(const std::string& packet)>& use) {
  return GraphWriter(trace, graph, source, use).Write();
}

}  // namespace heapprofd
