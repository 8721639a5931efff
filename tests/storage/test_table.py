import struct

import numpy as np
import pytest

from tdpo_baselines.storage import table


def slow_checksum(content: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (table.CASTAGNOLI * (crc & 1))
    return crc ^ 0xFFFFFFFF


def test_checksum_has_the_published_value():
    assert table.checksum(b"123456789") == 0xE3069283


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 100, 1001])
def test_checksum_of_any_length_and_in_parts(size):
    content = np.random.default_rng(size).bytes(size)
    for split in (0, size // 2, size):
        assert table.checksum(content[split:], table.checksum(content[:split])) == slow_checksum(content)


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**32, 2**64 - 1])
def test_varints(number):
    assert table.read_varint(b"\xff" + table.write_varint(number), 1) == (number, 1 + len(table.write_varint(number)))


def test_endless_varint_is_refused():
    with pytest.raises(ValueError, match="64 bits"):
        table.read_varint(b"\xff" * 20, 0)


def test_a_table_is_read_in_the_order_of_its_keys():
    entries = {b"b" * 300: b"c" * 1000, b"": b"header", b"a": b""}
    assert list(table.read_table(table.write_table(entries))) == sorted(entries.items())


def test_every_changed_byte_of_blocks_is_noticed():
    content = table.write_table({b"": b"header", b"name": b"value"})
    size = len(content) - table.FOOTER_BYTES
    first = struct.unpack("<Q", content[-8:]) == (table.MAGIC,)
    assert first
    for place in [*range(30), *range(size - 20, size)]:
        changed = bytearray(content)
        changed[place] ^= 1
        with pytest.raises((ValueError, IndexError, struct.error)):
            list(table.read_table(bytes(changed)))
