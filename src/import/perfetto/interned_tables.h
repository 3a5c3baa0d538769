// The interned objects of one packet sequence but its callstacks: ids to rows of the
// ImportedTrace.
//
// Objects come either in TracePacket.interned_data or, as Android 10 wrote them, in the
// ProfilePacket itself; what refers to an object comes in the same packet or later.
// Callstacks and the ids of frames, which only callstacks refer to, are for the
// ProfileDecoder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "import/perfetto/iid_map.h"
#include "import/perfetto/profile_decoder.h"
#include "profile/model.h"
#include "tables/trace_builder.h"

namespace heapprofd {

class InternedTables {
 public:
  explicit InternedTables(TraceBuilder* builder) : builder_(builder) {}

  // A serialized InternedData. Returns what it holds for the decoder.
  StackStep AddInternedData(std::string_view message);

  // The same of the tables of a serialized ProfilePacket; they stay valid when the
  // interned data begin anew.
  StackStep AddProfileTables(std::string_view message);

  // Forgets the interned data.
  void Clear();

 private:
  // Where the ids of one kind of message lead.
  struct Maps {
    IidMap function_names;
    IidMap build_ids;
    IidMap mapping_paths;
    IidMap source_paths;
    IidMap mappings;
  };

  void AddString(IidMap& map, std::string_view message);
  void AddMapping(Maps& maps, std::string_view message);
  void AddFrame(Maps& maps, std::string_view message, StackStep* step);
  void CountMalformed();
  void Insert(IidMap& map, uint64_t iid, uint32_t row);
  StringId FindString(const IidMap& map, uint64_t iid);

  TraceBuilder* builder_;
  Maps interned_;
  Maps inline_;          // function names, build ids and paths are one table here
  std::string scratch_;  // kept for its memory
  // The parts of an InternedData, by what has to be known before; kept for its memory.
  std::vector<std::string_view> mappings_;
  std::vector<std::string_view> frames_;
};

// A build id as SQL shows it: hexadecimal digits. 33 bytes are digits already: that is
// how Breakpad's ids are written.
std::string BuildIdText(std::string_view raw);

// The bytes of a build id as a trace has them: the reverse of BuildIdText.
std::string BuildIdBytes(std::string_view text);

// "/a/b" for "a/b", "//a//b" and so on; "" for "". Readers compare mappings by this name.
std::string MappingName(std::string_view path);

// A mapping as a profile has it: modules are found by path and build id there, and the
// path of "/[vdso]" is "[vdso]".
Mapping MappingOfProfile(const ImportedTrace& trace, const ImportedMapping& mapping);

}  // namespace heapprofd
