"""Makes small hprof files, with ids of either size, as Android and as HotSpot write them."""

import struct

HEAD_RECORDS = (0x01, 0x02, 0x04, 0x05)


class Dump:
    def __init__(self, version="1.0.3", id_bytes=4):
        self.id_bytes = id_bytes
        self.bytes = b"JAVA PROFILE " + version.encode() + b"\0" + struct.pack(">IQ", id_bytes, 1_700_000_000_000)

    def id(self, number):
        return struct.pack(">I" if self.id_bytes == 4 else ">Q", number)

    def record(self, tag, body):
        self.bytes += struct.pack(">BII", tag, 0, len(body)) + body
        return self

    def string(self, number, text):
        return self.record(0x01, self.id(number) + text.encode())

    def load_class(self, number, name):
        self.string(number + 1000, name)
        return self.record(0x02, struct.pack(">I", 1) + self.id(number) + struct.pack(">I", 0) + self.id(number + 1000))

    def segment(self, *parts):
        return self.record(0x1C, b"".join(parts))

    def end(self):
        return self.record(0x2C, b"")

    def root(self, tag, number, *rest):
        return bytes([tag]) + self.id(number) + b"".join(struct.pack(">I", value) for value in rest)

    def heap(self, kind):
        return b"\xfe" + struct.pack(">I", kind) + self.id(1)

    def class_dump(self, number, super_number=0, fields=(), statics=(), size=16, loader=0):
        """Fields are names of references, or pairs of name and type."""
        return (self.root(0x20, number, 0) + self.id(super_number) + self.id(loader) + self.id(0) * 4 + struct.pack(">IHH", size, 0, len(statics)) +
                b"".join(self.id(name) + b"\x02" + self.id(value) for name, value in statics) + struct.pack(">H", len(fields)) +
                b"".join(self.id(name) + b"\x02" if isinstance(name, int) else self.id(name[0]) + bytes([name[1]]) for name in fields))

    def instance(self, number, class_number, *values):
        """Values that are no references are bytes."""
        body = b"".join(value if isinstance(value, bytes) else self.id(value) for value in values)
        return self.root(0x21, number, 0) + self.id(class_number) + struct.pack(">I", len(body)) + body

    def objects(self, number, class_number, *values):
        return (self.root(0x22, number, 0) + struct.pack(">I", len(values)) + self.id(class_number) +
                b"".join(map(self.id, values)))

    def numbers(self, number, data):
        return self.root(0x23, number, 0, len(data)) + b"\x08" + data

    def numbers_without_data(self, number, count):
        return self.root(0xC3, number, 0, count) + b"\x0a"


def phone(id_bytes=4, no_data=False, kinds=(0x5A, 0x49, 0x41, 0)):
    """Android's: heaps, roots of its own, records of every kind."""
    dump = Dump(id_bytes=id_bytes)
    dump.string(1, "app").string(2, "next").string(3, "CACHE")
    dump.load_class(10, "java.lang.Class").load_class(20, "com.example.Node").load_class(30, "com.example.Node[]")
    dump.record(0x05, struct.pack(">III", 0, 0, 0))
    dump.segment(dump.root(0xFF, 10), dump.root(0x01, 20, *([0] * (id_bytes // 4))), dump.root(0x02, 100, 1, 2),
                 dump.root(0x03, 100, 1, 2), dump.root(0x04, 100, 1), dump.root(0x05, 20), dump.root(0x06, 100, 1),
                 dump.root(0x07, 100), dump.root(0x08, 100, 1, 2),
                 *(dump.root(tag, 20) for tag in (0x89, 0x8A, 0x8B, 0x8C, 0x8D, 0x90)), dump.root(0x8E, 20, 1, 2))
    for kind in kinds:
        first = 100 * (kinds.index(kind) + 1)
        dump.segment(dump.heap(kind), dump.class_dump(10), dump.class_dump(20, 10, [2], [(3, 102)]), dump.class_dump(30, 10),
                     dump.instance(first, 20, first + 1), dump.instance(first + 1, 20, 0),
                     dump.objects(first + 2, 30, first, first + 1), dump.numbers(first + 3, b"some bytes"),
                     *([dump.numbers_without_data(first + 4, 5)] if no_data else []))
    dump.segment(dump.instance(900, 20, 100))
    return dump.end().bytes


def head_and_tail(dump):
    """As Dalvik 1.0 wrote a dump: in two files."""
    at = 31
    while dump[at] in HEAD_RECORDS:
        at += 9 + struct.unpack(">I", dump[at + 5:at + 9])[0]
    return dump[:at], dump[at:]
