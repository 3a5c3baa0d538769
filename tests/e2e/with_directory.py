"""A test with a directory of its own."""

import os
import shutil
import tempfile
import unittest


class WithDirectory(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix=type(self).__module__ + "_")
        self.addCleanup(shutil.rmtree, self.directory)

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)
