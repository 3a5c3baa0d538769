#include "trace/recording_end.h"

#include <algorithm>
#include <cmath>

#include <protozero/pbf_writer.hpp>

#include "trace/fields.h"
#include "trace/limits.h"
#include "trace/message_reader.h"

namespace heapprofd {
namespace {

using CodeField = field::ProcessEnd::UnnamedModule;
using EndField = field::ProcessEnd;
using ProgramsField = field::RecordingEnd::UnrecordedPrograms;
using RecordingField = field::RecordingEnd;

using protozero::pbf_writer;

constexpr size_t kMaxListed = 4096;  // of anything in a message

void AddText(pbf_writer& writer, uint32_t field, std::string_view text) {
  if (text.empty())
    return;
  text = BoundedText(text);
  writer.add_bytes(field, text.data(), text.size());
}

void AddNumber(pbf_writer& writer, uint32_t field, uint64_t number) {
  if (number != 0)
    writer.add_uint64(field, number);
}

void AddReal(pbf_writer& writer, uint32_t field, double number) {
  if (number != 0)
    writer.add_double(field, number);
}

// As many as a packet holds.
void AddTexts(const std::string& message,
              pbf_writer& writer,
              uint32_t field,
              const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (message.size() >= kPacketTarget)
      return;
    AddText(writer, field, text);
  }
}

void AddUnnamed(pbf_writer& end, const UnnamedModule& code) {
  pbf_writer writer(end, EndField::kUnnamed);
  AddText(writer, CodeField::kPath, code.path);
  AddText(writer, CodeField::kBuildId, code.build_id);
  AddNumber(writer, CodeField::kUnnamedFrames, code.unnamed_frames);
  writer.add_enum(CodeField::kReason, static_cast<int32_t>(code.reason));
  AddText(writer, CodeField::kError, code.error);
  const size_t count = std::min(code.starts.size(), kMaxListed);
  writer.add_packed_uint64(CodeField::kStarts, code.starts.begin(),
                           code.starts.begin() + static_cast<ptrdiff_t>(count));
  if (code.is_unmapped)
    writer.add_bool(CodeField::kIsUnmapped, true);
}

// What can be counted, or was measured: no infinity, nothing below zero.
double Measured(double number) {
  constexpr double kMost = 1e18;
  return std::isfinite(number) ? std::clamp(number, 0.0, kMost) : 0;
}

template <typename Item>
void Add(std::vector<Item>& list, Item item) {
  if (list.size() < kMaxListed)
    list.push_back(std::move(item));
}

// A reason of a later version is `otherwise`.
template <typename Reason>
Reason ReadReason(uint64_t number, Reason last, Reason otherwise) {
  return number <= static_cast<uint64_t>(last) ? static_cast<Reason>(number) : otherwise;
}

UnrecordedPrograms ReadPrograms(std::string_view message) {
  UnrecordedPrograms programs;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == ProgramsField::kReason)
      programs.reason =
          ReadReason(reader.Uint(), static_cast<UnrecordedReason>(kUnrecordedReasons - 1),
                     UnrecordedReason::kNotLoaded);
    else if (reader.field() == ProgramsField::kCount)
      programs.count = reader.Uint();
    else if (reader.field() == ProgramsField::kNames)
      Add(programs.names, std::string(reader.Bytes()));
  }
  return programs;
}

UnnamedModule ReadUnnamed(std::string_view message) {
  UnnamedModule code;
  MessageReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case CodeField::kPath:
        code.path = reader.Bytes();
        break;
      case CodeField::kBuildId:
        code.build_id = reader.Bytes();
        break;
      case CodeField::kUnnamedFrames:
        code.unnamed_frames = reader.Uint();
        break;
      case CodeField::kReason:
        code.reason = ReadReason(reader.Uint(), NoSymbolsReason::kCancelled,
                                 NoSymbolsReason::kUnreadable);
        break;
      case CodeField::kError:
        code.error = reader.Bytes();
        break;
      case CodeField::kStarts:
        reader.Uints([&](uint64_t start) { Add(code.starts, start); });
        break;
      case CodeField::kIsUnmapped:
        code.is_unmapped = reader.Bool();
        break;
      default:
        break;
    }
  }
  return code;
}

// The numbers of a process; false: it is another field.
bool ReadNumber(MessageReader& reader, ProcessEnd& end) {
  switch (reader.field()) {
    case EndField::kPid:
      end.pid = static_cast<int32_t>(reader.Int());
      return true;
    case EndField::kProfilingStart:
      end.start_ns = reader.Uint();
      return true;
    case EndField::kLacksMalloc:
      end.hooks_malloc = !reader.Bool();
      return true;
    case EndField::kHasOwnMalloc:
      end.has_own_malloc = reader.Bool();
      return true;
    case EndField::kLacksHeaps:
      end.has_heaps = !reader.Bool();
      return true;
    case EndField::kRssKib:
      end.rss_kib = reader.Uint();
      return true;
    case EndField::kAnonymousKib:
      end.anonymous_kib = reader.Uint();
      return true;
    case EndField::kSwapKib:
      end.swap_kib = reader.Uint();
      return true;
    case EndField::kRssLimitKib:
      end.rss_limit_kib = reader.Uint();
      return true;
    case EndField::kRequested:
      end.requested = Measured(reader.Double());
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string RecordingEndMessage(const RecordingEnd& end) {
  std::string message;
  pbf_writer writer(message);
  AddReal(writer, RecordingField::kSeconds, end.seconds);
  if (end.program_pid != 0)
    writer.add_int32(RecordingField::kProgramPid, end.program_pid);
  for (const UnrecordedPrograms& programs : end.unrecorded) {
    if (message.size() >= kPacketTarget / 2)
      break;
    std::string entry;
    pbf_writer group(entry);
    group.add_enum(ProgramsField::kReason, static_cast<int32_t>(programs.reason));
    group.add_uint64(ProgramsField::kCount, programs.count);
    AddTexts(entry, group, ProgramsField::kNames, programs.names);
    writer.add_message(RecordingField::kUnrecorded, entry);
  }
  return message;
}

std::string ProcessEndMessage(const ProcessEnd& end) {
  std::string message;
  pbf_writer writer(message);
  writer.add_int32(EndField::kPid, end.pid);
  writer.add_uint64(EndField::kProfilingStart, end.start_ns);
  AddText(writer, EndField::kExecutable, end.executable);
  if (!end.hooks_malloc)
    writer.add_bool(EndField::kLacksMalloc, true);
  if (end.has_own_malloc)
    writer.add_bool(EndField::kHasOwnMalloc, true);
  if (!end.has_heaps)
    writer.add_bool(EndField::kLacksHeaps, true);
  AddNumber(writer, EndField::kRssKib, end.rss_kib);
  AddNumber(writer, EndField::kAnonymousKib, end.anonymous_kib);
  AddNumber(writer, EndField::kSwapKib, end.swap_kib);
  AddNumber(writer, EndField::kRssLimitKib, end.rss_limit_kib);
  AddReal(writer, EndField::kRequested, end.requested);
  for (size_t i = 0; i < std::min(end.history.size(), kMaxListed); ++i)
    writer.add_double(EndField::kHistory, end.history[i]);
  AddTexts(message, writer, EndField::kUnrecordedHeaps, end.unrecorded_heaps);
  AddTexts(message, writer, EndField::kLateFiles, end.late_files);
  for (const UnnamedModule& code : end.unnamed) {
    if (message.size() >= kPacketTarget)
      break;
    AddUnnamed(writer, code);
  }
  return message;
}

RecordingEnd ReadRecordingEnd(std::string_view message) {
  RecordingEnd end;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == RecordingField::kSeconds)
      end.seconds = Measured(reader.Double());
    else if (reader.field() == RecordingField::kProgramPid)
      end.program_pid = static_cast<int32_t>(reader.Int());
    else if (reader.field() == RecordingField::kUnrecorded)
      Add(end.unrecorded, ReadPrograms(reader.Bytes()));
  }
  return end;
}

ProcessEnd ReadProcessEnd(std::string_view message) {
  ProcessEnd end;
  MessageReader reader(message);
  while (reader.Next()) {
    if (ReadNumber(reader, end))
      continue;
    if (reader.field() == EndField::kExecutable)
      end.executable = reader.Bytes();
    else if (reader.field() == EndField::kUnrecordedHeaps)
      Add(end.unrecorded_heaps, std::string(reader.Bytes()));
    else if (reader.field() == EndField::kLateFiles)
      Add(end.late_files, std::string(reader.Bytes()));
    else if (reader.field() == EndField::kHistory)
      Add(end.history, Measured(reader.Double()));
    else if (reader.field() == EndField::kUnnamed)
      Add(end.unnamed, ReadUnnamed(reader.Bytes()));
  }
  return end;
}

}  // namespace heapprofd
