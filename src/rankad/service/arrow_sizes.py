"""How large the compressed buffers of an Arrow stream become, read before any of them is unpacked.

A buffer of a compressed batch begins with its length when unpacked. Where the buffers are is written in the
batch's metadata, a flatbuffer (Arrow's Message.fbs), of which pyarrow shows only the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

_VERSION_5 = 4
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3


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
