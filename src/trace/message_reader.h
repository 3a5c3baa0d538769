// Reads one protobuf message of a hostile file: as protozero's reader, but a field that
// has another wire type than its schema says reads as 0 or "", instead of as anything.
//
// Malformed bytes end in a protozero::exception, which TraceImporter catches per packet.
#pragma once

#include <cstdint>
#include <string_view>

#include <protozero/pbf_reader.hpp>

namespace heapprofd {

class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes)
      : reader_(protozero::data_view(bytes.data(), bytes.size())) {}

  // Goes to the next field; what was not read of the last one is skipped.
  bool Next() {
    if (is_pending_)
      reader_.skip();
    is_pending_ = reader_.next();
    field_ = is_pending_ ? reader_.tag() : 0;
    return is_pending_;
  }

  // Of the current field, also when it was read already (protozero with assertions
  // forgets it then).
  uint32_t field() const { return field_; }

  uint64_t Uint() {
    using protozero::pbf_wire_type;
    if (reader_.wire_type() == pbf_wire_type::varint) {
      is_pending_ = false;
      return reader_.get_uint64();
    }
    if (reader_.wire_type() == pbf_wire_type::fixed64) {
      is_pending_ = false;
      return reader_.get_fixed64();
    }
    if (reader_.wire_type() == pbf_wire_type::fixed32) {
      is_pending_ = false;
      return reader_.get_fixed32();
    }
    return 0;
  }

  int64_t Int() { return static_cast<int64_t>(Uint()); }

  bool Bool() { return Uint() != 0; }

  double Double() {
    if (reader_.wire_type() != protozero::pbf_wire_type::fixed64)
      return 0;
    is_pending_ = false;
    return reader_.get_double();
  }

  std::string_view Bytes() {
    if (reader_.wire_type() != protozero::pbf_wire_type::length_delimited)
      return {};
    is_pending_ = false;
    const protozero::data_view view = reader_.get_view();
    return {view.data(), view.size()};
  }

  // All numbers of a repeated field's occurrence, packed or not.
  template <typename Visit>
  void Uints(Visit visit) {
    if (reader_.wire_type() != protozero::pbf_wire_type::length_delimited) {
      visit(Uint());
      return;
    }
    is_pending_ = false;
    for (const uint64_t value : reader_.get_packed_uint64())
      visit(value);
  }

 private:
  protozero::pbf_reader reader_;
  bool is_pending_ = false;
  uint32_t field_ = 0;
};

}  // namespace heapprofd
