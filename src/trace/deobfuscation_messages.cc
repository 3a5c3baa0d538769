#include "trace/deobfuscation_messages.h"

#include <algorithm>

#include <protozero/pbf_writer.hpp>

#include "trace/fields.h"
#include "trace/limits.h"
#include "trace/message_reader.h"

namespace heapprofd {
namespace {

using protozero::pbf_writer;

using ClassField = field::ObfuscatedClass;
using MapField = field::DeobfuscationMapping;
using MemberField = field::ObfuscatedMember;
using OutlineField = field::ObfuscatedMember::OutlineCall;

// Behind the name of an outline, for readers that know no more.
constexpr std::string_view kOutlineMark = " [outline]";

std::string OutlineCallMessage(const OutlineCall& call) {
  std::string message;
  pbf_writer writer(message);
  const std::string_view outline = BoundedText(call.outline);
  writer.add_string(OutlineField::kOutline, outline.data(), outline.size());
  std::vector<uint32_t> outline_lines;
  std::vector<uint32_t> method_lines;
  for (const auto& [outline_line, method_line] : call.lines) {
    outline_lines.push_back(outline_line);
    method_lines.push_back(method_line);
  }
  writer.add_packed_uint32(OutlineField::kOutlineLines, outline_lines.begin(),
                           outline_lines.end());
  writer.add_packed_uint32(OutlineField::kMethodLines, method_lines.begin(),
                           method_lines.end());
  return message;
}

OutlineCall ReadOutlineCall(std::string_view message) {
  OutlineCall call;
  std::vector<uint32_t> method_lines;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == OutlineField::kOutline)
      call.outline = reader.Bytes();
    else if (reader.field() == OutlineField::kOutlineLines)
      reader.Uints([&](uint64_t line) {
        call.lines.emplace_back(static_cast<uint32_t>(line), 0);
      });
    else if (reader.field() == OutlineField::kMethodLines)
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
  writer.add_string(MemberField::kObfuscatedName, name.data(), name.size());
  writer.add_string(MemberField::kDeobfuscatedName, source.data(), source.size());
  for (const auto& [field, line] :
       {std::pair(MemberField::kObfuscatedLineStart, member.obfuscated_line_start),
        std::pair(MemberField::kObfuscatedLineEnd, member.obfuscated_line_end),
        std::pair(MemberField::kSourceLineStart, member.source_line_start),
        std::pair(MemberField::kSourceLineEnd, member.source_line_end)}) {
    if (line != 0)
      writer.add_uint32(field, line);
  }
  for (const OutlineCall& call : member.outline_calls)
    writer.add_message(MemberField::kOutlineCalls, OutlineCallMessage(call));
  return message;
}

// Classes, in as many messages as their size demands.
class MessageSplitter {
 public:
  explicit MessageSplitter(const DeobfuscationMap& map) : map_(map) { Begin(); }

  void Add(const ObfuscatedClass& source) {
    std::string message = ClassHeader(source);
    for (const auto& [field, members] :
         {std::pair(ClassField::kObfuscatedMembers, &source.fields),
          std::pair(ClassField::kObfuscatedMethods, &source.methods)}) {
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
    writer.add_string(ClassField::kObfuscatedName, name.data(), name.size());
    writer.add_string(ClassField::kDeobfuscatedName, original.data(), original.size());
    return message;
  }

  void Begin() {
    pbf_writer writer(messages_.emplace_back());
    const std::string_view package = BoundedText(map_.package_name);
    writer.add_string(MapField::kPackageName, package.data(), package.size());
    if (map_.version_code != 0)
      writer.add_int64(MapField::kVersionCode, map_.version_code);
  }

  void Append(const std::string& class_message) {
    if (messages_.back().size() + class_message.size() > kPacketTarget)
      Begin();
    pbf_writer(messages_.back()).add_message(MapField::kObfuscatedClasses, class_message);
  }

  const DeobfuscationMap& map_;
  std::vector<std::string> messages_;
};

ObfuscatedMember ReadMember(std::string_view message) {
  ObfuscatedMember member;
  MessageReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case MemberField::kObfuscatedName:
        member.obfuscated_name = reader.Bytes();
        break;
      case MemberField::kDeobfuscatedName:
        member.deobfuscated_name = reader.Bytes();
        break;
      case MemberField::kObfuscatedLineStart:
        member.obfuscated_line_start = static_cast<uint32_t>(reader.Uint());
        break;
      case MemberField::kObfuscatedLineEnd:
        member.obfuscated_line_end = static_cast<uint32_t>(reader.Uint());
        break;
      case MemberField::kSourceLineStart:
        member.source_line_start = static_cast<uint32_t>(reader.Uint());
        break;
      case MemberField::kSourceLineEnd:
        member.source_line_end = static_cast<uint32_t>(reader.Uint());
        break;
      case MemberField::kOutlineCalls:
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
    if (reader.field() == ClassField::kObfuscatedName)
      result.obfuscated_name = reader.Bytes();
    else if (reader.field() == ClassField::kDeobfuscatedName)
      result.deobfuscated_name = reader.Bytes();
    else if (reader.field() == ClassField::kObfuscatedMembers)
      result.fields.push_back(ReadMember(reader.Bytes()));
    else if (reader.field() == ClassField::kObfuscatedMethods)
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
    if (reader.field() == MapField::kPackageName)
      map.package_name = reader.Bytes();
    else if (reader.field() == MapField::kVersionCode)
      map.version_code = reader.Int();
    else if (reader.field() == MapField::kObfuscatedClasses)
      map.classes.push_back(ReadClass(reader.Bytes()));
  }
  return map;
}

}  // namespace heapprofd
