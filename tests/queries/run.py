#!/usr/bin/python3
"""Query tests: the trace in.textproto, asked q.sql, must answer want.csv.

usage: run.py [--update] [TOPIC...]

A topic is a folder beside this file. in.textproto is a Trace (proto/trace.proto); a
topic may have several traces in*.textproto, which are queried together in the order of
their names. --update writes what comes out to want.csv instead of comparing it: read the
difference before you commit it. HEAP_PROFILE names the binary; PYTHONPATH has the classes
of proto/ (the build makes them in tests/e2e/proto).
"""

import argparse
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import text_format

import trace_pb2

HERE = pathlib.Path(__file__).resolve().parent


def encode(textproto, directory):
    """The path of a binary trace made from a text one."""
    trace = text_format.Parse(textproto.read_text(), trace_pb2.Trace())
    path = pathlib.Path(directory) / (textproto.stem + ".pb")
    path.write_bytes(trace.SerializeToString())
    return str(path)


def answer(topic, binary):
    """What the binary prints for a topic; errors of queries are part of it."""
    with tempfile.TemporaryDirectory() as directory:
        traces = [encode(path, directory) for path in sorted(topic.glob("in*.textproto"))]
        run = subprocess.run([binary, "query", "--csv", "-q", str(topic / "q.sql"), *traces],
                             capture_output=True, timeout=60, check=False)
    text = run.stdout.decode()
    if run.returncode != 0:
        text += f"exit code {run.returncode}: {run.stderr.decode().splitlines()[-1]}\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write want.csv")
    parser.add_argument("topics", nargs="*")
    arguments = parser.parse_args()
    binary = os.environ["HEAP_PROFILE"]
    topics = [HERE / name for name in arguments.topics] or sorted(p.parent for p in HERE.glob("*/q.sql"))
    failed = []
    for topic in topics:
        got = answer(topic, binary)
        path = topic / "want.csv"
        want = path.read_text() if path.exists() else ""
        if got == want:
            continue
        failed.append(topic.name)
        sys.stdout.writelines(difflib.unified_diff(
            want.splitlines(True), got.splitlines(True), f"{topic.name}/want.csv", "got"))
        if arguments.update:
            path.write_text(got)
    verb = "updated" if arguments.update else "failed"
    print(f"{len(topics)} topics, {len(failed)} {verb} {' '.join(failed)}")
    return 1 if failed and not arguments.update else 0


if __name__ == "__main__":
    sys.exit(main())
