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
      case field::kProcessPid:
        pid = reader.Int();
        break;
      case field::kProcessParent:
        parent = reader.Int();
        break;
      case field::kProcessCmdline:
        if (!has_name)
          name = reader.Bytes();
        cmdline.append(has_name ? " " : "").append(has_name ? reader.Bytes() : name);
        has_name = true;
        break;
      case field::kProcessUid:
        uid = reader.Int();
        break;
      case field::kProcessStart:
        start = reader.Int();
        break;
      case field::kProcessCmdlineIsComm:
        is_comm = reader.Bool();
        break;
      case field::kProcessProfilingStart:
        profiling_start = reader.Int();
        break;
      default:
        break;
    }
  }
  // The parent first, as Perfetto numbers processes.
  const uint32_t parent_upid = parent > 0 ? builder.ProcessOf(parent) : kNoId;
  const uint32_t upid = profiling_start ? builder.ImageOf(pid, *profiling_start)
                        : start         ? builder.StartedProcessOf(pid, *start)
                                        : builder.ProcessOf(pid);
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
    if (reader.field() == 1)
      tid = reader.Int();
    else if (reader.field() == 2)
      name = reader.Bytes();
    else if (reader.field() == 3)
      tgid = reader.Int();
  }
  const uint32_t thread = builder.ThreadOf(tid, builder.ProcessOf(tgid));
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
    {2, "mem.virt", kKib},
    {3, "mem.rss", kKib},
    {4, "mem.rss.anon", kKib},
    {5, "mem.rss.file", kKib},
    {6, "mem.rss.shmem", kKib},
    {7, "mem.swap", kKib},
    {8, "mem.locked", kKib},
    {9, "mem.rss.watermark", kKib},
    {10, "oom_score_adj", 1},
    {16, "mem.smaps.rss", kKib},
    {17, "mem.smaps.pss", kKib},
    {18, "mem.smaps.pss.anon", kKib},
    {19, "mem.smaps.pss.file", kKib},
    {20, "mem.smaps.pss.shmem", kKib},
    {23, "mem.smaps.swap.pss", kKib},
    {24, "mem.dmabuf_rss", kKib},
};

void ImportCounters(TraceBuilder& builder, std::string_view message, int64_t ts) {
  MessageReader pid_reader(message);
  int64_t pid = 0;
  while (pid_reader.Next()) {
    if (pid_reader.field() == 1)
      pid = pid_reader.Int();
  }
  const uint32_t upid = builder.ProcessOf(pid);
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
    {2, &ImportedSmaps::size_kb},           {3, &ImportedSmaps::private_dirty_kb},
    {4, &ImportedSmaps::swap_kb},           {6, &ImportedSmaps::start_address},
    {7, &ImportedSmaps::module_timestamp},  {10, &ImportedSmaps::protection_flags},
    {11, &ImportedSmaps::private_clean_kb}, {12, &ImportedSmaps::shared_dirty_kb},
    {13, &ImportedSmaps::shared_clean_kb},  {14, &ImportedSmaps::locked_kb},
    {15, &ImportedSmaps::pss_kb},
};

// Columns of PackedSmaps by field.
constexpr std::pair<uint32_t, SmapsNumber> kPackedNumbers[] = {
    {3, &ImportedSmaps::aggregate_count},
    {4, &ImportedSmaps::size_kb},
    {5, &ImportedSmaps::rss_kb},
    {6, &ImportedSmaps::anonymous_kb},
    {7, &ImportedSmaps::swap_kb},
    {8, &ImportedSmaps::shared_clean_kb},
    {9, &ImportedSmaps::shared_dirty_kb},
    {10, &ImportedSmaps::private_clean_kb},
    {11, &ImportedSmaps::private_dirty_kb},
    {12, &ImportedSmaps::locked_kb},
    {13, &ImportedSmaps::pss_kb},
    {14, &ImportedSmaps::pss_dirty_kb},
    {15, &ImportedSmaps::swap_pss_kb},
};

void ImportSmapsEntry(TraceBuilder& builder,
                      std::string_view message,
                      ImportedSmaps row) {
  MessageReader reader(message);
  while (reader.Next()) {
    const uint32_t field = reader.field();
    if (field == 1)
      row.path = builder.Intern(reader.Bytes());
    else if (field == 5)
      row.file_name = builder.Intern(reader.Bytes());
    else if (field == 8)
      row.module_debugid = builder.Intern(reader.Bytes());
    else if (field == 9)
      row.module_debug_path = builder.Intern(reader.Bytes());
    for (const auto& [number, member] : kEntryNumbers) {
      if (number == field)
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
    const uint32_t field = reader.field();
    if (field == 1)
      texts.push_back(builder.Intern(reader.Bytes()));
    else if (field == 2)
      reader.Uints([&](uint64_t value) { names.push_back(value); });
    else
      reader.Uints(
          [&](uint64_t value) { columns[field].push_back(static_cast<int64_t>(value)); });
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
    if (reader.field() == 1)
      ImportProcess(builder, reader.Bytes());
    else if (reader.field() == 2)
      ImportThread(builder, reader.Bytes());
  }
}

void ImportProcessStats(TraceBuilder& builder, std::string_view message, int64_t ts) {
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == 1)
      ImportCounters(builder, reader.Bytes(), ts);
  }
}

void ImportSmaps(TraceBuilder& builder, std::string_view message, int64_t ts) {
  ImportedSmaps row;
  row.ts = ts;
  MessageReader pid_reader(message);
  while (pid_reader.Next()) {
    if (pid_reader.field() == 1)
      row.upid = builder.ProcessOf(pid_reader.Int());
  }
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == 2)
      ImportSmapsEntry(builder, reader.Bytes(), row);
    else if (reader.field() == 3)
      ImportPackedSmaps(builder, reader.Bytes(), row);
  }
}

void ImportPackagesList(TraceBuilder& builder, std::string_view message) {
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() != 1)
      continue;
    ImportedPackage package;
    MessageReader fields(reader.Bytes());
    while (fields.Next()) {
      if (fields.field() == 1)
        package.name = builder.Intern(fields.Bytes());
      else if (fields.field() == 2)
        package.uid = fields.Int();
      else if (fields.field() == 3)
        package.debuggable = fields.Bool();
      else if (fields.field() == 4)
        package.profileable_from_shell = fields.Bool();
      else if (fields.field() == 5)
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
      {2, "android_build_fingerprint", true}, {4, "tracing_service_version", true},
      {5, "android_sdk_version", false},      {6, "page_size", false},
      {7, "timezone_off_mins", false},        {8, "num_cpus", false},
      {9, "android_soc_model", true},         {14, "android_device_manufacturer", true},
      {16, "system_ram_bytes", false},
  };
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == 1) {
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
    if (reader.field() == 1)
      high = reader.Uint();
    else if (reader.field() == 2)
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
      {3, StatId::kTracedBufChunksOverwritten}, {6, StatId::kTracedBufPatchesFailed},
      {9, StatId::kTracedBufAbiViolations},     {18, StatId::kTracedBufChunksDiscarded},
      {19, StatId::kTracedBufPacketLoss},
  };
  constexpr uint64_t kFinalFlushFailed = 2;
  TraceStats& stats = builder.trace().stats;
  int64_t buffer = 0;
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == 1) {
      MessageReader fields(reader.Bytes());
      while (fields.Next()) {
        for (const auto& [number, stat] : kBufferFields) {
          if (number == fields.field())
            stats.Set(stat, buffer, fields.Int());
        }
      }
      ++buffer;
    } else if (reader.field() == 14) {
      stats.Set(StatId::kTracedFlushesFailed, 0, reader.Int());
    } else if (reader.field() == 15) {
      stats.Set(StatId::kTracedFinalFlushFailed, 0, reader.Uint() == kFinalFlushFailed);
    }
  }
}

}  // namespace heapprofd
