"""Kernel probes on functions that root's recording has hooked, in all orders: who sets them need not know of us."""

import os
import random
import tempfile

from attack_tools import Figure, Impossible, attack
from profile_run import PROGRAMS

KINDS = {"libc": None, "marker": "libbegins_1.so", "no-operation": "libbegins_2.so", "jump": "libbegins_3.so"}
QUICK_ORDERS = [".p.u.P.U.", ".puUP.", ".pfufU.P."]


def random_order(generator, length):
    """Attaching, probes and return probes come and go; what is on at the end is taken off."""
    text, is_on = "", {"p": False, "u": False, "r": False}
    for _ in range(length):
        letter = generator.choice("pppur")
        text += letter.upper() if is_on[letter] else letter
        is_on[letter] = not is_on[letter]
        text += "." if generator.random() < 0.5 else ""
    return text + "".join(letter.upper() for letter in "pur" if is_on[letter]) + "."


class Tally:
    def __init__(self, engine, directory, rounds):
        self.engine, self.directory, self.rounds = engine, directory, rounds
        self.orders = self.cycles = self.calls = self.deaths = self.changed = 0
        self.faults = []

    def perform(self, text, threads, kind):
        from probe_orders import Order, Probed, changed_code_bytes
        preload = os.path.join(PROGRAMS, KINDS[kind]) if KINDS[kind] else None
        probed = Probed(threads, preload)
        order = Order(self.engine, probed, self.directory, self.rounds)
        self.faults += [f"{kind}, {threads} threads: {fault}" for fault in order.perform(text)]
        is_alive = probed.process.poll() is None
        self.changed += changed_code_bytes(probed.pid) if is_alive else 0
        self.deaths += not is_alive or probed.quit() != 21
        probed.kill()
        self.orders += 1
        self.cycles += text.count("p")
        self.calls += order.calls

    def figures(self):
        for fault in self.faults[:20]:
            print("   ", fault, flush=True)
        return [Figure("orders of attaching and probing", self.orders, "", floor=1),
                Figure("attached and detached", self.cycles, ""),
                Figure("calls", self.calls, ""),
                Figure("programs that died", self.deaths, "", 0),
                Figure("orders in which a count was wrong", len(self.faults), "", 0),
                Figure("bytes of code that stayed changed", self.changed, "", 0)]


@attack("kernel-probes", "", 1800)
def kernel_probes(is_quick):
    """uprobes on every hooked function, on entry and on return, before, while and after it is hooked."""
    # Not before: what these import runs the product, which is where it belongs in here only.
    from probe_orders import ORDERS, may_probe
    from running_process import Engine
    if not may_probe():
        raise Impossible("the kernel has no uprobes, or they are not allowed")
    generator = random.Random(1)
    with tempfile.TemporaryDirectory() as directory, Engine() as engine:
        tally = Tally(engine, directory, 20 if is_quick else 300)
        for kind in ["libc"] if is_quick else KINDS:
            for text in QUICK_ORDERS if is_quick else ORDERS:
                for threads in [1] if is_quick else [1, 4]:
                    tally.perform(text, threads, kind)
        cycles = int(os.environ.get("PROBE_CYCLES", "1000"))
        while not is_quick and tally.cycles < cycles:
            tally.perform(random_order(generator, 100), generator.choice([1, 4]), generator.choice(list(KINDS)))
        return tally.figures()
