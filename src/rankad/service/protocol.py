"""HTTP as uvicorn speaks it, with an end to the patience for slow clients and long headers."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MOST_HEADER_BYTES = 64 * 1024


class PatientProtocol(HttpToolsProtocol):
    """A connection that is closed if headers take too long or are too many, or if answers are not taken.

    Uvicorn itself waits for ever for both. (The time for a body is limited in `Service.body`, where it can be
    answered.)

    Attributes
    ----------
    header_seconds, answer_seconds : float
        The patience for headers, from their first byte or from the connection, and for an answer to be taken.
    """

    header_seconds = 30.0
    answer_seconds = 60.0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._header_end: asyncio.TimerHandle | None = None
        self._answer_end: asyncio.TimerHandle | None = None
        self._header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for headers from here on."""
        super().connection_made(transport)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._headers_came()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what comes before the end of the headers."""
        super().data_received(data)
        if self._header_end is not None:
            self._header_bytes += len(data)
            if self._header_bytes > _MOST_HEADER_BYTES:
                self._refuse(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        """Wait for the headers of another request."""
        if self._header_end is None:
            self._await_headers()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Wait no longer."""
        self._headers_came()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        """Wait for the client to take what was written."""
        super().pause_writing()
        if self._answer_end is None:
            self._answer_end = self.loop.call_later(self.answer_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Wait no longer: it was taken."""
        if self._answer_end is not None:
            self._answer_end.cancel()
            self._answer_end = None
        super().resume_writing()

    def _await_headers(self) -> None:
        self._header_bytes = 0
        self._header_end = self.loop.call_later(self.header_seconds, self._refuse, b"408 Request Timeout")

    def _headers_came(self) -> None:
        if self._header_end is not None:
            self._header_end.cancel()
            self._header_end = None

    def _refuse(self, status: bytes) -> None:
        self._headers_came()
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-length: 0\r\n\r\n" % status)
            self.transport.close()
