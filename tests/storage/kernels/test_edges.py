"""Records at the edge of what is valid: both kernels take the same ones, and give them the same rows."""

from __future__ import annotations

import struct
import zlib

from seglog.storage.kernels import NATIVE
from seglog.storage.kernels.walk import QueueTable, Stop, walk
from tests.support.machine.kernels import native
from tests.support.material.records import Record
from tests.support.rows import every_row

CRC_MASK = 0x7FFFFFFF
PLAIN = Record(properties=b"KEYS\x01k\x02")


def with_size(packed, size=None):
    return struct.pack(">i", len(packed) if size is None else size) + packed[4:]


def with_properties_length(length):
    """A record without properties that states a length of them."""
    return Record(properties=b"").pack()[:-2] + struct.pack(">h", length)


def of_v1(topic):
    """What no writer makes: one byte holds a length from 128."""
    packed = Record(topic=b"", body=b"").pack()
    return with_size(packed[:-3] + bytes([len(topic)]) + topic + packed[-2:])


def of_v2(length):
    """The long form with any length stated."""
    packed = bytearray(Record(topic=b"t" * 128, body=b"").pack())
    packed[88:90] = struct.pack(">h", length)
    return bytes(packed)


def flagged(sys_flag, packed):
    """Addresses of 4 bytes where the flag promises longer ones."""
    return packed[:36] + struct.pack(">i", sys_flag) + packed[40:]


def digits_of(packed):
    return f"{zlib.crc32(packed) & CRC_MASK:010d}"[::-1].encode()


def short_digits():
    """Properties of 11 bytes: ten digits that are right for what is before the last 20 bytes."""
    body_less = Record(body=b"", topic=b"a long topic", properties=bytes(10) + b"\x02").pack()
    return body_less[:-11] + digits_of(body_less[:-20]) + b"\x02"


def checked(name=b"__CRC32#\x01", end=b"\x02", wrong=0):
    """A record with a checksum of its own, right but for what is given."""
    packed = Record(properties=b"KEYS\x01k\x02", record_crc=True).pack()
    digits = digits_of(packed[:-20])
    if wrong:
        digits = bytes([digits[0] ^ wrong]) + digits[1:]
    return packed[:-20] + name + digits + end


def flipped(count):
    """The name of the check with one bit flipped in so many of its bytes."""
    name = b"__CRC32#\x01"
    return bytes(byte ^ (place < count) for place, byte in enumerate(name))


OTHER_CHECK = b"__CRC32#\x011234567890\x02"
HEAD = bytes.fromhex("0000011ddaa320a7")


def misplaced(properties):
    """A record with properties as a sector that moved, or a client, leaves them."""
    return Record(properties=b"a\x01b\x02" + properties).pack()


EDGES = {
    # name: (bytes, how many records they are)
    "plain": (PLAIN.pack(), 1),
    "the smallest": (Record(topic=b"", body=b"").pack(), 1),
    "a byte less than the smallest": (with_size(Record(topic=b"", body=b"").pack(), 90), 0),
    "size 0": (with_size(PLAIN.pack(), 0), 0),
    "negative size": (with_size(PLAIN.pack(), -len(PLAIN.pack())), 0),
    "a byte cut off": (PLAIN.pack()[:-1], 0),
    "a byte more in its size": (with_size(PLAIN.pack() + b"\x02", len(PLAIN.pack()) + 1), 0),
    "no properties": (with_properties_length(0), 1),
    "negative length of properties": (with_properties_length(-1), 1),
    "least length of properties": (with_properties_length(-32768), 1),
    "length of properties beyond it": (with_properties_length(1), 0),
    "V1 with a topic of 200": (of_v1(b"t" * 200), 1),
    "V1 with a topic of 255": (of_v1(b"t" * 255), 1),
    "V2 with a topic of 128": (of_v2(128), 1),
    "V2 with a negative length": (of_v2(-1), 0),
    "V2 with a length beyond it": (of_v2(131), 0),
    "smallest, flagged as IPv6 born": (flagged(0x10, Record(topic=b"", body=b"").pack()), 0),
    "smallest, flagged as IPv6 twice": (flagged(0x30, Record(topic=b"", body=b"").pack()), 0),
    "IPv6 hosts": (Record(born_address=bytes(16), store_address=bytes(16)).pack(), 1),
    "IPv6 store host": (Record(store_address=bytes(16)).pack(), 1),
    "negative queue id": (Record(queue_id=-1).pack(), 0),
    "negative queue offset": (Record(queue_offset=-1).pack(), 0),
    "own check": (checked(), 1),
    "own check with a wrong digit": (checked(wrong=1), 0),
    "own check with no digit": (checked(wrong=0x40), 0),
    "own check with another end": (checked(end=b"\x03"), 0),
    "own check under a name with a flip": (checked(name=b"__CRC32!\x01"), 0),
    "own check under another name": (checked(name=b"another_\x01"), 0),
    "wrong check under a name with 8 flips": (checked(name=flipped(8), wrong=1), 0),
    "wrong check under a name with 9 flips": (checked(name=flipped(9), wrong=1), 1),
    "wrong check under another name": (checked(name=b"another_\x01", wrong=1), 1),
    "properties are the name's end alone": (Record(properties=b"_CRC32#\x01").pack(), 0),
    "properties are the name alone": (Record(properties=b"__CRC32#\x01").pack(), 0),
    "ten right digits and no more": (short_digits(), 0),
    "ten digits and no more": (Record(properties=b"0123456789\x02").pack(), 1),
    "NUL at the end of properties": (Record(properties=b"KEYS\x01k\0").pack(), 0),
    "seven NULs in properties": (Record(properties=b"K\x01" + bytes(7) + b"\x02").pack(), 1),
    "eight NULs in properties": (Record(properties=b"K\x01" + bytes(8) + b"\x02").pack(), 0),
    "own check of another record, among others": (misplaced(OTHER_CHECK + b"a\x01b\x02"), 1),
    "own check of another record, the next without end": (misplaced(OTHER_CHECK + b"a\x01b"), 1),
    "own check of another record, at the end": (misplaced(OTHER_CHECK), 0),
    "own check of another record, cut by a byte": (misplaced(OTHER_CHECK[:-1]), 0),
    "own check of another record, cut to a digit": (misplaced(OTHER_CHECK[:10]), 0),
    "own check of another record, cut to the name": (misplaced(OTHER_CHECK[:9]), 0),
    "own check of another record, less than the name": (misplaced(OTHER_CHECK[:8]), 1),
    "own check of another record, a head behind it": (misplaced(OTHER_CHECK + HEAD), 0),
    "own check of another record, a byte of a head behind it": (misplaced(OTHER_CHECK + HEAD[:1]), 0),
    "own check of another record, in a value": (misplaced(b"b" + OTHER_CHECK + HEAD), 0),
    "two own checks of other records": (misplaced(OTHER_CHECK + b"c\x02" + OTHER_CHECK + HEAD), 0),
    "a user's property of that name": (misplaced(b"__CRC32#\x0112\x02KEYS\x01some key\x02"), 1),
    "a user's property of that name, no digits": (misplaced(b"__CRC32#\x01some text, without end"), 1),
    "twelve digits under that name": (misplaced(OTHER_CHECK[:-1] + b"00"), 1),
    "a NUL behind nine digits under that name": (misplaced(b"__CRC32#\x01123456789\x02\0KEYS\x01key\x02"), 1),
    "own check of another record, that a check covers": (
        Record(properties=OTHER_CHECK + HEAD, record_crc=True).pack(), 1,
    ),
    "eight NULs that a check covers": (
        Record(properties=b"K\x01" + bytes(8) + b"\x02", record_crc=True).pack(), 1,
    ),
}  # fmt: skip


def walked(packed, kernels):
    """The walk; native kernels must have done all of it that is records."""
    result = walk(memoryview(packed), 0, 1 << 20, QueueTable())
    if kernels == NATIVE:
        alone = native().walk(memoryview(packed), 0, True, QueueTable().number)
        assert alone == (result.rows.tobytes(), result.saying_more, result.position)
    return result


def test_record(kernels: str):
    with every_row() as row:
        for name, (packed, count) in EDGES.items():
            with row(name):
                result = walked(packed, kernels)
                assert len(result.rows) == count
                assert result.position == (len(packed) if count else 0)
                assert result.stop in ((Stop.MORE,) if count else (Stop.DAMAGE, Stop.MORE, Stop.ZERO))


CODES = {
    # name: (topic, properties, code)
    "tag": (b"T", b"TAGS\x01TagA\x02", 2598919),
    "the last of two counts": (b"T", b"TAGS\x01x\x02TAGS\x01TagA\x02", 2598919),
    "an empty one does not": (b"T", b"TAGS\x01TagA\x02TAGS\x01\x02", 2598919),
    "without its end": (b"T", b"TAGS\x01TagA", 2598919),
    "inside a value": (b"T", b"K\x01TAGS\x01TagA\x02", 0),
    "under a longer name": (b"T", b"MYTAGS\x01TagA\x02", 0),
    "beyond the first plane": (b"T", "TAGS\x01😀\x02".encode(), 1772899),
    "no UTF-8": (b"T", b"TAGS\x01\xf0\x9f\x98\x02", 0xFFFD),
    "delay": (b"SCHEDULE_TOPIC_XXXX", b"DELAY\x013\x02", 10_005),
    "delay beyond the highest": (b"SCHEDULE_TOPIC_XXXX", b"DELAY\x0199\x02", 7_200_005),
    "delay of many digits": (b"SCHEDULE_TOPIC_XXXX", b"DELAY\x01" + b"9" * 5000 + b"\x02", 7_200_005),
    "delay that ends in no digit": (b"SCHEDULE_TOPIC_XXXX", b"DELAY\x0199x\x02", 0),
    "delay with zeros before it": (b"SCHEDULE_TOPIC_XXXX", b"DELAY\x010002\x02", 5_005),
    "delay 0, and a tag": (b"SCHEDULE_TOPIC_XXXX", b"DELAY\x010\x02TAGS\x01TagA\x02", 2598919),
    "delay elsewhere": (b"T", b"DELAY\x013\x02", 0),
}


def test_code_of_a_unit(kernels: str):
    with every_row() as row:
        for name, (topic, properties, code) in CODES.items():
            packed = Record(topic=topic, properties=properties, store_timestamp_ms=5).pack()
            with row(name):
                assert walked(packed, kernels).rows["tags_code"].tolist() == [code]


SAYING_MORE = {
    b"INNER_NUM\x013\x02": True,
    b"K\x01IINNER_\x02": True,
    b"K\x01INNER_": True,
    b"K\x01INNER": False,
    b"": False,
}


def test_record_that_says_more_is_noted(kernels: str):
    with every_row() as row:
        for properties, says_more in SAYING_MORE.items():
            packed = Record(properties=properties).pack()
            with row(properties):
                assert walked(packed, kernels).saying_more == [0] * says_more
