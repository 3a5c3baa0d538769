"""The systemd units give root's service what it needs and say why."""

import os
import re
import shutil
import subprocess
import unittest

from running_process import MAY_ATTACH
from service_test import ServiceTest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
UNIT = os.path.join(ROOT, "packaging/systemd/system/heapprofd.service")
# linux/capability.h
CAPABILITIES = {"DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "FOWNER": 3, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8,
                "IPC_LOCK": 14, "SYS_PTRACE": 19, "SYS_ADMIN": 21, "SYS_NICE": 23, "SYS_RESOURCE": 24, "PERFMON": 38}
# What systemd makes seccomp filters of (systemd.exec(5)), besides what implies one of these.
FILTERS = ("SystemCallFilter", "SystemCallArchitectures", "SystemCallLog", "RestrictAddressFamilies", "RestrictNamespaces",
           "RestrictRealtime", "RestrictSUIDSGID", "MemoryDenyWriteExecute", "LockPersonality", "PrivateDevices", "ProtectClock",
           "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules", "ProtectKernelTunables", "DynamicUser")


def setting(name):
    with open(UNIT) as unit:
        return next(line.split("=", 1)[1].split() for line in unit if line.startswith(name + "="))


class Units(ServiceTest):
    @unittest.skipUnless(MAY_ATTACH, "needs root's service")
    def test_without_systemd_the_same_capabilities_are_kept(self):
        kept = sum(1 << CAPABILITIES[name.removeprefix("CAP_")] for name in setting("CapabilityBoundingSet"))
        self.place.start()
        with open(f"/proc/{self.place.service.pid}/status") as status:
            fields = dict(line.split(":\t") for line in status)
        with open("/proc/self/status") as status:
            possible = int(next(line.split()[1] for line in status if line.startswith("CapBnd")), 16)
        self.assertEqual(int(fields["CapPrm"], 16), kept & possible)
        self.assertEqual(int(fields["CapBnd"], 16), kept & possible)
        self.assertEqual(fields["NoNewPrivs"].strip(), "1")

    def test_no_seccomp_filter_is_in_force(self):
        """From under one nobody may attach to programs that have one, as those in containers do."""
        with open(UNIT) as unit:
            names = {line.split("=", 1)[0] for line in unit}
        self.assertEqual(names.intersection(FILTERS), set())

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
    def test_every_exposure_has_its_reason(self):
        report = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", UNIT],
                                capture_output=True, text=True, check=False).stdout
        exposures = re.findall(r"✗ (\S+)", report)
        self.assertGreater(len(exposures), 10, report)
        with open(os.path.join(ROOT, "docs/design/security.md")) as page:
            text = page.read()
        for exposure in exposures:
            self.assertIn(f"`{exposure}`", text)


if __name__ == "__main__":
    unittest.main()
