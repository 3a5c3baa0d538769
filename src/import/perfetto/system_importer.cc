#include "import/perfetto/system_importer.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "trace/fields.h"
#include "trace/message_reader.h"

namespace heapprofd {
namespace {

using BufferField = field::TraceStats::BufferStats;
using EntryField = field::SmapsEntry;
using InfoField = field::SystemInfo;
using PackedField = field::PackedSmaps;
using ProcessField = field::ProcessTree::Process;
using StatsField = field::ProcessStats::Process;

// Rows of a table that takes more memory than the bytes that make it: no real trace has
// as many.
constexpr size_t kMaxSystemRows = size_t{1} << 19;

template <typename Row>
void AddRow(std::vector<Row>& table, const Row& row) {
  if (table.size() < kMaxSystemRows)
    table.push_back(row);
}

void AddMetadata(TraceBuilder& builder, std::string_view name, std::string_view text) {
  ImportedMetadata row;
  row.name = builder.Intern(name);
  row.str_value = builder.Intern(text);
  AddRow(builder.trace().metadata, row);
}

void AddMetadata(TraceBuilder& builder, std::string_view name, int64_t value) {
  ImportedMetadata row;
  row.name = builder.Intern(name);
  row.int_value = value;
  AddRow(builder.trace().metadata, row);
}

void ImportProcess(TraceBuilder& builder, std::string_view message) {
  MessageReader reader(message);
  int64_t pid = 0;
  int64_t parent = 0;
  std::optional<int64_t> uid;
  std::optional<int64_t> start;
  std::optional<int64_t> profiling_start;
  std::string_view name;
  std::string cmdline;
  bool has_name = false;
  bool is_comm = false;
  while (reader.Next()) {
    switch (reader.field()) {
      case ProcessField::kPid:
        pid = reader.Int();
        break;
      case ProcessField::kPpid:
        parent = reader.Int();
        break;
      case ProcessField::kCmdline:
        if (!has_name)
          name = reader.Bytes();
        cmdline.append(has_name ? " " : "").append(has_name ? reader.Bytes() : name);
        has_name = true;
        break;
      case ProcessField::kUid:
        uid = reader.Int();
        break;
      case ProcessField::kProcessStartFromBoot:
        start = reader.Int();
        break;
      case ProcessField::kCmdlineIsComm:
        is_comm = reader.Bool();
        break;
      case ProcessField::kProfilingStart:
        profiling_start = reader.Int();
        break;
      default:
        break;
    }
  }
  // The parent first, as Perfetto numbers processes.
  const uint32_t parent_upid = parent > 0 ? builder.processes().ProcessOf(parent) : kNoId;
  const uint32_t upid = profiling_start
                            ? builder.processes().ImageOf(pid, *profiling_start)
                        : start ? builder.processes().StartedProcessOf(pid, *start)
                                : builder.processes().ProcessOf(pid);
  if (upid == 0)
    return;
  ImportedProcess& process = builder.trace().processes[upid];
  process.parent_upid = parent_upid;
  if (uid)
    process.uid = uid;
  if (has_name) {
    process.name = builder.Intern(name);
    process.cmdline = builder.Intern(cmdline);
    process.name_is_comm = is_comm;
  }
}

void ImportThread(TraceBuilder& builder, std::string_view message) {
  MessageReader reader(message);
  int64_t tid = 0;
  int64_t tgid = 0;
  std::string_view name;
  while (reader.Next()) {
    if (reader.field() == field::ProcessTree::Thread::kTid)
      tid = reader.Int();
    else if (reader.field() == field::ProcessTree::Thread::kName)
      name = reader.Bytes();
    else if (reader.field() == field::ProcessTree::Thread::kTgid)
      tgid = reader.Int();
  }
  const uint32_t thread =
      builder.processes().ThreadOf(tid, builder.processes().ProcessOf(tgid));
  if (!name.empty())
    builder.trace().threads[thread].name = builder.Intern(name);
}

// Field of ProcessStats.Process, SQL name, factor to bytes.
struct CounterField {
  uint32_t field;
  std::string_view name;
  int64_t factor;
};

constexpr int64_t kKib = 1024;
constexpr CounterField kCounterFields[] = {
    {StatsField::kVmSizeKb, "mem.virt", kKib},
    {StatsField::kVmRssKb, "mem.rss", kKib},
    {StatsField::kRssAnonKb, "mem.rss.anon", kKib},
    {StatsField::kRssFileKb, "mem.rss.file", kKib},
    {StatsField::kRssShmemKb, "mem.rss.shmem", kKib},
    {StatsField::kVmSwapKb, "mem.swap", kKib},
    {StatsField::kVmLockedKb, "mem.locked", kKib},
    {StatsField::kVmHwmKb, "mem.rss.watermark", kKib},
    {StatsField::kOomScoreAdj, "oom_score_adj", 1},
    {StatsField::kSmrRssKb, "mem.smaps.rss", kKib},
    {StatsField::kSmrPssKb, "mem.smaps.pss", kKib},
    {StatsField::kSmrPssAnonKb, "mem.smaps.pss.anon", kKib},
    {StatsField::kSmrPssFileKb, "mem.smaps.pss.file", kKib},
    {StatsField::kSmrPssShmemKb, "mem.smaps.pss.shmem", kKib},
    {StatsField::kSmrSwapPssKb, "mem.smaps.swap.pss", kKib},
    {StatsField::kDmabufRssKb, "mem.dmabuf_rss", kKib},
};

void ImportCounters(TraceBuilder& builder, std::string_view message, int64_t ts) {
  MessageReader pid_reader(message);
  int64_t pid = 0;
  while (pid_reader.Next()) {
    if (pid_reader.field() == field::ProcessStats::Process::kPid)
      pid = pid_reader.Int();
  }
  const uint32_t upid = builder.processes().ProcessOf(pid);
  MessageReader reader(message);
  while (reader.Next()) {
    for (const CounterField& counter : kCounterFields) {
      if (counter.field != reader.field())
        continue;
      const uint64_t value = reader.Uint() * static_cast<uint64_t>(counter.factor);
      builder.trace().counters.push_back({.ts = ts,
                                          .upid = upid,
                                          .name = builder.Intern(counter.name),
                                          .value = static_cast<int64_t>(value)});
      break;
    }
  }
}

using SmapsNumber = std::optional<int64_t> ImportedSmaps::*;

// Numbers of SmapsEntry by field.
constexpr std::pair<uint32_t, SmapsNumber> kEntryNumbers[] = {
    {EntryField::kSizeKb, &ImportedSmaps::size_kb},
    {EntryField::kPrivateDirtyKb, &ImportedSmaps::private_dirty_kb},
    {EntryField::kSwapKb, &ImportedSmaps::swap_kb},
    {EntryField::kStartAddress, &ImportedSmaps::start_address},
    {EntryField::kModuleTimestamp, &ImportedSmaps::module_timestamp},
    {EntryField::kProtectionFlags, &ImportedSmaps::protection_flags},
    {EntryField::kPrivateCleanResidentKb, &ImportedSmaps::private_clean_kb},
    {EntryField::kSharedDirtyResidentKb, &ImportedSmaps::shared_dirty_kb},
    {EntryField::kSharedCleanResidentKb, &ImportedSmaps::shared_clean_kb},
    {EntryField::kLockedKb, &ImportedSmaps::locked_kb},
    {EntryField::kProportionalResidentKb, &ImportedSmaps::pss_kb},
};

// Columns of PackedSmaps by field.
constexpr std::pair<uint32_t, SmapsNumber> kPackedNumbers[] = {
    {PackedField::kAggregateCount, &ImportedSmaps::aggregate_count},
    {PackedField::kSizeKb, &ImportedSmaps::size_kb},
    {PackedField::kRssKb, &ImportedSmaps::rss_kb},
    {PackedField::kAnonymousKb, &ImportedSmaps::anonymous_kb},
    {PackedField::kSwapKb, &ImportedSmaps::swap_kb},
    {PackedField::kSharedCleanKb, &ImportedSmaps::shared_clean_kb},
    {PackedField::kSharedDirtyKb, &ImportedSmaps::shared_dirty_kb},
    {PackedField::kPrivateCleanKb, &ImportedSmaps::private_clean_kb},
    {PackedField::kPrivateDirtyKb, &ImportedSmaps::private_dirty_kb},
    {PackedField::kLockedKb, &ImportedSmaps::locked_kb},
    {PackedField::kPssKb, &ImportedSmaps::pss_kb},
    {PackedField::kPssDirtyKb, &ImportedSmaps::pss_dirty_kb},
    {PackedField::kSwapPssKb, &ImportedSmaps::swap_pss_kb},
};

void ImportSmapsEntry(TraceBuilder& builder,
                      std::string_view message,
                      ImportedSmaps row) {
  MessageReader reader(message);
  while (reader.Next()) {
    const uint32_t number = reader.field();
    if (number == field::SmapsEntry::kPath)
      row.path = builder.Intern(reader.Bytes());
    else if (number == field::SmapsEntry::kFileName)
      row.file_name = builder.Intern(reader.Bytes());
    else if (number == field::SmapsEntry::kModuleDebugid)
      row.module_debugid = builder.Intern(reader.Bytes());
    else if (number == field::SmapsEntry::kModuleDebugPath)
      row.module_debug_path = builder.Intern(reader.Bytes());
    for (const auto& [wanted, member] : kEntryNumbers) {
      if (wanted == number)
        row.*member = reader.Int();
    }
  }
  AddRow(builder.trace().smaps, row);
}

void ImportPackedSmaps(TraceBuilder& builder,
                       std::string_view message,
                       const ImportedSmaps& row) {
  std::vector<StringId> texts;
  std::vector<uint64_t> names;
  std::map<uint32_t, std::vector<int64_t>> columns;
  MessageReader reader(message);
  while (reader.Next()) {
    const uint32_t number = reader.field();
    if (number == field::PackedSmaps::kStringTable)
      texts.push_back(builder.Intern(reader.Bytes()));
    else if (number == field::PackedSmaps::kNameId)
      reader.Uints([&](uint64_t value) { names.push_back(value); });
    else
      reader.Uints([&](uint64_t value) {
        columns[number].push_back(static_cast<int64_t>(value));
      });
  }
  const bool is_aggregated = names.empty();
  const size_t rows = is_aggregated ? texts.size() : names.size();
  bool has_error = false;
  for (size_t i = 0; i < rows; ++i) {
    ImportedSmaps added = row;
    const uint64_t name = is_aggregated ? i : names[i];
    has_error |= name >= texts.size();
    added.path = name < texts.size() ? texts[name] : kEmptyString;
    for (const auto& [number, member] : kPackedNumbers) {
      const auto column = columns.find(number);
      if (column == columns.end())
        continue;
      has_error |= column->second.size() != rows;
      if (i < column->second.size())
        added.*member = column->second[i];
    }
    AddRow(builder.trace().smaps, added);
  }
  if (has_error)
    builder.trace().stats.Count(StatId::kSmapsParserErrors);
}

}  // namespace

void ImportProcessTree(TraceBuilder& builder, std::string_view message) {
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field::ProcessTree::kProcesses)
      ImportProcess(builder, reader.Bytes());
    else if (reader.field() == field::ProcessTree::kThreads)
      ImportThread(builder, reader.Bytes());
  }
}

void ImportProcessStats(TraceBuilder& builder, std::string_view message, int64_t ts) {
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field::ProcessStats::kProcesses)
      ImportCounters(builder, reader.Bytes(), ts);
  }
}

void ImportSmaps(TraceBuilder& builder, std::string_view message, int64_t ts) {
  ImportedSmaps row;
  row.ts = ts;
  MessageReader pid_reader(message);
  while (pid_reader.Next()) {
    if (pid_reader.field() == field::SmapsPacket::kPid)
      row.upid = builder.processes().ProcessOf(pid_reader.Int());
  }
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field::SmapsPacket::kEntries)
      ImportSmapsEntry(builder, reader.Bytes(), row);
    else if (reader.field() == field::SmapsPacket::kPackedEntries)
      ImportPackedSmaps(builder, reader.Bytes(), row);
  }
}

void ImportPackagesList(TraceBuilder& builder, std::string_view message) {
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() != field::PackagesList::kPackages)
      continue;
    ImportedPackage package;
    MessageReader fields(reader.Bytes());
    while (fields.Next()) {
      if (fields.field() == field::PackagesList::PackageInfo::kName)
        package.name = builder.Intern(fields.Bytes());
      else if (fields.field() == field::PackagesList::PackageInfo::kUid)
        package.uid = fields.Int();
      else if (fields.field() == field::PackagesList::PackageInfo::kDebuggable)
        package.debuggable = fields.Bool();
      else if (fields.field() == field::PackagesList::PackageInfo::kProfileableFromShell)
        package.profileable_from_shell = fields.Bool();
      else if (fields.field() == field::PackagesList::PackageInfo::kVersionCode)
        package.version_code = fields.Int();
    }
    AddRow(builder.trace().packages, package);
  }
}

void ImportSystemInfo(TraceBuilder& builder, std::string_view message) {
  constexpr std::array<std::string_view, 5> kUtsname = {
      "", "system_name", "system_version", "system_release", "system_machine"};

  struct Named {
    uint32_t field;
    std::string_view name;
    bool is_text;
  };

  constexpr Named kFields[] = {
      {InfoField::kAndroidBuildFingerprint, "android_build_fingerprint", true},
      {InfoField::kTracingServiceVersion, "tracing_service_version", true},
      {InfoField::kAndroidSdkVersion, "android_sdk_version", false},
      {InfoField::kPageSize, "page_size", false},
      {InfoField::kTimezoneOffMins, "timezone_off_mins", false},
      {InfoField::kNumCpus, "num_cpus", false},
      {InfoField::kAndroidSocModel, "android_soc_model", true},
      {InfoField::kAndroidDeviceManufacturer, "android_device_manufacturer", true},
      {InfoField::kSystemRamBytes, "system_ram_bytes", false},
  };
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field::SystemInfo::kUtsname) {
      MessageReader utsname(reader.Bytes());
      while (utsname.Next()) {
        if (utsname.field() < kUtsname.size())
          AddMetadata(builder, kUtsname[utsname.field()], utsname.Bytes());
      }
      continue;
    }
    for (const Named& named : kFields) {
      if (named.field != reader.field())
        continue;
      if (named.is_text)
        AddMetadata(builder, named.name, reader.Bytes());
      else
        AddMetadata(builder, named.name, reader.Int());
      break;
    }
  }
}

void ImportTraceUuid(TraceBuilder& builder, std::string_view message) {
  uint64_t high = 0;
  uint64_t low = 0;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field::TraceUuid::kMsb)
      high = reader.Uint();
    else if (reader.field() == field::TraceUuid::kLsb)
      low = reader.Uint();
  }
  std::array<char, 40> text{};
  snprintf(text.data(), text.size(),
           "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
           high >> 32, (high >> 16) & 0xffff, high & 0xffff, low >> 48,
           low & 0xffffffffffff);
  AddMetadata(builder, "trace_uuid", text.data());
}

// NOLINTNEXTLINE(readability-function-size)
void ImportTraceStats(TraceBuilder& builder, std::string_view message) {
  constexpr std::pair<uint32_t, StatId> kBufferFields[] = {
      {BufferField::kChunksOverwritten, StatId::kTracedBufChunksOverwritten},
      {BufferField::kPatchesFailed, StatId::kTracedBufPatchesFailed},
      {BufferField::kAbiViolations, StatId::kTracedBufAbiViolations},
      {BufferField::kChunksDiscarded, StatId::kTracedBufChunksDiscarded},
      {BufferField::kTraceWriterPacketLoss, StatId::kTracedBufPacketLoss},
  };
  constexpr uint64_t kFinalFlushFailed = 2;
  TraceStats& stats = builder.trace().stats;
  int64_t buffer = 0;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field::TraceStats::kBufferStats) {
      MessageReader fields(reader.Bytes());
      while (fields.Next()) {
        for (const auto& [number, stat] : kBufferFields) {
          if (number == fields.field())
            stats.Set(stat, buffer, fields.Int());
        }
      }
      ++buffer;
    } else if (reader.field() == field::TraceStats::kFlushesFailed) {
      stats.Set(StatId::kTracedFlushesFailed, 0, reader.Int());
    } else if (reader.field() == field::TraceStats::kFinalFlushOutcome) {
      stats.Set(StatId::kTracedFinalFlushFailed, 0, reader.Uint() == kFinalFlushFailed);
    }
  }
}

}  // namespace heapprofd
