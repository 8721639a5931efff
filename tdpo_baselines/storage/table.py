"""Sorted tables of LevelDB, not compressed: the format of the index of a TensorFlow checkpoint.

A table is a few blocks of keys and values, each followed by its kind and its checksum, and a footer that says where the
block of blocks is. Numbers are varints: seven bits a byte, the lowest first.
"""

import struct
from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np

from ..common.networks.code_cache import cached_jit

MAGIC = 0xDB4775248B80FB57
FOOTER_BYTES, TRAILER_BYTES = 48, 5
NOT_COMPRESSED = 0
CASTAGNOLI = 0x82F63B78  # polynomial of CRC-32C, its bits reversed
ALL_ONES = 0xFFFFFFFF


def write_table(entries: Mapping[bytes, bytes]) -> bytes:
    """Return a table of one block."""
    body, ends = b"", []
    for block in (_block(dict(sorted(entries.items()))), _block({})):  # the second is for filters: there are none
        body += block
        ends.append(len(body) - TRAILER_BYTES)
    handles = [write_varint(0) + write_varint(ends[0]), _handle_of(ends[0] + TRAILER_BYTES, ends[1])]
    index = _block({max(entries): handles[0]})
    footer = handles[1] + _handle_of(len(body), len(body) + len(index) - TRAILER_BYTES)
    return body + index + footer.ljust(FOOTER_BYTES - 8, b"\0") + struct.pack("<Q", MAGIC)


def _handle_of(begin: int, end: int) -> bytes:
    return write_varint(begin) + write_varint(end - begin)


def _block(entries: Mapping[bytes, bytes]) -> bytes:
    """Return a block in which no key shares a beginning with the one before, and its trailer."""
    parts = (b"\0" + write_varint(len(key)) + write_varint(len(value)) + key + value for key, value in entries.items())
    body = b"".join(parts) + struct.pack("<II", 0, 1) + bytes([NOT_COMPRESSED])  # one place to begin to read: 0
    return body + struct.pack("<I", mask(checksum(body)))


def read_table(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values of all blocks of a table; raise ValueError, IndexError or struct.error if it is damaged."""
    footer = content[-FOOTER_BYTES:]
    if len(footer) < FOOTER_BYTES or struct.unpack("<Q", footer[-8:])[0] != MAGIC:
        raise ValueError("it is not a table")
    _, position = _read_handle(footer, 0)  # of the block for filters
    handle, _ = _read_handle(footer, position)
    for _, value in _read_block(content, *handle):
        yield from _read_block(content, *_read_handle(value, 0)[0])


def _read_handle(buffer: bytes, position: int) -> tuple[tuple[int, int], int]:
    """Return offset and size of a block, and the position after them."""
    offset, position = read_varint(buffer, position)
    size, position = read_varint(buffer, position)
    return (offset, size), position


def _read_block(content: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a block; each key shares a beginning with the one before."""
    if offset + size + TRAILER_BYTES > len(content) or content[offset + size] != NOT_COMPRESSED:
        raise ValueError("it has a block outside of the file, or a compressed one")
    (expected,) = struct.unpack_from("<I", content, offset + size + 1)
    if mask(checksum(content[offset : offset + size + 1])) != expected:
        raise ValueError("it has a block that does not fit its checksum")
    block, key, position = content[offset : offset + size], b"", 0
    end = len(block) - 4 * (1 + struct.unpack("<I", block[-4:])[0])
    while position < end:
        num_shared, position = read_varint(block, position)
        num_own, position = read_varint(block, position)
        num_value, position = read_varint(block, position)
        if num_shared > len(key) or position + num_own + num_value > end:
            raise ValueError("it has an entry outside of its block")
        key = key[:num_shared] + block[position : position + num_own]
        position += num_own + num_value
        yield key, block[position - num_value : position]


def write_varint(value: int) -> bytes:
    """Return the bytes of a number."""
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def read_varint(buffer: bytes, position: int) -> tuple[int, int]:
    """Return a number of up to 64 bits and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 2**64 - 1, position
    raise ValueError("it has a number of more than 64 bits")


def checksum(content: bytes | np.ndarray, before: int = 0) -> int:
    """Return the CRC-32C of bytes that follow others, whose CRC-32C is given."""
    return int(_extend(_remainders(), np.frombuffer(content, np.uint8), before))


def mask(crc: int) -> int:
    """Return a checksum as it is stored, so that checksums of data that hold checksums stay good."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & ALL_ONES


@cache
def _remainders() -> np.ndarray:
    """Return the remainder of every byte followed by 0 to 7 zeros, [8, 256]."""
    tables = [np.arange(256)]
    for _ in range(8):
        tables[0] = tables[0] >> 1 ^ CASTAGNOLI * (tables[0] & 1)
    for _ in range(7):
        tables.append(tables[-1] >> 8 ^ tables[0][tables[-1] & 255])
    return np.array(tables)


@cached_jit(error_model="numpy")
def _extend(tables, content, before):
    """Return the CRC-32C after more bytes, eight at a time."""
    crc = before ^ ALL_ONES
    whole = content.size // 8 * 8
    for i in range(0, whole, 8):
        crc ^= content[i] | content[i + 1] << 8 | content[i + 2] << 16 | content[i + 3] << 24
        first = tables[7, crc & 255] ^ tables[6, crc >> 8 & 255] ^ tables[5, crc >> 16 & 255] ^ tables[4, crc >> 24]
        second = tables[3, content[i + 4]] ^ tables[2, content[i + 5]] ^ tables[1, content[i + 6]]
        crc = first ^ second ^ tables[0, content[i + 7]]
    for byte in content[whole:]:
        crc = crc >> 8 ^ tables[0, (crc ^ byte) & 255]
    return crc ^ ALL_ONES
