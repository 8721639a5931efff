"""Check the files of a TensorFlow checkpoint before TensorFlow reads them, which ends the process at odd ones.

`state.index` is a sorted table (LevelDB's format, not compressed) of a header under the empty key and an entry with
dtype, shape, offset and size for each tensor, whose bytes are in the one file `state.data-00000-of-00001`.
"""

import math
import struct
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ..common import files
from ..common.parallel.tensorflow_setup import load_tensorflow

INDEX, DATA = "state.index", "state.data-00000-of-00001"
MAX_INDEX_BYTES = 2**24
MAX_TEXT_BYTES = files.MAX_JSON_BYTES  # of a tensor that is a text
MAGIC = 0xDB4775248B80FB57
FOOTER_BYTES, TRAILER_BYTES = 48, 5
STRING, BOOL = 7, 10  # of TensorFlow's DataType
DTYPES = {1: "f4", 2: "f8", 3: "i4", 4: "u1", 5: "i2", 6: "i1", 9: "i8", BOOL: "b1", 17: "u2", 22: "u4", 23: "u8"}


class Tensor(NamedTuple):
    """An entry of the index."""

    dtype: int
    shape: tuple[int, ...]
    offset: int
    num_bytes: int


def read_index(folder: Path) -> dict[str, Tensor]:
    """Return the tensors by name; raise ValueError unless their bytes lie in the data file and fit their shapes."""
    with files.open_to_read(folder / INDEX, max_bytes=MAX_INDEX_BYTES) as file:
        content = file.read()
    with files.open_to_read(folder / DATA) as data:
        try:
            header, *entries = _entries(content)
            _check_header(*header)
            tensors = {key.decode(): _parse_tensor(value) for key, value in entries}
        except (IndexError, struct.error, UnicodeDecodeError) as error:
            raise ValueError(f"{INDEX} is not the index of a checkpoint") from error
        size = data.seek(0, 2)
        for name, tensor in tensors.items():
            if not 0 <= tensor.offset <= tensor.offset + tensor.num_bytes <= size:
                raise ValueError(f"{name} lies outside of {DATA}")
            if tensor.dtype == STRING:
                data.seek(tensor.offset)
                _check_text(name, tensor, data.read(10) + bytes(10))
    return tensors


def _entries(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values of all blocks of a table."""
    footer = content[-FOOTER_BYTES:]
    if len(footer) < FOOTER_BYTES or struct.unpack("<Q", footer[-8:])[0] != MAGIC:
        raise ValueError(f"{INDEX} is not the index of a checkpoint")
    _, position = _handle(footer, 0)  # of a block that TensorFlow does not use
    handle, _ = _handle(footer, position)
    for _, value in _block(content, handle):
        yield from _block(content, _handle(value, 0)[0])


def _handle(buffer: bytes, position: int) -> tuple[tuple[int, int], int]:
    """Return offset and size of a block, and the position after them."""
    offset, position = _varint(buffer, position)
    size, position = _varint(buffer, position)
    return (offset, size), position


def _block(content: bytes, handle: tuple[int, int]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys and values of a block; each key shares a beginning with the one before."""
    offset, size = handle
    if offset + size + TRAILER_BYTES > len(content) or content[offset + size] != 0:
        raise ValueError(f"{INDEX} has a block outside of the file, or a compressed one")
    block, key, position = content[offset : offset + size], b"", 0
    end = len(block) - 4 * (1 + struct.unpack("<I", block[-4:])[0])
    while position < end:
        num_shared, position = _varint(block, position)
        num_own, position = _varint(block, position)
        num_value, position = _varint(block, position)
        if num_shared > len(key) or position + num_own + num_value > end:
            raise ValueError(f"{INDEX} has an entry outside of its block")
        key = key[:num_shared] + block[position : position + num_own]
        position += num_own + num_value
        yield key, block[position - num_value : position]


def _varint(buffer: bytes, position: int) -> tuple[int, int]:
    """Return a number of up to 64 bits and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise ValueError(f"{INDEX} has a number of more than 64 bits")


def _message(name: str, value: bytes) -> Any:
    """Return a message of TensorFlow's bundle format; raise ValueError if the bytes are none."""
    load_tensorflow()
    message = getattr(import_module("tensorflow.core.protobuf.tensor_bundle_pb2"), name)()
    try:
        message.ParseFromString(value)
    except Exception as error:  # a DecodeError of protobuf, whose module has changed its name
        raise ValueError(f"{INDEX} has a damaged entry") from error
    return message


def _check_header(key: bytes, value: bytes) -> None:
    header = _message("BundleHeaderProto", value)
    if key or header.num_shards != 1 or header.endianness != 0:
        raise ValueError(f"{INDEX} does not describe one little-endian data file")


def _parse_tensor(value: bytes) -> Tensor:
    entry = _message("BundleEntryProto", value)
    shape = tuple(dimension.size for dimension in entry.shape.dim)
    if entry.slices or entry.shard_id or entry.shape.unknown_rank or len(shape) > 8 or min(shape, default=0) < 0:
        raise ValueError(f"{INDEX} has an entry of another kind")
    num_bytes = math.prod(shape) * int(DTYPES.get(entry.dtype, "?0")[1:])
    if (entry.dtype != STRING and entry.dtype not in DTYPES) or (entry.dtype != STRING and num_bytes != entry.size):
        raise ValueError(f"{INDEX} has an entry whose dtype and shape do not make its size")
    return Tensor(entry.dtype, shape, entry.offset, entry.size)


def _check_text(name: str, tensor: Tensor, beginning: bytes) -> None:
    """Raise ValueError unless a tensor is one text, whose length the data file begins with."""
    length = _varint(beginning, 0)[0]
    if tensor.shape or not length < tensor.num_bytes <= MAX_TEXT_BYTES:
        raise ValueError(f"{name} is not one text of at most {MAX_TEXT_BYTES:,} bytes")
