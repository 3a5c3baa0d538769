// Makes hprof files for tests, with ids of either size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hprof/format.h"

namespace heapprofd::hprof {

class TestDump {
 public:
  explicit TestDump(uint32_t id_bytes, char version = '2') : id_bytes_(id_bytes) {
    bytes_ = std::string(kMagic) + version + '\0';
    Add32(&bytes_, id_bytes);
    Add32(&bytes_, 0);
    Add32(&bytes_, 0);
  }

  TestDump& Record(uint8_t tag, std::string_view body) {
    bytes_ += static_cast<char>(tag);
    Add32(&bytes_, 0);
    length_at_ = bytes_.size();
    Add32(&bytes_, static_cast<uint32_t>(body.size()));
    bytes_ += body;
    return *this;
  }

  // Of the record that was added last.
  TestDump& ForgeLength(uint32_t length) {
    std::string text;
    Add32(&text, length);
    bytes_.replace(length_at_, 4, text);
    return *this;
  }

  TestDump& String(uint64_t id, std::string_view text) {
    return Record(kUtf8, Id(id) + std::string(text));
  }

  // With a string of the same number plus 1000 as its name.
  TestDump& Class(uint64_t id, std::string_view name) {
    String(id + 1000, name);
    return Record(kLoadClass, Number(1) + Id(id) + Number(0) + Id(id + 1000));
  }

  TestDump& Segment(std::string_view body) { return Record(kHeapDumpSegment, body); }

  TestDump& End() { return Record(kHeapDumpEnd, ""); }

  const std::string& bytes() const { return bytes_; }

  std::string Id(uint64_t id) const {
    std::string text;
    if (id_bytes_ == 8)
      Add32(&text, static_cast<uint32_t>(id >> 32));
    Add32(&text, static_cast<uint32_t>(id));
    return text;
  }

  static std::string Number(uint32_t number) {
    std::string text;
    Add32(&text, number);
    return text;
  }

  std::string Root(uint8_t tag, uint64_t id, std::string_view rest = "") const {
    return static_cast<char>(tag) + Id(id) + std::string(rest);
  }

  struct Field {
    uint64_t name;
    uint8_t type;
  };

  // `statics`: (name, object) each.
  std::string ClassDump(uint64_t id,
                        uint64_t super,
                        const std::vector<Field>& fields,
                        const std::vector<std::pair<uint64_t, uint64_t>>& statics = {},
                        uint32_t instance_bytes = 0) const {
    std::string text = Root(kClassDump, id, Number(0)) + Id(super);
    for (int i = 0; i < 5; ++i)
      text += Id(0);
    text += Number(instance_bytes) + Short(0) + Short(statics.size());
    for (const auto& [name, object] : statics)
      text += Id(name) + static_cast<char>(kObject) + Id(object);
    text += Short(fields.size());
    for (const Field& field : fields)
      text += Id(field.name) + static_cast<char>(field.type);
    return text;
  }

  std::string Instance(uint64_t id, uint64_t class_id, std::string_view values) const {
    return Root(kInstanceDump, id, Number(0)) + Id(class_id) +
           Number(static_cast<uint32_t>(values.size())) + std::string(values);
  }

  std::string Objects(uint64_t id,
                      uint64_t class_id,
                      const std::vector<uint64_t>& elements) const {
    std::string text = Root(kObjectArrayDump, id, Number(0)) +
                       Number(static_cast<uint32_t>(elements.size())) + Id(class_id);
    for (const uint64_t element : elements)
      text += Id(element);
    return text;
  }

  std::string Bytes(uint64_t id, std::string_view data) const {
    return Root(kPrimitiveArrayDump, id, Number(0)) +
           Number(static_cast<uint32_t>(data.size())) + static_cast<char>(kByte) +
           std::string(data);
  }

  std::string NoData(uint64_t id, uint32_t length) const {
    return Root(kPrimitiveArrayNoData, id, Number(7)) + Number(length) +
           static_cast<char>(kInt);
  }

  std::string Heap(uint32_t heap) const {
    return static_cast<char>(kHeapDumpInfo) + Number(heap) + Id(1);
  }

 private:
  static void Add32(std::string* text, uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8)
      *text += static_cast<char>(number >> shift);
  }

  static std::string Short(size_t number) {
    return {static_cast<char>(number >> 8), static_cast<char>(number)};
  }

  const uint32_t id_bytes_;
  std::string bytes_;
  size_t length_at_ = 0;
};

// Two lists of two, a weak reference to the end of one, an array that holds both, and
// garbage. Objects: 10 Class, 20 Node, 30 WeakReference, 31 Reference, 40 Node[]; nodes
// 100 -> 110 and 200 -> 210, weak 300 -> 210, array 400 of (100, 200), bytes 500 held by
// 110, garbage 600.
inline TestDump Lists(uint32_t id_bytes, char version = '2') {
  TestDump dump(id_bytes, version);
  dump.String(1, "next").String(2, "payload").String(3, "referent").String(4, "LIST");
  dump.Class(10, "java/lang/Class").Class(20, "Node").Class(40, "[LNode;");
  dump.Class(30, "java/lang/ref/WeakReference").Class(31, "java/lang/ref/Reference");
  const std::string classes =
      dump.ClassDump(10, 0, {}) +
      dump.ClassDump(20, 0, {{1, kObject}, {2, kObject}}, {{4, 400}}, 24) +
      dump.ClassDump(31, 0, {{3, kObject}}) + dump.ClassDump(30, 31, {}) +
      dump.ClassDump(40, 0, {});
  std::string roots;
  for (const uint64_t id : {10u, 20u, 30u, 31u, 40u})
    roots += dump.Root(kRootStickyClass, id);
  roots += dump.Root(kRootJavaFrame, 300, TestDump::Number(1) + TestDump::Number(0));
  dump.Segment(roots + classes);
  dump.Segment(dump.Instance(100, 20, dump.Id(110) + dump.Id(0)) +
               dump.Instance(110, 20, dump.Id(0) + dump.Id(500)) +
               dump.Instance(200, 20, dump.Id(210) + dump.Id(0)) +
               dump.Instance(210, 20, dump.Id(0) + dump.Id(9999)));
  dump.Segment(dump.Instance(300, 30, dump.Id(210)) + dump.Objects(400, 40, {100, 200}) +
               dump.Bytes(500, "0123456789") + dump.Bytes(600, "garbage"));
  return dump.End();
}

}  // namespace heapprofd::hprof
