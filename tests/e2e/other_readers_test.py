"""What heap_profile exports, read by programs that others wrote: the importer of speedscope and pprof-format, both from npm."""

import base64
import hashlib
import json
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest

from browser import CHROMIUM, Browser, Page
from profile_run import HEAP_PROFILE
from with_directory import WithRecording

# Name, version and hash of what npm delivers. Nothing of it is run by installing it.
PACKAGES = {
    "speedscope": ("1.25.0", "sha512-cpf9HWTZf1ijLXBJrk87Ve/54tnYx6rlf0gUThvn3ook6h63hLXVOQiMf44PT+XoV503cPfvfiT5gP5vojp6Ag=="),
    "pprof-format": ("2.3.2", "sha512-fcMM+sgKMOveSurz7i0BMHfy1hHNnI9+VWjd4kdclqQjSTuiHWaP69DGwvkw3zcLkM/F76LhVIKvPyrxmp6iiw=="),
}
VIEWS = {"space": "sum(size)", "objects": "sum(count)", "alloc_space": "sum(max(size, 0))", "alloc_objects": "sum(max(count, 0))"}
PPROF_TOTALS = """
const { Profile } = require(process.argv[1]);
const profile = Profile.decode(require("zlib").gunzipSync(require("fs").readFileSync(process.argv[2])));
const totals = {};
profile.sampleType.forEach(({ type }, i) => {
  const sum = profile.sample.reduce((all, { value }) => all + BigInt(value[i]), 0n);
  totals[profile.stringTable.strings[Number(type)]] = String(sum);
});
const functions = profile.function.map(({ name }) => profile.stringTable.strings[Number(name)]);
console.log(JSON.stringify({ totals, functions }));
"""


def unpacked(directory, name):
    """A package's folder. Where npm has no way to it, the test is skipped and says what npm said."""
    if not shutil.which("npm"):
        raise unittest.SkipTest("no npm here")
    version, integrity = PACKAGES[name]
    try:
        done = subprocess.run(["npm", "pack", "--json", "--prefer-offline", f"{name}@{version}"], cwd=directory, capture_output=True, text=True,
                              timeout=120, check=False)
    except subprocess.TimeoutExpired:
        raise unittest.SkipTest(f"npm does not deliver {name} within two minutes") from None
    if done.returncode != 0:
        raise unittest.SkipTest(f"npm does not deliver {name}: {done.stderr[-300:]}")
    archive = directory / json.loads(done.stdout)[0]["filename"]
    found = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    assert found == integrity, f"{archive} is another one: {found}"
    folder = directory / name
    with tarfile.open(archive) as tar:
        tar.extractall(folder)  # it is what the hash says
    return folder / "package"


class OtherReaders(WithRecording):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        query = f"SELECT {', '.join(VIEWS.values())} FROM heap_profile_allocation"
        done = subprocess.run([HEAP_PROFILE, "query", "--json", cls.trace, query], capture_output=True, text=True, check=True)
        (row,) = json.loads(done.stdout)
        cls.totals = {view: row[column] for view, column in VIEWS.items()}
        assert all(cls.totals.values()), cls.totals

    def export(self, kind, view="space"):
        file = self.directory / f"{view}.{'pb.gz' if kind == 'pprof' else kind + '.json'}"
        subprocess.run([HEAP_PROFILE, "export", "--format", kind, "--view", view, "-o", file, self.trace], check=True)
        return file

    def folded(self, view):
        """Bytes or objects by stack, as heap_profile export itself has them."""
        done = subprocess.run([HEAP_PROFILE, "export", "--format", "folded", "--view", view, self.trace], capture_output=True, text=True,
                              check=True)
        return {stack: int(value) for stack, value in (line.rsplit(" ", 1) for line in done.stdout.splitlines())}

    def test_pprof_format_reads_all_four_totals(self):
        folder = unpacked(self.directory, "pprof-format")
        if not shutil.which("node"):
            self.skipTest("no node here")
        done = subprocess.run(["node", "-e", PPROF_TOTALS, folder / "dist" / "commonjs" / "index.js", self.export("pprof")], capture_output=True, text=True, timeout=120,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        read = json.loads(done.stdout)
        self.assertEqual({view: int(total) for view, total in read["totals"].items()}, self.totals)
        self.assertIn("main", read["functions"])

    @unittest.skipUnless(CHROMIUM, "no chromium here")
    def test_speedscope_imports_every_stack_to_the_byte(self):
        release = unpacked(self.directory, "speedscope") / "dist" / "release"
        browser = Browser()
        self.addCleanup(browser.close)
        for kind, view in [("speedscope", view) for view in VIEWS] + [("pprof", "space")]:
            with self.subTest(kind=kind, view=view):
                read = self.through_speedscope(browser, release, self.export(kind, view))
                self.assertEqual(sum(read.values()), self.totals[view])
                if kind == "speedscope":  # pprof profiles have the allocation functions, too
                    self.assertEqual(read, self.folded(view))

    def through_speedscope(self, browser, release, file):
        """What it has imported, by stack, as its own export tells it."""
        # As the command of the package hands over a file.
        handed = file.with_suffix(".js")
        data = base64.b64encode(file.read_bytes()).decode()
        handed.write_text(f"speedscope.loadFileFromBase64({json.dumps(file.name)}, {json.dumps(data)})")
        page = Page(browser)
        page.call("Page.navigate", url=f"file://{release}/index.html#localProfilePath={handed}")
        page.wait("document.body?.textContent.includes('Export')")
        directory = pathlib.Path(tempfile.mkdtemp(dir=self.directory))
        page.download_to(directory)
        page.evaluate("[...document.querySelectorAll('div')].filter((one) => /Export$/.test(one.textContent)).pop().click()")
        saved = json.loads(page.downloaded(directory).read_text())
        self.assertEqual([url for url in page.requests if not url.startswith(("file:", "blob:", "data:"))], [])
        page.close()
        (profile,) = saved["profiles"]
        self.assertEqual(profile["startValue"], 0)
        names = [frame["name"] for frame in saved["shared"]["frames"]]
        stacks, stack, begin = {}, [], 0
        for event in profile["events"]:
            if event["at"] > begin:
                key = ";".join(stack)
                stacks[key] = stacks.get(key, 0) + event["at"] - begin
                begin = event["at"]
            if event["type"] == "O":
                stack.append(names[event["frame"]])
            else:
                self.assertEqual(stack.pop(), names[event["frame"]])
        self.assertEqual(begin, profile["endValue"])
        return stacks


if __name__ == "__main__":
    unittest.main()
