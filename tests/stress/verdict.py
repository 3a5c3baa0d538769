"""What a stress test found: problems are shown when they are found, and counted."""

import time


class Verdict:
    def __init__(self):
        self.problems = []

    def check(self, what, is_good):
        if not is_good:
            self.problems.append(what)
            print(f"  PROBLEM: {what}", flush=True)

    def run(self, name, work):
        """One kind of test: a line with its figures, if it returns any, and how long it took."""
        begin = time.monotonic()
        figures = work()
        print(f"{name}: {figures + '; ' if figures else ''}done in {time.monotonic() - begin:.0f} s", flush=True)

    def end(self):
        """The exit code."""
        print(f"{len(self.problems)} problems")
        return 1 if self.problems else 0
