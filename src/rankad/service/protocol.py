"""HTTP as uvicorn speaks it, with an end to the patience for slow clients and long headers."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MOST_HEADER_BYTES = 64 * 1024
# A colon, a space and the end of the line.
_BESIDE = 4


class PatientProtocol(HttpToolsProtocol):
    """A connection that is closed if headers take too long or are too many, or if answers are not taken.

    Uvicorn itself waits for ever for both, and goes on reading a body that was refused. (The time for a body
    that is wanted is limited in `Service.body`, where it can be answered.)

    A client that has sent its request and shuts down its half of the connection still gets its answer.

    Attributes
    ----------
    header_seconds, answer_seconds : float
        The patience for headers, from their first byte or from the connection, and for an answer to be taken.
    rest_seconds : float
        The patience for the rest of a body whose request has been answered.
    """

    header_seconds = 30.0
    answer_seconds = 60.0
    rest_seconds = 5.0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._header_end: asyncio.TimerHandle | None = None
        self._answer_end: asyncio.TimerHandle | None = None
        self._rest_end: asyncio.TimerHandle | None = None
        self._header_bytes = 0
        self._too_long = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for headers from here on."""
        super().connection_made(transport)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._headers_came()
        self._rest_came()
        self.resume_writing()
        super().connection_lost(exc)

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Keep the other half open while an answer to a whole request is due; TLS has no halves."""
        cycle = self.cycle
        if self.scheme == "https" or cycle is None or cycle.response_complete or cycle.more_body:
            return None
        cycle.keep_alive = False
        return True

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
        """Wait no longer, and measure headers that came in one piece."""
        self._headers_came()
        size = len(self.url) + sum(len(name) + len(value) + _BESIDE for name, value in self.headers)
        if size > _MOST_HEADER_BYTES:
            self._too_long = True
            raise ValueError("the headers are too long")
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be parsed, or is not to be."""
        if self._too_long:
            self._refuse(b"431 Request Header Fields Too Large")
        else:
            super().send_400_response(msg)

    def on_response_complete(self) -> None:
        """Wait for the rest of a body that nobody wants, but not for ever."""
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body and not self.transport.is_closing():
            self._rest_end = self.loop.call_later(self.rest_seconds, self.transport.abort)

    def on_message_complete(self) -> None:
        """Wait no longer for the rest."""
        self._rest_came()
        super().on_message_complete()

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

    def _rest_came(self) -> None:
        if self._rest_end is not None:
            self._rest_end.cancel()
            self._rest_end = None

    def _refuse(self, status: bytes) -> None:
        self._headers_came()
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-length: 0\r\n\r\n" % status)
            self.transport.close()
