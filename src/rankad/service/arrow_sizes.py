"""How large an Arrow stream becomes, known before it is: when unpacked, and when each cell has its own copy.

A buffer of a compressed batch begins with its length when unpacked. Where the buffers are is written in the
batch's metadata, a flatbuffer (Arrow's Message.fbs), of which pyarrow shows only the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

_VERSION_5 = 4
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_VIEW_BYTES = 16


def unpacked_bytes(body: bytes) -> int:
    """Return how many bytes the compressed buffers of an Arrow IPC stream say that they unpack to.

    Examples
    --------
    >>> import io
    >>> import pyarrow as pa
    >>> sink = io.BytesIO()
    >>> table = pa.table({"x": [0.0] * 1000})
    >>> options = pa.ipc.IpcWriteOptions(compression="zstd")
    >>> with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
    ...     writer.write_table(table)
    >>> len(sink.getvalue()) < 1000, unpacked_bytes(sink.getvalue())
    (True, 8000)
    """
    import pyarrow as pa

    return sum(
        max(0, struct.unpack_from("<q", message.body, start)[0])
        for message in pa.ipc.MessageReader.open_stream(body)
        for start, length in _compressed(memoryview(message.metadata))
        if length >= 8
    )


def shared_bytes(table: Any) -> int:
    """Return how many bytes the cells take that share a text or a run, once each has its own copy.

    A stream holds a word of a dictionary once, however many rows have it. So it does with texts that views
    point to, and with runs of equal values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> words = pa.array(["a long word", "b"]).dictionary_encode()
    >>> shared_bytes(pa.table({"word": words.take(pa.array([0, 0, 0, 1])), "x": [1.0, 2.0, 3.0, 4.0]}))
    34
    """
    return sum(_shared(chunk) for column in table.columns for chunk in column.chunks)


def _shared(array: Any) -> int:
    from pyarrow import types

    kind = array.type
    if hasattr(kind, "storage_type"):
        return _shared(array.storage)
    if types.is_dictionary(kind):
        lengths, at = _lengths(array.dictionary), array.indices.drop_null()
        return int(lengths[at.to_numpy(zero_copy_only=False)].sum())
    if types.is_run_end_encoded(kind):
        return len(array) * int(_lengths(array.values).max(initial=0))
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return int(_lengths(array).sum())
    if types.is_struct(kind):
        return sum(_shared(part) for part in array.flatten())
    if types.is_map(kind):
        return _shared(array.keys) + _shared(array.items)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _shared(array.values)
    if types.is_nested(kind):
        raise ValueError(f"columns of type {kind!s:.100} are not taken")
    return 0


def _lengths(array: Any) -> Any:
    """Return the bytes of each cell, 0 where it is missing."""
    import pyarrow.compute as pc
    from pyarrow import types

    kind = array.type
    if types.is_string_view(kind) or types.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1], np.uint8).reshape(-1, _VIEW_BYTES)
        lengths = views[array.offset :][: len(array), :4].copy().view("<i4").ravel().astype(np.int64)
        return np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    if any(is_one(kind) for is_one in texts):
        return pc.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if types.is_nested(kind) or types.is_dictionary(kind) or hasattr(kind, "storage_type"):
        raise ValueError(f"words or runs of type {kind!s:.100} are not taken")
    width = 1 if types.is_boolean(kind) or types.is_null(kind) else kind.bit_width // 8
    return np.full(len(array), width, dtype=np.int64)


def _compressed(metadata: memoryview) -> Iterator[tuple[int, int]]:
    """Yield start and length of the buffers of a batch, if they are compressed."""
    message = _flatbuffer(metadata, 0)
    kind_at, header_at = _field(metadata, message, 1), _field(metadata, message, 2)
    if not kind_at or not header_at or metadata[kind_at] not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return
    batch = _flatbuffer(metadata, header_at)
    if metadata[kind_at] == _DICTIONARY_BATCH:
        data_at = _field(metadata, batch, 1)
        if not data_at:
            return
        batch = _flatbuffer(metadata, data_at)
    buffers_at = _field(metadata, batch, 2)
    if not buffers_at or not (_field(metadata, batch, 3) or _is_of_old(metadata, message)):
        return
    first = _flatbuffer(metadata, buffers_at)
    (n,) = struct.unpack_from("<I", metadata, first)
    for at in range(n):
        yield struct.unpack_from("<qq", metadata, first + 4 + 16 * at)


def _is_of_old(metadata: memoryview, message: int) -> bool:
    """Tell a message of before Arrow 1.0 with metadata of its own, where compression was announced then."""
    version_at = _field(metadata, message, 0)
    version = struct.unpack_from("<h", metadata, version_at)[0] if version_at else 0
    return version < _VERSION_5 and _field(metadata, message, 4) != 0


def _flatbuffer(metadata: memoryview, at: int) -> int:
    """Return where the offset at this place leads."""
    return at + int(struct.unpack_from("<I", metadata, at)[0])


def _field(metadata: memoryview, table: int, number: int) -> int:
    """Return where a field of a flatbuffer's table is, or 0 if it is left out."""
    entries = table - int(struct.unpack_from("<i", metadata, table)[0])
    size: int = struct.unpack_from("<H", metadata, entries)[0]
    if 4 + 2 * number >= size:
        return 0
    offset: Any = struct.unpack_from("<H", metadata, entries + 4 + 2 * number)[0]
    return table + int(offset) if offset else 0
