#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "config.pb.h"
#include "config/recording_config.h"

namespace heapprofd {
namespace {

// A configuration with `inner` inside its heapprofd_config.
std::string Text(const std::string& inner, const std::string& outer = "") {
  return "data_sources { config { name: \"android.heapprofd\" heapprofd_config { " +
         inner + " } } }\n" + outer;
}

constexpr char kSmall[] = "sampling_interval_bytes: 4096 pid: 1";

std::string ErrorOf(const std::string& text) {
  const Result<RecordingConfig> config = ParseTraceConfig(text, ConfigForm::kDetect);
  return config.ok() ? "" : config.status().message();
}

SessionConfig SessionOf(const std::string& inner) {
  const Result<RecordingConfig> config =
      ParseTraceConfig(Text(inner), ConfigForm::kDetect);
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? config.value().sessions.at(0) : SessionConfig();
}

TEST(TraceConfigTest, EveryFieldArrives) {
  const SessionConfig config = SessionOf(R"(
      sampling_interval_bytes: 17 process_cmdline: "a" process_cmdline: "b*" pid: 7
      all: true continuous_dump_config { dump_phase_ms: 5 dump_interval_ms: 6 }
      skip_symbol_prefix: "/lib" shmem_size_bytes: 16384 block_client: true
      no_startup: true dump_at_max: true block_client_timeout_us: 9
      min_anonymous_memory_kb: 10 max_heapprofd_memory_kb: 11 max_heapprofd_cpu_secs: 12
      heaps: "h" heaps: "i" heap_sampling_intervals: 1 heap_sampling_intervals: 2
      exclude_heaps: "x" all_heaps: true stream_allocations: true
      adaptive_sampling_shmem_threshold: 13
      adaptive_sampling_max_sampling_interval_bytes: 14 malloc_info: true
      no_children: true list_live_blocks: true)");
  EXPECT_EQ(config.interval_bytes, 17u);
  EXPECT_EQ(config.targets.names, (std::vector<std::string>{"a", "b*"}));
  EXPECT_EQ(config.targets.pids, std::vector<pid_t>{7});
  EXPECT_TRUE(config.targets.all && config.targets.no_startup);
  EXPECT_FALSE(config.targets.no_running);
  EXPECT_EQ(config.targets.min_anonymous_kib, 10u);
  EXPECT_EQ(config.dumps.phase_ms, 5u);
  EXPECT_EQ(config.dumps.interval_ms, 6u);
  EXPECT_TRUE(config.dumps.at_max);
  EXPECT_EQ(config.skip_symbol_prefixes, std::vector<std::string>{"/lib"});
  EXPECT_EQ(config.ring_size_bytes, 16384u);
  EXPECT_EQ(config.when_full, WhenFull::kBlock);
  EXPECT_EQ(config.block_timeout_us, 9u);
  EXPECT_EQ(config.guardrails.max_memory_kib, 11u);
  EXPECT_EQ(config.guardrails.max_cpu_seconds, 12u);
  EXPECT_EQ(config.heaps.heaps.at(1).name, "i");
  EXPECT_EQ(config.heaps.heaps.at(1).interval_bytes, 2u);
  EXPECT_EQ(config.heaps.excluded, std::vector<std::string>{"x"});
  EXPECT_TRUE(config.heaps.all && config.stream_allocations && config.ask_allocator &&
              config.list_live_blocks);
  EXPECT_TRUE(
      SessionOf(std::string(kSmall) + " idle_allocations: true").idle_allocations);
  EXPECT_EQ(config.adaptive_threshold_bytes, 13u);
  EXPECT_EQ(config.adaptive_max_interval_bytes, 14u);
  EXPECT_FALSE(config.follow_children);
}

// Whatever field of ours or of Perfetto's is asked for arrives at whom the configuration
// is sent to: the daemon, or a device.
TEST(TraceConfigTest, NoFieldIsLostOnTheWay) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Descriptor& message =
      *perfetto::protos::HeapprofdConfig::descriptor();
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    std::string value = ": 16384";  // a size of rings, too
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL)
      value = ": true";
    else if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING)
      value = ": \"h\"";
    else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
      value = " { dump_interval_ms: 6 }";
    std::string text = "pid: 1 heaps: \"libc.malloc\" " + field.name() + value;
    if (field.name() != "sampling_interval_bytes")
      text += " sampling_interval_bytes: 17";
    const Result<RecordingConfig> config =
        ParseTraceConfig(Text(text), ConfigForm::kText);
    ASSERT_TRUE(config.ok()) << config.status().message();
    perfetto::protos::TraceConfig sent;
    ASSERT_TRUE(sent.ParseFromString(SerializeTraceConfig(config.value())));
    const auto& got = sent.data_sources(0).config().heapprofd_config();
    EXPECT_TRUE(field.is_repeated() ? got.GetReflection()->FieldSize(got, &field) > 0
                                    : got.GetReflection()->HasField(got, &field))
        << field.name();
  }
}

TEST(TraceConfigTest, DefaultsAreThoseOfTheDocumentation) {
  const SessionConfig config = SessionOf(kSmall);
  EXPECT_EQ(config.ring_size_bytes, uint64_t{8} << 20);
  EXPECT_EQ(config.when_full, WhenFull::kDrop);
  EXPECT_EQ(config.dumps.interval_ms, 0u);
  EXPECT_TRUE(config.follow_children);
}

TEST(TraceConfigTest, TextAndBinaryFormsAreRoundTrips) {
  RecordingConfig config;
  SessionConfig session;
  session.targets.names = {"quote\"and\\slash", "b"};
  session.interval_bytes = 1;
  session.dumps = {.phase_ms = 3, .interval_ms = 4, .at_max = true};
  session.heaps.heaps = {{.name = "h", .interval_bytes = 8}};
  config.sessions = {session, session};
  config.duration_ms = 1234;
  config.max_file_bytes = 1'000'000;
  config.unique_name = "one";
  const std::string binary = SerializeTraceConfig(config);
  const std::string text = PrintTraceConfig(config);
  for (const std::string& form : {binary, text}) {
    const Result<RecordingConfig> read = ParseTraceConfig(form, ConfigForm::kDetect);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(SerializeTraceConfig(read.value()), binary);
    EXPECT_EQ(read.value().sessions.at(1).targets.names, session.targets.names);
  }
}

TEST(TraceConfigTest, WhatIsWrongIsNamed) {
  EXPECT_NE(ErrorOf(Text("pid: 1")).find("sampling_interval_bytes"), std::string::npos);
  EXPECT_NE(ErrorOf(Text("sampling_interval_bytes: 1")).find("process_cmdline"),
            std::string::npos);
  EXPECT_NE(ErrorOf(Text(std::string(kSmall) + " shmem_size_bytes: 12288"))
                .find("shmem_size_bytes"),
            std::string::npos);
  EXPECT_NE(ErrorOf(Text(std::string(kSmall) + " no_startup: true no_running: true"))
                .find("--no-running"),
            std::string::npos);
  EXPECT_NE(
      ErrorOf(Text(std::string(kSmall) + " heaps: \"a\" heap_sampling_intervals: 0"))
          .find("heap_sampling_intervals"),
      std::string::npos);
  EXPECT_EQ(ErrorOf(Text(std::string(kSmall) + " heaps: \"a\" heap_sampling_intervals: 1 "
                                               "heap_sampling_intervals: 1")),
            "cannot use heap_sampling_intervals: there are 2 for 1 heaps; give one for "
            "each or none");
  EXPECT_NE(ErrorOf(Text("samplig: 1")).find("line 1"), std::string::npos);
  EXPECT_NE(ErrorOf("duration_ms: 5").find("android.heapprofd"), std::string::npos);
}

TEST(TraceConfigTest, FieldsThatChangeNothingAreNamed) {
  const auto notes = [](const std::string& rest) {
    const Result<RecordingConfig> config =
        ParseTraceConfig(Text(kSmall, rest), ConfigForm::kDetect);
    EXPECT_TRUE(config.ok());
    return config.ok() ? config.value().notes : std::vector<std::string>();
  };
  EXPECT_EQ(notes("trigger_config { trigger_mode: STOP_TRACING } statsd_metadata { } "
                  "bugreport_score: 5 compression_type: COMPRESSION_TYPE_DEFLATE "
                  "buffers { size_kb: 100 } write_into_file: true duration_ms: 5"),
            (std::vector<std::string>{
                "of the trace configuration has no effect here: statsd_metadata, "
                "trigger_config, compression_type, bugreport_score"}));
  EXPECT_EQ(
      notes("data_sources { config { name: \"linux.process_stats\" "
            "process_stats_config { proc_stats_poll_ms: 5 } } }"),
      (std::vector<std::string>{"proc_stats_poll_ms: 5 is too short; 100 is used"}));
  EXPECT_EQ(notes("data_sources { config { name: \"linux.sys_stats\" sys_stats_config { "
                  "meminfo_period_ms: 9 stat_period_ms: 10 } } }"),
            (std::vector<std::string>{"meminfo_period_ms: 9 is too short; 10 is used"}));
}

TEST(TraceConfigTest, UnknownFieldsAreSkippedOnRequest) {
  const std::string text = Text(std::string(kSmall) + " brand_new: 5");
  EXPECT_FALSE(ParseTraceConfig(text, ConfigForm::kText).ok());
  EXPECT_TRUE(ParseTraceConfig(text, ConfigForm::kTextLossy).ok());
}

TEST(TraceConfigTest, OtherDataSourcesThatCannotBeHadAreSaid) {
  const Result<RecordingConfig> config = ParseTraceConfig(
      Text(kSmall, "data_sources { config { name: \"android.packages_list\" } }"),
      ConfigForm::kDetect);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config.value().sessions.size(), 1u);
  ASSERT_EQ(config.value().notes.size(), 1u);
  EXPECT_NE(config.value().notes[0].find("android.packages_list"), std::string::npos);
}

// A configuration that combines sources, as they are written for Perfetto.
TEST(TraceConfigTest, WhatIsForOthersIsKept) {
  const char kRest[] = R"(
      buffers { size_kb: 100 fill_policy: DISCARD }
      data_sources { config { name: "linux.ftrace" target_buffer: 1 ftrace_config {
        ftrace_events: "sched/sched_switch" atrace_categories: "dalvik"
        compact_sched { enabled: true } } } }
      data_sources { config { name: "linux.sys_stats" sys_stats_config {
        meminfo_period_ms: 1000 meminfo_counters: MEMINFO_MEM_FREE
        stat_counters: STAT_FORK_COUNT } } }
      data_sources { config { name: "android.log" android_log_config {
        min_prio: PRIO_WARN log_ids: LID_CRASH } } }
      data_sources { config { name: "linux.perf" perf_event_config {
        timebase { frequency: 99 counter: SW_CPU_CLOCK } } } }
      flush_period_ms: 77)";
  const Result<RecordingConfig> config =
      ParseTraceConfig(Text(kSmall, kRest), ConfigForm::kText);
  ASSERT_TRUE(config.ok()) << config.status().message();
  const std::string text = PrintTraceConfig(config.value());
  for (const char* kept :
       {"fill_policy: DISCARD", "ftrace_events: \"sched/sched_switch\"",
        "atrace_categories: \"dalvik\"", "meminfo_counters: MEMINFO_MEM_FREE",
        "min_prio: PRIO_WARN", "counter: SW_CPU_CLOCK", "flush_period_ms: 77"})
    EXPECT_NE(text.find(kept), std::string::npos) << kept << " in\n" << text;
  const Result<RecordingConfig> again = ParseTraceConfig(text, ConfigForm::kText);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(PrintTraceConfig(again.value()), text);
  EXPECT_EQ(again.value().sessions.size(), 1u);
}

TEST(TraceConfigTest, WhatIsWrongInAConfigurationIsNamedWithWhatToDo) {
  const std::string many = "sampling_interval_bytes: 1 pid: 1 ";
  std::string names;
  for (int i = 0; i <= 10'000; ++i)
    names += "process_cmdline: \"x\" ";
  std::string heaps;
  for (int i = 0; i < 1000; ++i)
    heaps += "heaps: \"h\" ";
  const std::string cases[][2] = {
      {"no_startup: true no_running: true", "no process could match; leave one out"},
      {names, "cannot use more than 10000 names or pids (process_cmdline, pid)"},
      {"pid: 5000000000", "cannot use pid 5000000000: it is no process id"},
      {"heaps: \"h\" heap_sampling_intervals: 0",
       "the one of heap h is 0; it must be at least 1"},
      {"heaps: \"\"", "\" must have 1 to 63 bytes; separate names by commas"},
      {"idle_allocations: true dump_at_max: true",
       "nobody looks at memory when most is live; leave one out"},
      {"heaps: \"h\" idle_allocations: true",
       "without malloc's heap: where the blocks of other heaps lie is not known; add "
       "libc.malloc to --heaps"},
      {heaps, "are named; use --all-heaps and --exclude-heaps"},
  };
  for (const auto& [inner, words] : cases)
    EXPECT_NE(ErrorOf(Text(many + inner)).find(words), std::string::npos)
        << ErrorOf(Text(many + inner));
  EXPECT_NE(ErrorOf(Text("sampling_interval_bytes: 2199023255552 pid: 1"))
                .find("from 1 to 1 TiB; 4096 is the default, 1 records everything"),
            std::string::npos);
  EXPECT_NE(
      ErrorOf("data_sources { nonsense")
          .find("; heap_profile --print-config shows a right one, and --txt-lossy skips"),
      std::string::npos);
  EXPECT_EQ(ErrorOf(std::string((1u << 20) + 1, ' ')),
            "cannot read the trace configuration: it is larger than 1 MiB");
}

}  // namespace
}  // namespace heapprofd
