"""What a program says to a service, by hand. The numbers are those of the source."""

import pathlib
import re
import struct

_HEADER = (pathlib.Path(__file__).resolve().parents[2] / "src/wire/handshake.h").read_text()


def _constant(name):
    return int(re.search(rf"\b{name} = (\w+)[;,]", _HEADER)[1], 0)


MAGIC, VERSION = _constant("kHandshakeMagic"), _constant("kWireVersion")
STARTUP, DORMANT = _constant("kStartup"), _constant("kDormant")
PROFILE, DECLINE, WAIT = _constant("kProfile"), _constant("kDecline"), _constant("kWait")
WELCOME_SIZE = 32


def hello(origin):
    return struct.pack("<QIIQ", MAGIC, VERSION, origin, 1)


def status_of(welcome):
    return struct.unpack_from("<QII", welcome)[2]
