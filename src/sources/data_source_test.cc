#include "sources/data_source.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <functional>
#include <map>

#include "base/clock.h"
#include "base/test_child.h"
#include "config.pb.h"
#include "trace/fields.h"
#include "trace/message_reader.h"

namespace heapprofd {
namespace {

using ProcessField = field::ProcessTree::Process;

namespace proto = perfetto::protos;

// Everything that a source writes.
struct Packets {
  std::multimap<uint32_t, std::string> messages;

  PacketSink Sink() {
    return [this](uint32_t field, const std::string& message) {
      messages.emplace(field, message);
      return Status();
    };
  }
};

DataSources Make(const proto::DataSourceConfig& source) {
  proto::TraceConfig config;
  *config.add_data_sources()->mutable_config() = source;
  return MakeDataSources(config.SerializeAsString());
}

// What the only source of `config` writes in its first turns: until nothing is due.
Packets Record(const proto::DataSourceConfig& config, uint64_t turn_ns) {
  Packets packets;
  const DataSources made = Make(config);
  EXPECT_EQ(made.sources.size(), 1u);
  DataSource& source = *made.sources.at(0);
  const Status begun = source.Begin();
  EXPECT_TRUE(begun.ok()) << begun.message();
  int turns = 0;
  do {
    EXPECT_TRUE(source.Serve(packets.Sink(), MonotonicNs() + turn_ns).ok());
  } while (source.next_ns() <= MonotonicNs() && ++turns < 1'000'000);
  EXPECT_TRUE(source.End(packets.Sink()).ok());
  return packets;
}

// The entry of this process in field 1 of all messages of a kind.
std::string OwnEntry(const Packets& packets, uint32_t kind) {
  const auto [begin, end] = packets.messages.equal_range(kind);
  for (auto message = begin; message != end; ++message) {
    MessageReader reader(message->second);
    while (reader.Next()) {
      if (reader.field() != 1)
        continue;
      const std::string entry(reader.Bytes());
      MessageReader fields(entry);
      if (fields.Next() && fields.field() == 1 && fields.Int() == getpid())
        return entry;
    }
  }
  return "";
}

uint64_t NumberIn(const std::string& message, uint32_t field) {
  MessageReader reader(message);
  while (reader.Next()) {
    if (reader.field() == field)
      return reader.Uint();
  }
  return 0;
}

TEST(DataSourceTest, ProcessesAreDescribedAndMeasured) {
  proto::DataSourceConfig config;
  config.set_name("linux.process_stats");
  config.mutable_process_stats_config()->set_scan_all_processes_on_start(true);
  config.mutable_process_stats_config()->set_record_thread_names(true);
  config.mutable_process_stats_config()->set_record_process_age(true);
  config.mutable_process_stats_config()->set_proc_stats_poll_ms(3'600'000);
  // A turn of no time at all still looks at one process.
  for (const uint64_t turn_ns : {uint64_t{0}, uint64_t{60'000'000'000}}) {
    const Packets packets = Record(config, turn_ns);
    const std::string process = OwnEntry(packets, field::TracePacket::kProcessTree);
    EXPECT_EQ(NumberIn(process, ProcessField::kPpid), static_cast<uint64_t>(getppid()));
    EXPECT_NE(NumberIn(process, ProcessField::kProcessStartFromBoot), 0u);
    EXPECT_EQ(process.find("sources_tests") != std::string::npos, true);
    const std::string stats = OwnEntry(packets, field::TracePacket::kProcessStats);
    EXPECT_GT(NumberIn(stats, 3), 100u);  // VmRSS, KiB
    EXPECT_GE(NumberIn(stats, 9), NumberIn(stats, 3));
  }
}

TEST(DataSourceTest, NothingIsScannedThatIsNotAskedFor) {
  proto::DataSourceConfig config;
  config.set_name("linux.process_stats");
  EXPECT_TRUE(Record(config, 0).messages.empty());
}

TEST(DataSourceTest, CountersOfTheMachine) {
  proto::DataSourceConfig config;
  config.set_name("linux.sys_stats");
  proto::SysStatsConfig* stats = config.mutable_sys_stats_config();
  stats->set_meminfo_period_ms(3'600'000);
  stats->add_meminfo_counters(proto::MEMINFO_MEM_TOTAL);
  stats->set_stat_period_ms(3'600'000);
  stats->set_vmstat_period_ms(3'600'000);
  stats->set_buddyinfo_period_ms(3'600'000);
  stats->set_diskstat_period_ms(3'600'000);
  stats->set_cpufreq_period_ms(3'600'000);
  const Packets packets = Record(config, 0);
  ASSERT_EQ(packets.messages.size(), 1u);
  std::map<uint32_t, int> entries;
  MessageReader reader(packets.messages.begin()->second);
  while (reader.Next()) {
    if (++entries[reader.field()] == 1 && reader.field() == 1) {
      const std::string counter(reader.Bytes());
      EXPECT_EQ(NumberIn(counter, 1), static_cast<uint64_t>(proto::MEMINFO_MEM_TOTAL));
      EXPECT_EQ(NumberIn(counter, 2), static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                                          static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) /
                                          1024);
    }
  }
  EXPECT_EQ(entries[1], 1);  // only the counter that was named
  EXPECT_GT(entries[2], 20);
  EXPECT_EQ(entries[3], sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_EQ(entries[4], 1);
}

TEST(DataSourceTest, WhatCannotBeRecordedIsNamed) {
  proto::DataSourceConfig config;
  config.set_name("android.packages_list");
  DataSources made = Make(config);
  EXPECT_TRUE(made.sources.empty());
  ASSERT_EQ(made.notes.size(), 1u);
  EXPECT_NE(made.notes[0].find("android.packages_list"), std::string::npos);
  config.set_name("linux.process_stats");
  config.mutable_process_stats_config()->set_resolve_process_fds(true);
  made = Make(config);
  EXPECT_EQ(made.sources.size(), 1u);
  ASSERT_EQ(made.notes.size(), 1u);
  EXPECT_NE(made.notes[0].find("resolve_process_fds"), std::string::npos);
}

TEST(DataSourceTest, SeveralSourcesOfEventsAreOne) {
  proto::TraceConfig config;
  for (const char* event : {"sched/sched_switch", "sched/sched_waking"}) {
    proto::DataSourceConfig& source = *config.add_data_sources()->mutable_config();
    source.set_name("linux.ftrace");
    source.mutable_ftrace_config()->add_ftrace_events(event);
  }
  EXPECT_EQ(MakeDataSources(config.SerializeAsString()).sources.size(), 1u);
}

TEST(DataSourceTest, AFloodOfSourcesIsCut) {
  proto::TraceConfig config;
  for (int i = 0; i < 1000; ++i)
    config.add_data_sources()->mutable_config()->set_name("linux.process_stats");
  const DataSources made = MakeDataSources(config.SerializeAsString());
  EXPECT_EQ(made.sources.size(), 16u);
  EXPECT_EQ(made.notes.size(), 1u);
}

// As many as a configuration has room for: it is not worked on for minutes.
TEST(MakeDataSourcesTest, ManyEventsAreTakenIn) {
  proto::DataSourceConfig config;
  config.set_name("linux.ftrace");
  for (int i = 0; i < 150'000; ++i)
    config.mutable_ftrace_config()->add_ftrace_events("e" + std::to_string(i));
  const uint64_t begin_ns = MonotonicNs();
  EXPECT_EQ(Make(config).sources.size(), 1u);
  EXPECT_LT(MonotonicNs() - begin_ns, 10'000'000'000u);
}

// What the first source of `config` says when it begins in a process for which `prepare`
// has made another machine; nothing where that is not allowed.
std::string BeginningAfter(const std::function<bool()>& prepare,
                           const proto::DataSourceConfig& config) {
  return SaidInChild(prepare,
                     [&] {
                       Packets packets;
                       const DataSources made = Make(config);
                       const std::string said = made.sources.at(0)->Begin().message();
                       static_cast<void>(made.sources.at(0)->End(packets.Sink()));
                       return said;
                     })
      .value_or("");
}

bool MountTracefs() {
  return mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, nullptr) == 0;
}

class RefusedSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!SaidInChild([] { return MountTracefs(); }, [] { return std::string(); }))
      GTEST_SKIP() << "no tracefs can be mounted here";
  }

  static proto::DataSourceConfig Events(const std::string& name) {
    proto::DataSourceConfig config;
    config.set_name("linux.ftrace");
    config.mutable_ftrace_config()->add_ftrace_events(name);
    return config;
  }
};

TEST_F(RefusedSourceTest, EventsThatTheKernelDoesNotHaveAreNamed) {
  EXPECT_EQ(BeginningAfter([] { return MountTracefs(); }, Events("no/such")),
            "cannot record event \"no/such\": the kernel has none of this name; "
            "/sys/kernel/tracing/available_events lists them");
}

TEST_F(RefusedSourceTest, MoreEventsThanARecordingMayHaveAreCut) {
  const std::string said =
      BeginningAfter([] { return MountTracefs(); }, Events("syscalls/*"));
  EXPECT_TRUE(said.starts_with("cannot record all ")) << said;
  EXPECT_TRUE(said.ends_with(" events: 512 are the most; name those that matter"))
      << said;
}

TEST_F(RefusedSourceTest, WithoutTracefsItIsSaidWhoMountsIt) {
  const auto hide = [] {
    return mount("tmpfs", "/sys/kernel/tracing", "tmpfs", 0, nullptr) == 0 &&
           mount("tmpfs", "/sys/kernel/debug", "tmpfs", 0, nullptr) == 0;
  };
  const std::string said =
      "cannot find tracefs: it is not mounted where this process sees it; mount -t "
      "tracefs tracefs /sys/kernel/tracing, and record again";
  EXPECT_EQ(BeginningAfter(hide, Events("sched/*")), said);
  const auto hide_from_user = [&] { return hide() && setuid(65534) == 0; };
  EXPECT_EQ(BeginningAfter(hide_from_user, Events("sched/*")), said + ", both as root");
}

TEST_F(RefusedSourceTest, OnlyAnotherUserIsToldToBeRoot) {
  EXPECT_EQ(BeginningAfter([] { return MountTracefs() && setuid(65534) == 0; },
                           Events("sched/*")),
            "cannot trace the kernel: only root may; record as root");
  EXPECT_NE(
      BeginningAfter(
          [] {
            return MountTracefs() &&
                   mount(nullptr, "/sys/kernel/tracing", nullptr,
                         MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0;
          },
          Events("sched/*"))
          .find("/sys/kernel/tracing/instances is read-only for this process; where "
                "that is systemd's doing, add ReadWritePaths=-"),
      std::string::npos);
}

TEST_F(RefusedSourceTest, AKernelWithoutFiguresOfPressureIsSaidToBeThat) {
  proto::DataSourceConfig config;
  config.set_name("linux.sys_stats");
  config.mutable_sys_stats_config()->set_psi_period_ms(100);
  EXPECT_EQ(BeginningAfter(
                [] { return mount("tmpfs", "/proc", "tmpfs", 0, nullptr) == 0; }, config),
            "cannot read /proc/pressure: the kernel keeps no such figures; start it with "
            "psi=1, or leave out psi_period_ms");
}

}  // namespace
}  // namespace heapprofd
