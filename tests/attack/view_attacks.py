"""The page that heap_profile view serves on 127.0.0.1, where every user of the machine can connect."""

import contextlib
import http.client
import os
import socket
import subprocess
import time
import urllib.parse

from attack_tools import ALICE, MALLORY, Child, Figure, attack, folder_of, patience, start_as
from profile_run import HEAP_PROFILE

PAGE_LIMIT_S = 0.6  # a browser that finds the kernel's queue full tries again after a second
FLOODERS = 4


def flood(port, keeps, tell):
    """Connects as fast as it can, and keeps as many open."""
    kept, count = [], 0
    told = time.monotonic()
    while True:
        connection = socket.socket()
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.connect(("127.0.0.1", port))
        kept.append(connection)
        count += 1
        if len(kept) > keeps:
            kept.pop(0).close()
        if time.monotonic() - told > 0.5:
            tell(count)
            told = time.monotonic()


def seconds_for(url):
    begin = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=patience(PAGE_LIMIT_S))
    connection.request("GET", url.path)
    answer = connection.getresponse()
    assert answer.status == 200 and answer.read(), answer.status
    return time.monotonic() - begin


def try_for(url):
    """As a browser, which asks again when its connection is closed; (seconds, how often it was)."""
    begin, closed = time.monotonic(), 0
    while True:
        try:
            seconds_for(url)
            return time.monotonic() - begin, closed
        except (ConnectionError, TimeoutError):
            closed += 1
            if time.monotonic() - begin > patience(PAGE_LIMIT_S):
                return patience(PAGE_LIMIT_S), closed


@attack("view-flood", "", 120)
def view_flood(is_quick):
    """Mallory, without the token, connects to alice's page as fast as possible, closing at once and keeping many open."""
    folder = folder_of(ALICE)
    with open(f"{folder}/folded", "w") as file:
        file.write("main;f 5\n")
    server = start_as(ALICE, [HEAP_PROFILE, "view", "--no-open", f"{folder}/folded"], stdout=subprocess.PIPE, text=True,
                      stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]})
    url = urllib.parse.urlsplit(server.stdout.readline().strip())
    waits, closed, connections = [], 0, 0
    for keeps in (0, 200):
        children = [Child(MALLORY, lambda tell, keeps=keeps: flood(url.port, keeps, tell)) for _ in range(FLOODERS)]
        assert all(child.next(20) for child in children)
        for _ in range(5 if is_quick else 30):
            wait, times = try_for(url)
            waits.append(wait)
            closed += times
        connections += sum(child.next(20) or 0 for child in children)
        for child in children:
            child.kill()
    server.kill()
    server.wait()
    return [Figure("the slowest page", max(waits), "s", PAGE_LIMIT_S, seen_up_to=patience(PAGE_LIMIT_S)),
            Figure("half of the pages", sorted(waits)[len(waits) // 2], "s"),
            Figure("times that alice's connection was closed", closed, "", 0),
            Figure("connections of mallory's", connections, "", floor=1000)]
