import struct

import numpy as np
import pytest

from tdpo_baselines.storage import bundle, checkpoint
from tdpo_baselines.storage.table import MAGIC, checksum, mask, write_varint


@pytest.fixture
def folder(tmp_path):
    state = {"policy": {"theta": np.zeros(1000)}, "progress": {"iteration": np.asarray(3)}, "config": "{}"}
    checkpoint.save(tmp_path, 1, state, keep=1)
    return tmp_path / "iteration-000000001"


def test_index_names_every_array_with_its_shape_and_place(folder):
    tensors = {name.partition("/.")[0]: tensor for name, tensor in bundle.read_index(folder).items()}
    assert tensors["policy/theta"].shape == (1000,) and tensors["policy/theta"].num_bytes == 8000
    assert tensors["progress/iteration"].shape == () and tensors["config"].dtype == bundle.STRING


def table(entries: dict[bytes, bytes], *, size: int | None = None) -> bytes:
    """Return an index with sound checksums; `size` is what it says of its first block."""
    first = block(entries)
    second = block({b"\xff": write_varint(0) + write_varint(len(first) - 5 if size is None else size)})
    footer = b"\0\0" + write_varint(len(first)) + write_varint(len(second) - 5)
    return first + second + footer.ljust(40, b"\0") + struct.pack("<Q", MAGIC)


def block(entries: dict[bytes, bytes]) -> bytes:
    pairs = (b"\0" + write_varint(len(key)) + write_varint(len(value)) + key + value for key, value in entries.items())
    body = b"".join(pairs) + struct.pack("<II", 0, 1) + b"\0"
    return body + struct.pack("<I", mask(checksum(body)))


HEADER = b"\x08\x01"  # one data file


def entry(dtype: int, shape: tuple[int, ...], offset: int, size: int) -> bytes:
    dims = b"".join(b"\x12" + write_varint(1 + len(write_varint(n))) + b"\x08" + write_varint(n) for n in shape)
    shape_bytes = b"\x12" + write_varint(len(dims)) + dims
    return b"\x08" + write_varint(dtype) + shape_bytes + b"\x20" + write_varint(offset) + b"\x28" + write_varint(size)


NAME = b"theta/.ATTRIBUTES/VARIABLE_VALUE"
HOSTILE = {
    "block of 2**60 bytes": table({b"": HEADER}, size=2**60),
    "many data files": table({b"": b"\x08" + write_varint(10**9)}),
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
    "nothing but a footer": bytes(40) + struct.pack("<Q", MAGIC),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_index_that_would_end_the_process_is_refused(folder, kind):
    (folder / bundle.INDEX).write_bytes(HOSTILE[kind])
    (folder / bundle.DATA).write_bytes(write_varint(2**60) + bytes(100))
    with pytest.raises(ValueError):
        bundle.read(folder, bundle.read_index(folder).items())
    with pytest.raises(OSError, match="is torn or corrupt"):
        checkpoint.load(folder)


def test_hand_made_index_is_read(folder):
    (folder / bundle.INDEX).write_bytes(table({b"": HEADER, NAME: entry(2, (2,), 0, 16)}))
    (folder / bundle.DATA).write_bytes(bytes(16))
    assert bundle.read_index(folder) == {NAME.decode(): bundle.Tensor(2, (2,), 0, 16, 0)}
