// By its first bytes alone a file is taken for what it is: some formats have no magic
// number, so that a text or a message has to look like one of theirs as far as it is seen.
#include <algorithm>

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

#include "import/folded_line.h"
#include "import/import_file.h"
#include "trace/pprof_fields.h"

namespace heapprofd {
namespace {

using ProfileField = pprof_field::Profile;

// A ValueType of pprof: at most two small numbers.
bool IsValueType(std::string_view bytes) {
  constexpr size_t kMaxValueType = 20;
  if (bytes.empty() || bytes.size() > kMaxValueType)
    return false;
  try {
    protozero::pbf_reader value_type(bytes.data(), bytes.size());
    while (value_type.next()) {
      if (value_type.tag() > 2 ||
          value_type.wire_type() != protozero::pbf_wire_type::varint)
        return false;
      value_type.skip();
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

bool IsMessage(std::string_view bytes) {
  try {
    protozero::pbf_reader message(bytes.data(), bytes.size());
    while (message.next())
      message.skip();
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

bool IsNumberField(uint64_t field) {
  constexpr uint64_t kDocUrl = 15;
  return field == ProfileField::kDropFrames || field == ProfileField::kKeepFrames ||
         field == ProfileField::kTimeNanos || field == ProfileField::kDurationNanos ||
         field == ProfileField::kPeriod || field == ProfileField::kComment ||
         field == ProfileField::kDefaultSampleType || field == kDocUrl;
}

// A whole field of a profile that has bytes; strings and packed comments may be any.
bool IsProfilePart(uint64_t field, std::string_view bytes) {
  if (field == ProfileField::kSampleType || field == ProfileField::kPeriodType)
    return IsValueType(bytes);
  if (field == ProfileField::kStringTable || field == ProfileField::kComment)
    return true;
  return field >= ProfileField::kSample && field <= ProfileField::kFunction &&
         IsMessage(bytes);
}

// Whether all fields, in whatever order, are those of a pprof profile, as far as they are
// seen, and one is more than a number. A Perfetto trace has packets only, whose field is
// that of value types.
bool IsPprof(std::string_view head) {
  constexpr uint32_t kVarint = 0;
  constexpr uint32_t kBytes = 2;
  bool has_part = false;
  const char* at = head.data();
  const char* const end = at + head.size();
  try {
    while (at < end) {
      const uint64_t tag = protozero::decode_varint(&at, end);
      const uint64_t field = tag >> 3;
      if ((tag & 7) == kVarint && IsNumberField(field)) {
        protozero::decode_varint(&at, end);
        continue;
      }
      if ((tag & 7) != kBytes)
        return false;
      const uint64_t size = protozero::decode_varint(&at, end);
      if (size > static_cast<uint64_t>(end - at))  // goes on behind the head
        return has_part ||
               (field >= ProfileField::kSample && field <= ProfileField::kStringTable);
      const bool is_empty_type = field == ProfileField::kSampleType && size == 0;
      if (!is_empty_type && !IsProfilePart(field, {at, size}))
        return false;
      has_part |= !is_empty_type;  // a packet may be empty, too
      at += size;
    }
  } catch (const protozero::exception&) {  // a number that goes on behind the head
    return has_part;
  }
  return has_part;
}

bool IsText(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) {
    return static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\r' || c == '\t';
  });
}

// Of a line that goes on behind what is known of it: texts of programs have quotes.
bool MayBeginStack(std::string_view line) {
  const size_t first = line.find(';');
  return first != std::string_view::npos &&
         line.substr(0, first).find('"') == std::string_view::npos;
}

// What the lines of a text are.
struct LineCounts {
  size_t all = 0;     // without notes and empty ones
  size_t stacks = 0;  // "frame 123"
  size_t deep = 0;    // of these: "frame;frame 123"

  // Text of all kinds has lines that end in numbers; few have semicolons in them.
  bool AreStacks() const { return 2 * stacks > all && 4 * deep >= stacks; }

  void Add(std::string_view line) {
    ++all;
    const std::optional<FoldedLine> parsed = ParseFoldedLine(line);
    stacks += parsed ? 1u : 0u;
    deep += parsed && parsed->stack.find(';') != std::string_view::npos ? 1u : 0u;
  }
};

bool IsFolded(std::string_view head) {
  const bool is_cut = head.size() >= kFormatHead;
  LineCounts lines;
  bool has_comment = false;
  while (!head.empty()) {
    const size_t end = head.find('\n');
    const std::string_view line = head.substr(0, end);
    if (end == std::string_view::npos && is_cut)  // begun only
      return lines.all > 0 ? lines.AreStacks()
                           : line.starts_with('#') || MayBeginStack(line);
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + 1);
    if (IsFoldedComment(line))
      has_comment |= !line.empty();
    else
      lines.Add(line);
  }
  return lines.all > 0 ? lines.AreStacks() : has_comment && is_cut;
}

bool IsTar(std::string_view head) {
  constexpr size_t kMagicAt = 257;
  return head.size() > kMagicAt && head.substr(kMagicAt).starts_with("ustar");
}

}  // namespace

FileFormat DetectFormat(std::string_view head) {
  constexpr char kPacket = 0x0a;
  head = head.substr(0, kFormatHead);
  if (head.empty())
    return FileFormat::kUnknown;
  if (IsTar(head))
    return FileFormat::kPerfettoTrace;
  if (head.starts_with("v ") && head.find('\n') < 40)
    return FileFormat::kHeaptrack;
  if (IsText(head))
    return IsFolded(head) ? FileFormat::kFolded : FileFormat::kUnknown;
  if (IsPprof(head))
    return FileFormat::kPprof;
  return head[0] == kPacket ? FileFormat::kPerfettoTrace : FileFormat::kUnknown;
}

}  // namespace heapprofd
