"""A package with a higher version, in the place of its next one."""

import os
import re
import subprocess
import tempfile


def make_newer(deb, to, change=lambda tree: None):
    """`change` gets the folder with its files."""
    with tempfile.TemporaryDirectory() as directory:
        tree = os.path.join(directory, "tree")
        subprocess.run(["dpkg-deb", "-R", deb, tree], check=True)
        control = os.path.join(tree, "DEBIAN", "control")
        with open(control) as file:
            text = re.sub(r"(^Version: |\(= )([0-9.]+)", r"\g<1>\g<2>+next", file.read(), flags=re.MULTILINE)
        with open(control, "w") as file:
            file.write(text)
        change(tree)
        # Not for long: gzip, as what is compressed better takes its time.
        subprocess.run(["dpkg-deb", "-Zgzip", "-z1", "--root-owner-group", "-b", tree, to], check=True, capture_output=True)
