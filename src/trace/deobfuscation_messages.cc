#include "trace/deobfuscation_messages.h"

#include <algorithm>

#include <protozero/pbf_writer.hpp>

#include "trace/limits.h"
#include "trace/message_reader.h"

namespace heapprofd {
namespace {

using protozero::pbf_writer;

// Field numbers of the three messages.
enum MapField : uint32_t { kPackage = 1, kVersion = 2, kClasses = 3 };

enum ClassField : uint32_t {
  kClassName = 1,
  kClassSource = 2,
  kFields = 3,
  kMethods = 4
};

enum MemberField : uint32_t {
  kMemberName = 1,
  kMemberSource = 2,
  kObfuscatedStart = 3,
  kObfuscatedEnd = 4,
  kSourceStart = 5,
  kSourceEnd = 6,
  kOutlineCalls = 10001,  // ours
};

enum OutlineCallField : uint32_t { kOutline = 1, kOutlineLines = 2, kMethodLines = 3 };

// Behind the name of an outline, for readers that know no more.
constexpr std::string_view kOutlineMark = " [outline]";

std::string OutlineCallMessage(const OutlineCall& call) {
  std::string message;
  pbf_writer writer(message);
  const std::string_view outline = BoundedText(call.outline);
  writer.add_string(kOutline, outline.data(), outline.size());
  std::vector<uint32_t> outline_lines;
  std::vector<uint32_t> method_lines;
  for (const auto& [outline_line, method_line] : call.lines) {
    outline_lines.push_back(outline_line);
    method_lines.push_back(method_line);
  }
  writer.add_packed_uint32(kOutlineLines, outline_lines.begin(), outline_lines.end());
  writer.add_packed_uint32(kMethodLines, method_lines.begin(), method_lines.end());
  return message;
}

OutlineCall ReadOutlineCall(std::string_view message) {
  OutlineCall call;
  std::vector<uint32_t> method_lines;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == kOutline)
      call.outline = reader.Bytes();
    else if (reader.field() == kOutlineLines)
      reader.Uints([&](uint64_t line) {
        call.lines.emplace_back(static_cast<uint32_t>(line), 0);
      });
    else if (reader.field() == kMethodLines)
      reader.Uints(
          [&](uint64_t line) { method_lines.push_back(static_cast<uint32_t>(line)); });
  }
  call.lines.resize(
      std::min({call.lines.size(), method_lines.size(), OutlineCall::kMaxLines}));
  for (size_t i = 0; i < call.lines.size(); ++i)
    call.lines[i].second = method_lines[i];
  return call;
}

std::string MemberMessage(const ObfuscatedMember& member) {
  std::string message;
  pbf_writer writer(message);
  const std::string_view name = BoundedText(member.obfuscated_name);
  std::string source(BoundedText(member.deobfuscated_name));
  if (member.is_outline)
    source += kOutlineMark;
  writer.add_string(kMemberName, name.data(), name.size());
  writer.add_string(kMemberSource, source.data(), source.size());
  for (const auto& [field, line] :
       {std::pair(kObfuscatedStart, member.obfuscated_line_start),
        std::pair(kObfuscatedEnd, member.obfuscated_line_end),
        std::pair(kSourceStart, member.source_line_start),
        std::pair(kSourceEnd, member.source_line_end)}) {
    if (line != 0)
      writer.add_uint32(field, line);
  }
  for (const OutlineCall& call : member.outline_calls)
    writer.add_message(kOutlineCalls, OutlineCallMessage(call));
  return message;
}

// Classes, in as many messages as their size demands.
class MessageSplitter {
 public:
  explicit MessageSplitter(const DeobfuscationMap& map) : map_(map) { Begin(); }

  void Add(const ObfuscatedClass& source) {
    std::string message = ClassHeader(source);
    for (const auto& [field, members] :
         {std::pair(kFields, &source.fields), std::pair(kMethods, &source.methods)}) {
      for (const ObfuscatedMember& member : *members) {
        if (message.size() >= kPacketTarget / 2) {
          Append(message);
          message = ClassHeader(source);
        }
        pbf_writer(message).add_message(field, MemberMessage(member));
      }
    }
    Append(message);
  }

  std::vector<std::string> Take() { return std::move(messages_); }

 private:
  static std::string ClassHeader(const ObfuscatedClass& source) {
    std::string message;
    pbf_writer writer(message);
    const std::string_view name = BoundedText(source.obfuscated_name);
    const std::string_view original = BoundedText(source.deobfuscated_name);
    writer.add_string(kClassName, name.data(), name.size());
    writer.add_string(kClassSource, original.data(), original.size());
    return message;
  }

  void Begin() {
    pbf_writer writer(messages_.emplace_back());
    const std::string_view package = BoundedText(map_.package_name);
    writer.add_string(kPackage, package.data(), package.size());
    if (map_.version_code != 0)
      writer.add_int64(kVersion, map_.version_code);
  }

  void Append(const std::string& class_message) {
    if (messages_.back().size() + class_message.size() > kPacketTarget)
      Begin();
    pbf_writer(messages_.back()).add_message(kClasses, class_message);
  }

  const DeobfuscationMap& map_;
  std::vector<std::string> messages_;
};

ObfuscatedMember ReadMember(std::string_view message) {
  ObfuscatedMember member;
  MessageReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case kMemberName:
        member.obfuscated_name = reader.Bytes();
        break;
      case kMemberSource:
        member.deobfuscated_name = reader.Bytes();
        break;
      case kObfuscatedStart:
        member.obfuscated_line_start = static_cast<uint32_t>(reader.Uint());
        break;
      case kObfuscatedEnd:
        member.obfuscated_line_end = static_cast<uint32_t>(reader.Uint());
        break;
      case kSourceStart:
        member.source_line_start = static_cast<uint32_t>(reader.Uint());
        break;
      case kSourceEnd:
        member.source_line_end = static_cast<uint32_t>(reader.Uint());
        break;
      case kOutlineCalls:
        member.outline_calls.push_back(ReadOutlineCall(reader.Bytes()));
        break;
      default:
        break;
    }
  }
  if (member.deobfuscated_name.ends_with(kOutlineMark)) {
    member.is_outline = true;
    member.deobfuscated_name.resize(member.deobfuscated_name.size() -
                                    kOutlineMark.size());
  }
  return member;
}

ObfuscatedClass ReadClass(std::string_view message) {
  ObfuscatedClass result;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == kClassName)
      result.obfuscated_name = reader.Bytes();
    else if (reader.field() == kClassSource)
      result.deobfuscated_name = reader.Bytes();
    else if (reader.field() == kFields)
      result.fields.push_back(ReadMember(reader.Bytes()));
    else if (reader.field() == kMethods)
      result.methods.push_back(ReadMember(reader.Bytes()));
  }
  // Traces of older tools have names of methods without their class.
  for (ObfuscatedMember& method : result.methods) {
    if (method.deobfuscated_name.find('.') == std::string::npos)
      method.deobfuscated_name =
          result.deobfuscated_name + "." + method.deobfuscated_name;
  }
  return result;
}

}  // namespace

std::vector<std::string> DeobfuscationMessages(const DeobfuscationMap& map) {
  MessageSplitter splitter(map);
  for (const ObfuscatedClass& source : map.classes)
    splitter.Add(source);
  return splitter.Take();
}

DeobfuscationMap ReadDeobfuscationMessage(std::string_view message) {
  DeobfuscationMap map;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == kPackage)
      map.package_name = reader.Bytes();
    else if (reader.field() == kVersion)
      map.version_code = reader.Int();
    else if (reader.field() == kClasses)
      map.classes.push_back(ReadClass(reader.Bytes()));
  }
  return map;
}

}  // namespace heapprofd
