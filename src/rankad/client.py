"""A client of ``rankad serve`` with the methods of a detector."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import numpy as np

from rankad._base.arrays import Bools, Floats, Ints

__all__ = ["Client", "ServiceError"]

_ARROW = "application/vnd.apache.arrow.stream"
_JSON = "application/json"
# Answers after which the same request may succeed.
_PASSING = frozenset({408, 429, 502, 503, 504})


class ServiceError(RuntimeError):
    """An answer of the service other than success.

    Attributes
    ----------
    status : int
        Of the HTTP response.
    code : str
        What went wrong, in one word.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{message} (status {status}, {code})")
        self.status, self.code = status, code


class Client:
    """A model behind an address, used like a detector.

    Parameters
    ----------
    url : str
        Of the service, as ``http://127.0.0.1:8000``.
    model : str
        The name of the model.
    key : str, optional
        The API key.
    alpha : float, optional
        The false-alarm rate; by default the model's own.
    batch_rows : int
        Larger tables are sent in several requests.
    retries : int
        How often a request is tried again when the service is busy or out of reach.
    timeout : float
        Seconds.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000", "pump")  # doctest: +SKIP
    >>> client.predict({"flow": [5.1, 60.0], "mode": ["eco", "eco"]})  # doctest: +SKIP
    array([ 1, -1])
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        alpha: float | None = None,
        batch_rows: int = 100_000,
        retries: int = 4,
        timeout: float = 60.0,
        transport: Any = None,
    ) -> None:
        import httpx2 as httpx

        if batch_rows < 1 or retries < 0:
            raise ValueError(f"batch_rows must be >= 1 and retries >= 0, got {batch_rows} and {retries}.")
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, transport=transport)
        self._errors = (
            httpx.ConnectError,
            httpx.TimeoutException,
            httpx.RemoteProtocolError,
            httpx.ReadError,
        )
        self.model, self.alpha, self._batch_rows, self._retries = model, alpha, batch_rows, retries

    def card(self) -> dict[str, Any]:
        """Return what the service says of the model: columns, promise, digest."""
        return dict(self._ask("GET", f"/models/{self.model}").json())

    def p_values(self, X: Any) -> Floats:
        """Return the p-value of each row; small is abnormal."""
        return self._answers(X)["p_value"]

    def score_samples(self, X: Any) -> Floats:
        """Return the score of each row; higher is more normal."""
        return self._answers(X)["score"]

    def predict(self, X: Any) -> Ints:
        """Return -1 for alarms and 1 for other rows."""
        alarms: Bools = self._answers(X)["alarm"].astype(bool)
        return np.where(alarms, -1, 1)

    def explain(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return for each row, a dict of cells, which columns make it abnormal and what change would help."""
        answer = self._ask("POST", f"/models/{self.model}/explain", json={"rows": rows}, params=self._rate())
        return list(answer.json()["rows"])

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _rate(self) -> dict[str, float]:
        return {} if self.alpha is None else {"alpha": self.alpha}

    def _answers(self, X: Any) -> dict[str, Floats]:
        parts = [
            self._ask("POST", f"/models/{self.model}/score", params=self._rate(), **request)
            for request in self._requests(X)
        ]
        tables = [_columns(part) for part in parts]
        return {
            name: np.concatenate([table[name] for table in tables]) for name in ("p_value", "score", "alarm")
        }

    def _requests(self, X: Any) -> Iterator[dict[str, Any]]:
        if isinstance(X, np.ndarray):
            for at in range(0, max(len(X), 1), self._batch_rows):
                yield {"json": X[at : at + self._batch_rows].tolist()}
            return
        import pyarrow as pa

        from rankad.tables.frames import as_frame

        table = as_frame(X).to_arrow()
        for at in range(0, max(table.num_rows, 1), self._batch_rows):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table.slice(at, self._batch_rows))
            yield {"content": sink.getvalue().to_pybytes(), "headers": {"content-type": _ARROW}}

    def _ask(self, method: str, path: str, **request: Any) -> Any:
        for attempt in range(self._retries + 1):
            try:
                response = self._http.request(method, path, **request)
            except self._errors:
                if attempt == self._retries:
                    raise
            else:
                if response.status_code < 400:
                    return response
                if response.status_code not in _PASSING or attempt == self._retries:
                    raise _error_of(response)
            # Twice as long each time, and never all clients at once.
            time.sleep(0.1 * 2**attempt * random.uniform(0.5, 1.0))
        raise AssertionError("not reached")


def _columns(response: Any) -> dict[str, Any]:
    if response.headers["content-type"].startswith(_JSON):
        return {name: np.asarray(response.json()[name]) for name in ("p_value", "score", "alarm")}
    import pyarrow as pa

    with pa.ipc.open_stream(response.content) as stream:
        table = stream.read_all()
    return {name: table[name].to_numpy() for name in table.column_names}


def _error_of(response: Any) -> ServiceError:
    try:
        error = response.json()["error"]
        return ServiceError(response.status_code, str(error["code"]), str(error["message"]))
    except (ValueError, KeyError, TypeError):
        return ServiceError(response.status_code, "unknown", response.text[:300])
