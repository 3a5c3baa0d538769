"""Objects of known sizes under a label each; prints what must be live at the end."""

import itertools
import json
import os
import sys

import pymem_heap

pymem_heap.push("part", "texts")
texts = [bytes(1000) for _ in range(5000)]
pymem_heap.pop()

pymem_heap.push("part", "large")
large = bytearray(3_000_000)
pymem_heap.pop()

rounds = itertools.repeat(None, 1000)
pymem_heap.push("part", "temporary")
for _ in rounds:
    bytes(2000)
pymem_heap.pop()

answer = {"texts": sum(sys.getsizeof(text) for text in texts), "large": 3_000_001}
print(json.dumps(answer), flush=True)
os._exit(0)  # with everything alive
