"""A trace configuration that asks for more than heaps: what Linux has of it is on the timeline of the same trace."""

import os
import subprocess
import tempfile
import unittest

import config_pb2
from profile_run import HEAP_PROFILE
from service_run import Recording, wait_for
from service_test import ServiceTest

NOBODY = 65534
HEAPS = """
data_sources { config { name: "android.heapprofd" heapprofd_config {
  sampling_interval_bytes: 1 process_cmdline: "patient" } } }
"""
# As they are written for Perfetto, with what no Linux has.
COMBINED = HEAPS + """
buffers { size_kb: 63488 fill_policy: DISCARD }
data_sources { config { name: "linux.process_stats" target_buffer: 0 process_stats_config {
  scan_all_processes_on_start: true record_thread_names: true proc_stats_poll_ms: 100 } } }
data_sources { config { name: "linux.sys_stats" sys_stats_config {
  meminfo_period_ms: 50 meminfo_counters: MEMINFO_MEM_TOTAL stat_period_ms: 50 stat_counters: STAT_CPU_TIMES } } }
data_sources { config { name: "android.log" android_log_config { min_prio: PRIO_WARN } } }
data_sources { config { name: "linux.system_info" } }
"""
FTRACE = HEAPS + """
data_sources { config { name: "linux.ftrace" ftrace_config {
  ftrace_events: "sched/sched_switch" ftrace_events: "sched_process_exec" ftrace_events: "syscalls/sys_enter_openat" ftrace_events: "no/such_event"
  atrace_categories: "dalvik" } } }
"""
# A file system of the kernel's tracer, for this process and its children alone.
IN_TRACEFS = ["unshare", "-m", "sh", "-c", 'mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"', "sh"]
# As in a service with ProtectKernelTunables, without ReadWritePaths and with it.
READ_ONLY = "mount -t tracefs tracefs /sys/kernel/tracing && {}mount -o remount,bind,ro /sys/kernel/tracing && exec \"$@\""
IN_READ_ONLY_TRACEFS = ["unshare", "-m", "sh", "-c", READ_ONLY.format(""), "sh"]
IN_UNIT = ["unshare", "-m", "sh", "-c",
           READ_ONLY.format("mount --bind /sys/kernel/tracing/instances /sys/kernel/tracing/instances && "), "sh"]


def has_tracefs():
    return os.geteuid() == 0 and subprocess.run([*IN_TRACEFS, "test", "-d", "/sys/kernel/tracing/instances"],
                                                capture_output=True).returncode == 0


class DataSources(ServiceTest):
    def record_text(self, text, *, user=None, prefix=()):
        file = tempfile.NamedTemporaryFile("w", prefix="hpd_config")
        self.addCleanup(file.close)
        file.write(text)
        file.flush()
        os.chmod(file.name, 0o644)
        recording = Recording(self.place, [], user=user, command=["true"])
        recording.process.communicate()
        recording.process = subprocess.Popen(
            [*prefix, HEAP_PROFILE, "record", "-c", file.name, "-o", recording.directory], text=True, user=user,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **self.place.env})
        return recording

    def one_round(self, recording):
        """Until a patient has allocated."""
        recording.wait_active()
        patient = self.patient().wait_ready()
        patient.tell("a")
        return patient

    def test_processes_and_counters_of_the_machine_are_recorded(self):
        self.place.start()
        recording = self.record_text(COMBINED)
        patient = self.one_round(recording)
        path = os.path.join(recording.directory, "raw-trace")
        size = os.stat(path).st_size
        wait_for(lambda: os.stat(path).st_size > size, "no counters arrive")
        recording.finish()
        self.assertEqual(recording.exit_code, 0, recording.stderr)
        # Another program of this name may have run elsewhere on the machine.
        self.assertEqual([p.pid for p in recording.pprofs].count(patient.pid), 1)
        named = {p.pid: p for packet in recording.trace.packet for p in packet.process_tree.processes}
        self.assertIn("patient", named[patient.pid].cmdline[0])
        self.assertEqual(named[os.getpid()].ppid, os.getppid())
        threads = {t.tid: t for packet in recording.trace.packet for t in packet.process_tree.threads}
        self.assertEqual(threads[os.getpid()].tgid, os.getpid())
        rss = [p.vm_rss_kb for packet in recording.trace.packet for p in packet.process_stats.processes
               if p.pid == os.getpid() and p.vm_hwm_kb]
        self.assertGreater(min(rss), 1000)
        totals = {c.value for packet in recording.trace.packet for c in packet.sys_stats.meminfo}
        with open("/proc/meminfo") as meminfo:
            self.assertEqual(totals, {int(meminfo.readline().split()[1])})
        cpus = {c.cpu_id for packet in recording.trace.packet for c in packet.sys_stats.cpu_stat}
        self.assertEqual(cpus, set(range(os.cpu_count())))

    def test_what_is_left_out_is_named_and_kept(self):
        self.place.start()
        recording = self.record_text(COMBINED).wait_active().finish()
        self.assertIn('data source "android.log" is not recorded', recording.stderr)
        self.assertIn('data source "linux.system_info" is not recorded', recording.stderr)
        kept = config_pb2.TraceConfig()
        kept.ParseFromString(next(p.trace_config for p in recording.trace.packet if p.HasField("trace_config")))
        names = {source.config.name for source in kept.data_sources}
        self.assertEqual(names, {"android.heapprofd", "linux.process_stats", "linux.sys_stats", "android.log",
                                 "linux.system_info"})
        self.assertEqual(kept.buffers[0].size_kb, 63488)

    @unittest.skipUnless(has_tracefs(), "no tracefs can be mounted here")
    def test_events_of_the_kernel_are_recorded_and_nothing_stays_behind(self):
        recording = self.record_text(FTRACE, prefix=IN_TRACEFS)
        recording.wait_active()
        subprocess.run(["/bin/cat", "/proc/self/comm"], stdout=subprocess.DEVNULL, check=True)
        recording.finish()
        self.assertIn('cannot record event "no/such_event"', recording.stderr)
        self.assertIn("atrace_categories", recording.stderr)
        events = [event for packet in recording.trace.packet for event in packet.ftrace_events.event]
        switches = [event for event in events if event.HasField("sched_switch")]
        self.assertTrue(switches)
        self.assertIn("/bin/cat", {event.sched_process_exec.filename for event in events})
        times = [event.timestamp for event in switches]
        begin = min(packet.timestamp for packet in recording.trace.packet if packet.timestamp)
        self.assertGreater(min(times), begin - 10**10)  # the same clock
        opened = [event for event in events if event.generic.event_name == "sys_enter_openat"]
        self.assertIn("filename", {field.name for field in opened[0].generic.field})
        left = subprocess.run([*IN_TRACEFS, "ls", "/sys/kernel/tracing/instances"], capture_output=True, text=True)
        self.assertNotIn("heapprofd-", left.stdout)

    @unittest.skipUnless(has_tracefs(), "no tracefs can be mounted here")
    def test_events_are_recorded_where_only_the_instances_may_be_changed(self):
        for command, is_recorded in ((IN_UNIT, True), (IN_READ_ONLY_TRACEFS, False)):
            with self.subTest(is_recorded=is_recorded):
                recording = self.record_text(FTRACE, prefix=command)
                recording.wait_active()
                subprocess.run(["/bin/cat", "/proc/self/comm"], stdout=subprocess.DEVNULL, check=True)
                recording.finish()
                events = [event for packet in recording.trace.packet for event in packet.ftrace_events.event]
                self.assertEqual(bool(events), is_recorded, recording.stderr)
                self.assertEqual("ReadWritePaths=-/sys/kernel/tracing/instances" in recording.stderr, not is_recorded)

    @unittest.skipUnless(os.geteuid() == 0, "another user is needed")
    def test_who_may_not_trace_the_kernel_is_told_so_and_recorded_otherwise(self):
        self.place.start(user=NOBODY)
        recording = self.record_text(FTRACE, user=NOBODY).wait_active().finish()
        self.assertIn('data source "linux.ftrace": cannot', recording.stderr)
        self.assertIn(recording.exit_code, (0, 4), recording.stderr)


if __name__ == "__main__":
    unittest.main()
