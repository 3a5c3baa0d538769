#include "hprof/merge.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "hprof/dump_file.h"

namespace heapprofd::hprof {
namespace {

constexpr std::string_view kHeadSuffix = "-head";

bool IsHead(const MappedInput& input) {
  return input.bytes().starts_with(kMagic);
}

bool IsTail(const MappedInput& input) {
  return !input.bytes().empty() &&
         (input.bytes()[0] == kHeapDump || input.bytes()[0] == kHeapDumpSegment);
}

// The number behind "-pid" or "-tm" in the name of the file; empty: there is none.
std::string NumberIn(const std::string& path, const std::string& mark) {
  const std::string name(FileName(path));
  const size_t at = name.find(mark);
  if (at == std::string::npos)
    return "";
  const size_t begin = at + mark.size();
  return name.substr(begin, name.find_first_not_of("0123456789", begin) - begin);
}

Status CannotMerge(const std::string& one,
                   const std::string& other,
                   const std::string& why) {
  return Invalid("cannot merge " + one + " and " + other + ": " + why);
}

// Classes of a tail, and how many of them a head has names for.
struct ClassNamer : HeapVisitor {
  explicit ClassNamer(const DumpFile& file) : head(file) {}

  void Class(const ClassRecord& record) {
    ++classes;
    if (head.names().HasName(record.id))
      ++named;
  }

  const DumpFile& head;
  uint64_t classes = 0;
  uint64_t named = 0;
};

// Empty: they fit.
std::string WhyNoPair(const DumpFile& head, std::string_view tail) {
  if (!head.dumps().empty())
    return "the one with the header has a heap already, so it is merged or whole";
  if (!head.damage().empty())
    return "the head is damaged: " + head.damage();
  ClassNamer namer(head);
  const auto* at = reinterpret_cast<const uint8_t*>(tail.data());
  const uint8_t* const end = at + tail.size();
  while (static_cast<size_t>(end - at) > kRecordHeaderBytes) {
    const uint64_t left = static_cast<uint64_t>(end - at) - kRecordHeaderBytes;
    const uint64_t length = std::min<uint64_t>(Get32(at + 5), left);
    const uint8_t* const body = at + kRecordHeaderBytes;
    if (*at == kHeapDump || *at == kHeapDumpSegment)
      WalkHeap({body, body + length, end, false}, head.id_bytes(), namer);
    at = body + length;
  }
  if (namer.named < namer.classes - namer.named)
    return std::to_string(namer.classes - namer.named) + " of the " +
           std::to_string(namer.classes) +
           " classes of the tail have no name in the head, so they are of different "
           "dumps";
  return "";
}

}  // namespace

std::string OtherHalf(const std::string& path) {
  const std::string other = path.ends_with(kHeadSuffix)
                                ? path.substr(0, path.size() - kHeadSuffix.size())
                                : path + std::string(kHeadSuffix);
  return access(other.c_str(), F_OK) == 0 ? other : "";
}

Result<DumpPair> OpenPair(const std::string& one, const std::string& other) {
  HPD_TRY_ASSIGN(MappedInput first, MappedInput::Open(one));
  HPD_TRY_ASSIGN(MappedInput second, MappedInput::Open(other));
  if (IsHead(first) && IsHead(second))
    return CannotMerge(one, other, "both begin as a head or a whole dump does");
  if (IsTail(first) && IsTail(second))
    return CannotMerge(one, other, "both are tails: neither has the header of a dump");
  const bool is_swapped = IsTail(first) && IsHead(second);
  if (!is_swapped && (!IsHead(first) || !IsTail(second)))
    return CannotMerge(one, other,
                       (IsHead(first) || IsTail(first) ? other : one) +
                           " is neither a head nor a tail of an hprof dump");
  DumpPair pair{
      std::move(is_swapped ? second : first), std::move(is_swapped ? first : second), {}};
  HPD_TRY_ASSIGN(const DumpFile head, DumpFile::Read(pair.head.bytes(), "the head"));
  if (const std::string why = WhyNoPair(head, pair.tail.bytes()); !why.empty())
    return CannotMerge(one, other, why);
  if (is_swapped)
    pair.notes.push_back(one + " is the tail and " + other +
                         " the head; the head is put first");
  for (const char* const mark : {"-pid", "-tm"}) {
    const std::string numbers[] = {NumberIn(one, mark), NumberIn(other, mark)};
    if (!numbers[0].empty() && !numbers[1].empty() && numbers[0] != numbers[1])
      pair.notes.push_back("the names say " + std::string(mark + 1) + " " + numbers[0] +
                           " and " + numbers[1] + ": they may be of different dumps");
  }
  return pair;
}

Result<MappedInput> OpenWhole(const std::string& path, std::vector<std::string>* notes) {
  HPD_TRY_ASSIGN(MappedInput input, MappedInput::Open(path));
  const std::string other = OtherHalf(path);
  if (other.empty())
    return input;
  bool is_half = IsTail(input);
  if (IsHead(input)) {
    HPD_TRY_ASSIGN(const DumpFile file, DumpFile::Read(input.bytes(), path));
    is_half = file.dumps().empty();
  }
  if (!is_half)
    return input;
  HPD_TRY_ASSIGN(const DumpPair pair, OpenPair(path, other));
  notes->push_back(other + " is the other half of it and read with it");
  return MappedInput::Concatenate({pair.head.bytes(), pair.tail.bytes()}, path);
}

}  // namespace heapprofd::hprof
