"""Tests with a directory of their own, and those of one recording."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from profile_run import HEAP_PROFILE, program


class WithDirectory(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = tempfile.mkdtemp(prefix=type(self).__module__ + "_")
        self.addCleanup(shutil.rmtree, self.directory)

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)


class WithRecording(unittest.TestCase):
    """`trace` is one of known_stacks, which has printed `printed`; all tests of a class have it and the directory."""

    OPTIONS = ("--no-report",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix=cls.__module__ + "_"))
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.trace = cls.directory / "out" / "raw-trace"
        cls.printed = subprocess.run([HEAP_PROFILE, "-q", "-i", "1", *cls.OPTIONS, "-o", cls.trace.parent, "--", program("known_stacks")],
                                     capture_output=True, check=True).stdout
