"""Arrays and texts in the files of a TensorFlow checkpoint, read and written without TensorFlow.

Importing TensorFlow takes longer than many runs, and half a gigabyte; and it ends the process at odd files.

`state.index` is a table of a header under the empty key and an entry for each tensor: dtype, shape, offset, size and
checksum. Their bytes are in the one file `state.data-00000-of-00001`; a text follows its length and the checksum of
that. Header and entries are messages of Protocol Buffers: tags, each with a number or with bytes.
"""

import math
import os
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..common import files
from .table import checksum, mask, read_table, read_varint, write_table, write_varint

INDEX, DATA = "state.index", "state.data-00000-of-00001"
MAX_INDEX_BYTES = 2**24
MAX_TEXT_BYTES = files.MAX_JSON_BYTES  # of a tensor that is a text
STRING = 7  # of TensorFlow's DataType
DTYPES = {1: "f4", 2: "f8", 3: "i4", 4: "u1", 5: "i2", 6: "i1", 9: "i8", 10: "b1", 17: "u2", 22: "u4", 23: "u8"}
CODES = {np.dtype(name): code for code, name in DTYPES.items()}
NUMBER, BYTES, FOUR_BYTES = 0, 2, 5  # kinds of values of a message
DTYPE, SHAPE, SHARD, OFFSET, SIZE, CHECKSUM, SLICES = range(1, 8)  # tags of an entry
DIMENSION, UNKNOWN_RANK, DIMENSION_SIZE = 2, 3, 1  # tags of a shape and of its dimensions
NUM_SHARDS, ENDIANNESS, VERSION = range(1, 4)  # tags of the header
MAX_DIMENSIONS = 8


class Tensor(NamedTuple):
    """An entry of the index."""

    dtype: int
    shape: tuple[int, ...]
    offset: int
    num_bytes: int
    checksum: int  # masked, of all bytes


def write(folder: int, values: Mapping[str, np.ndarray | str]) -> None:
    """Write the two files into an opened folder, and onto the disk."""
    entries = {b"": _message({NUM_SHARDS: 1, VERSION: _message({1: 1})})}
    with _created(DATA, folder) as data:
        for name in sorted(values):
            dtype, shape, parts = _parts(values[name])
            crc, offset = 0, data.tell()
            for part, checked in parts:
                data.write(memoryview(part))
                crc = checksum(checked, crc)
            tensor = Tensor(dtype, shape, offset, data.tell() - offset, mask(crc))
            entries[name.encode()] = _entry(tensor)
        _sync(data)
    with _created(INDEX, folder) as index:
        index.write(write_table(entries))
        _sync(index)


def _created(name: str, folder: int) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(name, flags, 0o666, dir_fd=folder), "wb")


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _parts(value: np.ndarray | str) -> tuple[int, tuple[int, ...], list[tuple[Any, Any]]]:
    """Return dtype, shape, and the bytes to write, each with the bytes that its checksum is of."""
    if not isinstance(value, str):
        array = np.asarray(value)
        content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return CODES[array.dtype], array.shape, [(content, content)]
    text = value.encode()
    length = struct.pack("<I", len(text))
    length_checksum = struct.pack("<I", mask(checksum(length)))
    return STRING, (), [(write_varint(len(text)), length), (length_checksum, length_checksum), (text, text)]


def _entry(tensor: Tensor) -> bytes:
    sizes = b"".join(_message({DIMENSION: _message({DIMENSION_SIZE: size})}) for size in tensor.shape)
    fields: dict[int, int | bytes] = {DTYPE: tensor.dtype, SHAPE: sizes, OFFSET: tensor.offset, SIZE: tensor.num_bytes}
    return _message(fields) + bytes([CHECKSUM << 3 | FOUR_BYTES]) + struct.pack("<I", tensor.checksum)


def _message(fields: Mapping[int, int | bytes]) -> bytes:
    """Return a message of numbers and bytes by tag."""
    parts = []
    for tag, value in fields.items():
        if isinstance(value, int):
            parts.append(bytes([tag << 3 | NUMBER]) + write_varint(value))
        else:
            parts.append(bytes([tag << 3 | BYTES]) + write_varint(len(value)) + value)
    return b"".join(parts)


def _read_message(content: bytes) -> dict[int, list]:
    """Return the values of a message by tag."""
    fields: dict[int, list] = {}
    position = 0
    while position < len(content):
        key, position = read_varint(content, position)
        value: Any
        if key & 7 == NUMBER:
            value, position = read_varint(content, position)
        elif key & 7 == FOUR_BYTES:
            (value,), position = struct.unpack_from("<I", content, position), position + 4
        elif key & 7 == BYTES:
            length, position = read_varint(content, position)
            value, position = content[position : position + length], position + length
        else:
            raise ValueError("it has a message with a value of an unknown kind")
        fields.setdefault(key >> 3, []).append(value)
    if position > len(content):
        raise ValueError("it has a message that is cut off")
    return fields


def read_index(folder: Path) -> dict[str, Tensor]:
    """Return the tensors by name; raise ValueError unless their bytes lie in the data file and fit their shapes."""
    with files.open_to_read(folder / INDEX, max_bytes=MAX_INDEX_BYTES) as file:
        content = file.read()
    try:
        header, *entries = read_table(content)
        _check_header(*header)
        tensors = {key.decode(): _read_entry(value) for key, value in entries}
    except (ValueError, IndexError, struct.error, TypeError, AttributeError) as error:
        raise ValueError(f"{INDEX} is not the index of a checkpoint: {error}") from error
    with files.open_to_read(folder / DATA) as data:
        size = data.seek(0, 2)
    for name, tensor in tensors.items():
        if tensor.offset + tensor.num_bytes > size:
            raise ValueError(f"{name} lies outside of {DATA}")
    return tensors


def _check_header(key: bytes, value: bytes) -> None:
    header = _read_message(value)
    if key or header.get(NUM_SHARDS) != [1] or header.get(ENDIANNESS, [0]) != [0]:
        raise ValueError("it does not describe one little-endian data file")


def _read_entry(value: bytes) -> Tensor:
    fields = _read_message(value)
    dtype, offset, size, crc = (fields.get(tag, [0])[-1] for tag in (DTYPE, OFFSET, SIZE, CHECKSUM))
    shape_fields = _read_message(b"".join(fields.get(SHAPE, [])))
    dimensions = [_read_message(dimension) for dimension in shape_fields.get(DIMENSION, [])]
    shape = tuple(dimension.get(DIMENSION_SIZE, [0])[-1] for dimension in dimensions)
    is_usual = len(shape) <= MAX_DIMENSIONS and max(shape, default=0) < 2**63
    if SLICES in fields or fields.get(SHARD, [0]) != [0] or UNKNOWN_RANK in shape_fields or not is_usual:
        raise ValueError("it has an entry of another kind")
    if dtype == STRING:
        if shape or size > MAX_TEXT_BYTES:
            raise ValueError(f"it has texts that are not one text of at most {MAX_TEXT_BYTES:,} bytes")
    elif dtype not in DTYPES or math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize != size:
        raise ValueError("it has an entry whose dtype and shape do not make its size")
    return Tensor(dtype, shape, offset, size, crc)


def read(folder: Path, tensors: Iterable[tuple[str, Tensor]]) -> dict[str, np.ndarray | str]:
    """Return the values of tensors of the index by name; raise ValueError if they do not fit their checksums."""
    values: dict[str, np.ndarray | str] = {}
    with files.open_to_read(folder / DATA) as data:
        for name, tensor in tensors:
            data.seek(tensor.offset)
            content = np.fromfile(data, np.uint8, tensor.num_bytes)
            try:
                values[name], checked = _value(content, tensor)
            except (IndexError, ValueError) as error:
                raise ValueError(f"{name} does not fit its entry") from error
            if mask(checksum(checked)) != tensor.checksum:
                raise ValueError(f"{name} does not fit its checksum")
    return values


def _value(content: np.ndarray, tensor: Tensor) -> tuple[np.ndarray | str, Any]:
    """Return the value of the bytes of a tensor, and the bytes that its checksum is of."""
    if tensor.dtype != STRING:
        return content.view(DTYPES[tensor.dtype]).reshape(tensor.shape), content
    raw = content.tobytes()
    length, position = read_varint(raw, 0)
    text = raw[position + 4 :]
    if len(text) != length:
        raise ValueError("a text has another length than it says")
    return text.decode(), struct.pack("<I", length) + raw[position:]
