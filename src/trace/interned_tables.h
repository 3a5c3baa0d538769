// The interned objects of one packet sequence: ids to rows of the ImportedTrace.
//
// Objects come either in TracePacket.interned_data or, as Android 10 wrote them, in the
// ProfilePacket itself; what refers to an object comes in the same packet or later.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/iid_map.h"
#include "trace/trace_builder.h"

namespace heapprofd {

class InternedTables {
 public:
  explicit InternedTables(TraceBuilder* builder) : builder_(builder) {}

  // A serialized InternedData.
  void AddInternedData(std::string_view message);

  // The tables of a serialized ProfilePacket; they stay valid when the interned data
  // begin anew.
  void AddProfileTables(std::string_view message);

  // Forgets the interned data.
  void Clear();

  // Row of the callsite, or kNoId.
  uint32_t FindCallstack(uint64_t iid) const;

 private:
  // Where the ids of one kind of message lead.
  struct Maps {
    IidMap function_names;
    IidMap build_ids;
    IidMap mapping_paths;
    IidMap source_paths;
    IidMap mappings;
    IidMap frames;
    IidMap callstacks;
  };

  void AddString(IidMap& map, std::string_view message);
  void AddMapping(Maps& maps, std::string_view message);
  void AddFrame(Maps& maps, std::string_view message);
  void AddCallstack(Maps& maps, std::string_view message);
  void Insert(IidMap& map, uint64_t iid, uint32_t row);
  StringId FindString(const IidMap& map, uint64_t iid);

  TraceBuilder* builder_;
  Maps interned_;
  Maps inline_;          // function names, build ids and paths are one table here
  std::string scratch_;  // kept for its memory
  // The latest callstack: frames and callsites, outermost first. The next one mostly
  // begins as it does, and need not be looked up there.
  std::vector<std::pair<uint32_t, uint32_t>> last_stack_;
};

// A build id as SQL shows it: hexadecimal digits. 33 bytes are digits already: that is
// how Breakpad's ids are written.
std::string BuildIdText(std::string_view raw);

// The bytes of a build id as a trace has them: the reverse of BuildIdText.
std::string BuildIdBytes(std::string_view text);

// "/a/b" for "a/b", "//a//b" and so on; "" for "". Readers compare mappings by this name.
std::string MappingName(std::string_view path);

}  // namespace heapprofd
