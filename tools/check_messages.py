#!/usr/bin/env python3
"""Fails when a message that a user may see has no test that provokes it.

A message is a statement in src/ with a literal that says "cannot", or that says what to do ("...; raise --interval").
A test provokes it when one of its own literals has three words in a row that no other message has; of a message without
such words (short ones, and those that are said at several places) any three words, or all it has. What no test can
provoke stands in messages_without_test.txt, below the reason; a line there that is no longer needed fails, too.

The two pages about messages are held true as well: docs/messages.md lists them all and is written by --write, and
docs/troubleshooting.md explains those that there are.

    check_messages.py ROOT            checks
    check_messages.py --write ROOT    writes docs/messages.md
"""

import ast
import collections
import io
import pathlib
import re
import sys
import textwrap
import tokenize

RUN = 3  # words
EXCEPTIONS = "tools/messages_without_test.txt"
LIST = "docs/messages.md"
EXPLANATIONS = "docs/troubleshooting.md"
# By the beginnings of paths; the first that fits is taken. With what its messages have in common.
TOPICS = [
    ("src/cli/record", "Recording, at the command line",
     "A command line that cannot be understood ends heap_profile with exit code 2 before anything was started. What begins "
     "with a small letter is a reason in brackets, or the rest of a line that a name begins. `note:` tells of something that "
     "is missing in the results beside the trace, which is complete."),
    ("src/cli/results", "What is said of a recording",
     "Lines of a summary: `!` begins those that tell how far its figures can be trusted, and a process that reported nothing "
     "has its reason behind its name. [Quality of a recording](troubleshooting.md#quality-of-a-recording) explains those that are met "
     "most; `heap_profile stats --json` has the counts behind them."),
    ("src/cli/convert src/trace src/export", "Converting and writing files",
     "The input stays as it was, and an output that could not be finished is not left under its name."),
    ("src/cli/query src/query", "Queries",
     "What SQLite says itself (`no such column: ...`, `near \"selec\": syntax error`) follows as it is. [sql.md](sql.md) has all tables."),
    ("src/cli/device", "Android devices",
     "`adb`'s own words are quoted. A recording goes on when the connection ends: the trace is then on the device, and the message "
     "says how to fetch it ([android.md](android.md))."),
    ("src/cli/hprof src/cli/managed src/hprof src/hotspot src/object_graph", "Java",
     "A virtual machine is asked as its own `jcmd` asks it, so most reasons are those for which `jcmd PID` would fail, too. "
     "A dump that ends early or is damaged is read as far as it goes ([hprof.md](hprof.md))."),
    ("src/cli/inspect src/cli/report src/report src/import", "Files that are looked at",
     "Files may come from anywhere, and their formats are told by their contents. A trace is read up to the first place "
     "that makes no sense, and a warning says how much that was; nothing behind it is guessed."),
    ("src/config src/sources", "Configurations and data sources",
     "A configuration is refused as a whole before anything is recorded. A data source that this machine or this user cannot "
     "have is left out with its reason, and the others are recorded."),
    ("src/symbolize src/jit", "Names",
     "Without a name a function is shown as its file and address, and its bytes are counted all the same: "
     "`traceconv symbolize` finds names later, on another machine, too ([traceconv.md](traceconv.md))."),
    ("src/attach src/unwind", "Attaching to processes",
     "`cannot attach to process ...` begins the line, and what stands here without `cannot` is its reason. The process goes on "
     "as before: what had been put into it was taken out again, or does nothing. `heap_profile doctor -p PID` says "
     "beforehand what would be in the way ([troubleshooting.md](troubleshooting.md))."),
    ("src/service", "The service",
     "heapprofd's answers to commands, and its own journal. A command that it refuses changes no other recording; bounds are "
     "per user ([design/security.md](design/security.md))."),
    ("src/engine src/record", "While it records",
     "Some process, or some of its memory, could not be recorded; the others go on, and what was recorded before stays in the trace."),
    ("src/cli", "Command lines", "The exit code is 2 where the command line is to blame, and 1 where the machine is."),
    ("src", "Everything else",
     "Helpers that all of this is made of: files, memory, processes, the page's server. What they could not do stands in front of their reason."),
]
Message = collections.namedtuple("Message", "path line text")

TOKEN = re.compile(r"""
    (?P<skip>//[^\n]*|/\*.*?\*/|^[ \t]*\#[^\n]*|\s+)
  | R"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)"
  | "(?P<string>(?:[^"\\\n]|\\.)*)"
  | (?P<other>'(?:[^'\\\n]|\\.)+'|[A-Za-z_]\w*|.)
""", re.DOTALL | re.MULTILINE | re.VERBOSE)
ESCAPES = {r"\n": "\n", r"\"": '"', r"\\": "\\", r"\t": "\t"}
FORMAT = r"%[\d.*]*(?:ll|l|z)?[sdufgx]\b"  # of printf
NO_MESSAGE = "# No message"  # begins the reason of what only looks like one
VALUE = " <...> "  # what stands between the literals of a message


def statements_of(source):
    """Yields line and text of each C++ statement with literals."""
    line, literals, joined = 0, [], False
    for token in TOKEN.finditer(source):
        literal = token["string"] if token["raw"] is None else token["raw"]
        if literal is not None:
            literal = re.sub(r"\\.", lambda escape: ESCAPES.get(escape[0], " "), literal)
            if joined:
                literals[-1] += literal
            else:
                literals.append(literal)
            line, joined = line or source.count("\n", 0, token.start()) + 1, True
        elif token["other"]:
            joined = False
            if token["other"] in ";{}" and literals:
                yield line, VALUE.join(literals)
                line, literals = 0, []


def is_test(path):
    return re.search(r"_test\.(cc|py)$|_fuzz\.cc$|/test_\w+\.(h|cc)$", str(path)) is not None


def is_message(text):
    """Help texts are sentences, which end with a full stop; messages do not."""
    return any(re.search(r"\bcannot\b|; [a-z-]", literal) and not literal.rstrip().endswith(".")
               for literal in text.split(VALUE))


def texts_of(root):
    """All that our programs can say, as if each statement were a message."""
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in {".cc", ".h"} and not is_test(path):
            for line, text in statements_of(path.read_text()):
                yield Message(path.relative_to(root), line, text)


def without_names(text):
    """Single words in front are names that something is compared with."""
    literals = text.split(VALUE)
    while literals and " " not in literals[0].strip():
        del literals[0]
    return " ".join(VALUE.join(literals).split())


def messages_of(root):
    for path, line, text in texts_of(root):
        if is_message(text) and without_names(text):
            yield Message(path, line, without_names(text))


def python_literals(source):
    """Literals that stand side by side are one; the fields of an f-string are left open."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            yield VALUE.join(part.value for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
            yield node.value if isinstance(node.value, str) else node.value.decode(errors="replace")


def test_literals(root):
    for path in sorted((root / "src").rglob("*_test.cc")):
        for _, text in statements_of(path.read_text()):
            yield text
    for folder in ("tests", "tools"):
        for path in sorted((root / folder).rglob("*.py")):
            if path.name != "check_messages_test.py":
                yield from python_literals(path.read_text())


def runs_of(text):
    """The runs of words in a message or in what a test expects, which may be a regular expression."""
    text = re.sub(r"\\[dwsb][+*?]*|\[[^\]]*\][+*?]*|\.[+*]\??|<\.\.\.>|" + FORMAT, ";", text).replace("\\", "")
    runs = []
    for part in re.split(r'[:;,"()|?]', text):
        words = re.findall(r"[\w'/=.!-]*\w", part)
        runs += [" ".join(words[at:at + RUN]) for at in range(max(1, len(words) - RUN + 1)) if words]
    whole = [run for run in runs if run.count(" ") == RUN - 1]
    return set(whole or runs)


def untested(messages, literals):
    said = collections.Counter()
    for text in {message.text for message in messages}:
        said.update(runs_of(text))
    expected, texts = set(), []
    for literal in literals:
        expected |= runs_of(literal)
        texts.append(" ".join(literal.split()))
    everything = "\n".join(texts)
    for message in messages:
        own = runs_of(message.text)
        telling = {run for run in own if said[run] == 1 and " " in run} or own
        if expected.isdisjoint(telling) and not any(run.count(" ") < RUN - 1 and run in everything for run in telling):
            yield message


def exceptions_of(text):
    """Reason and message; a reason is a comment, and what stands below none is no exception."""
    reason = ""
    for line in text.splitlines():
        if line.startswith("#"):
            reason = line
        elif not line.strip():
            reason = ""
        elif reason:
            yield reason, line.strip()


def no_messages(root):
    return [line for reason, line in exceptions_of((root / EXCEPTIONS).read_text()) if reason.startswith(NO_MESSAGE)]


def topic_of(path):
    return next(title for places, title, _ in TOPICS if any(str(path).startswith(place) for place in places.split()))


def shown(text):
    text = re.sub(FORMAT, "<...>", text.removeprefix("heap_profile: ")).replace("`", "'")
    return re.sub(r" ([:;,)?])", r"\1", text).replace("( ", "(").rstrip(" :")


def is_bare(text):
    """What was tried, without a reason."""
    return re.fullmatch(r"cannot [^:;]*", text) is not None


def list_of(messages, exceptions):
    """The page with all messages; what is no message is not on it."""
    page = ("# All messages\n\nMessages say what cannot be done, why, and what to do. `<...>` stands for what a program puts in, or for\n"
            "one of several endings. [troubleshooting.md](troubleshooting.md) explains those that are met most. This page is\n"
            "written by `tools/check_messages.py --write .`.\n")
    for _, title, about in TOPICS:
        texts = {shown(message.text) for message in messages
                 if topic_of(message.path) == title and not any(word in message.text for word in exceptions)}
        bare = sorted(text for text in texts if is_bare(text))
        if texts:
            page += f"\n## {title}\n\n{textwrap.fill(about, 120, break_on_hyphens=False)}\n\n"
            page += "".join(f"- `{text}`\n" for text in sorted(texts.difference(bare)))
        if bare:
            page += "- in few words, before what it is about and, where the system refused it, the system's own reason: " + ", ".join(f"`{text} ...`" for text in bare) + "\n"
    return page


def said_by_nobody(page, texts):
    """What the page explains and nobody says: the first column of its tables, with ... for what is put in."""
    for quoted in re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE):
        parts = [part.strip(" :;") for part in quoted.split("...")]
        if not any(all(part in text for part in parts) for _, _, text in texts):
            yield quoted


def problems_of_pages(root, messages):
    if (root / LIST).read_text() != list_of(messages, no_messages(root)):
        yield f"{LIST}: not as the sources are; tools/check_messages.py --write . writes it"
    for quoted in said_by_nobody((root / EXPLANATIONS).read_text(), list(texts_of(root))):
        yield f"{EXPLANATIONS}: nobody says: {quoted}"


def problems_of(root):
    messages = list(messages_of(root))
    missing = list(untested(messages, test_literals(root)))
    exceptions = list(exceptions_of((root / EXCEPTIONS).read_text()))
    for message in missing:
        if not any(exception in message.text for _, exception in exceptions):
            yield f"{message.path}:{message.line}: no test provokes: {message.text}"
    for reason, exception in exceptions:
        if not any(exception in message.text for message in (messages if reason.startswith(NO_MESSAGE) else missing)):
            yield f"{EXCEPTIONS}: not needed: {exception}"
    yield from problems_of_pages(root, messages)


def main():
    root = pathlib.Path(sys.argv[-1])
    if sys.argv[1] == "--write":
        (root / LIST).write_text(list_of(list(messages_of(root)), no_messages(root)))
        return 0
    problems = list(problems_of(root))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
