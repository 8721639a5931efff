import struct

import numpy as np
import pytest

from tdpo_baselines.storage import bundle, checkpoint


@pytest.fixture
def folder(tmp_path):
    state = {"policy": {"theta": np.zeros(1000)}, "progress": {"iteration": np.asarray(3)}, "config": "{}"}
    checkpoint.save(tmp_path, 1, state, keep=1)
    return tmp_path / "iteration-000000001"


def test_index_names_every_array_with_its_shape_and_place(folder):
    tensors = {name.partition("/.")[0]: tensor for name, tensor in bundle.read_index(folder).items()}
    assert tensors["policy/theta"].shape == (1000,) and tensors["policy/theta"].num_bytes == 8000
    assert tensors["progress/iteration"].shape == () and tensors["config"].dtype == bundle.STRING


def crc32c(content: bytes) -> int:
    """Return LevelDB's masked checksum."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 * (crc & 1))
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def table(entries: dict[bytes, bytes], *, size: int | None = None) -> bytes:
    """Return an index with sound checksums; `size` is what it says of its first block."""

    def block(pairs) -> bytes:
        body = b"".join(b"\0" + varint(len(key)) + varint(len(value)) + key + value for key, value in pairs)
        body += struct.pack("<II", 0, 1)
        return body + b"\0" + struct.pack("<I", crc32c(body + b"\0"))

    first = block(entries.items())
    second = block([(b"\xff", varint(0) + varint(len(first) - 5 if size is None else size))])
    footer = varint(0) + varint(0) + varint(len(first)) + varint(len(second) - 5)
    return first + second + footer.ljust(40, b"\0") + struct.pack("<Q", bundle.MAGIC)


HEADER = b"\x08\x01"  # one data file


def entry(dtype: int, shape: tuple[int, ...], offset: int, size: int) -> bytes:
    dims = b"".join(b"\x12" + varint(1 + len(varint(n))) + b"\x08" + varint(n) for n in shape)
    shape_bytes = b"\x12" + varint(len(dims)) + dims
    return b"\x08" + varint(dtype) + shape_bytes + b"\x20" + varint(offset) + b"\x28" + varint(size)


NAME = b"theta/.ATTRIBUTES/VARIABLE_VALUE"
HOSTILE = {
    "block of 2**60 bytes": table({b"": HEADER}, size=2**60),
    "many data files": table({b"": b"\x08" + varint(10**9)}),
    "no header": table({NAME: entry(2, (2,), 0, 16)}),
    "negative shape": table({b"": HEADER, NAME: entry(2, (2**64 - 5,), 0, 16)}),
    "huge shape": table({b"": HEADER, NAME: entry(2, (2**40,), 0, 16)}),
    "huge array": table({b"": HEADER, NAME: entry(2, (2**40,), 0, 2**43)}),
    "shape that overflows": table({b"": HEADER, NAME: entry(2, (2**62, 2**62, 4), 0, 0)}),
    "outside of the data": table({b"": HEADER, NAME: entry(2, (2,), 2**50, 16)}),
    "unknown dtype": table({b"": HEADER, NAME: entry(99, (2,), 0, 16)}),
    "text of 2**60 bytes": table({b"": HEADER, NAME: entry(7, (), 0, 16)}),
    "many texts": table({b"": HEADER, NAME: entry(7, (2**40,), 0, 16)}),
    "no message": table({b"": HEADER, NAME: b"\xff\xff\xff"}),
    "key that is no text": table({b"": HEADER, b"\xff\xfe": entry(2, (2,), 0, 16)}),
    "empty": b"",
    "nothing but a footer": bytes(40) + struct.pack("<Q", bundle.MAGIC),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_index_that_would_end_the_process_is_refused(folder, kind):
    (folder / bundle.INDEX).write_bytes(HOSTILE[kind])
    (folder / bundle.DATA).write_bytes(varint(2**60) + bytes(100))
    with pytest.raises(ValueError):
        bundle.read_index(folder)
    with pytest.raises(OSError, match="is torn or corrupt"):
        checkpoint.load(folder)


def test_hand_made_index_is_read(folder):
    (folder / bundle.INDEX).write_bytes(table({b"": HEADER, NAME: entry(2, (2,), 0, 16)}))
    (folder / bundle.DATA).write_bytes(bytes(16))
    assert bundle.read_index(folder) == {NAME.decode(): bundle.Tensor(2, (2,), 0, 16)}
