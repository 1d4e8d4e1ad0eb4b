"""Clients of ``rankad serve`` with the methods of a detector, one that waits and one for asyncio."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from rankad._base.arrays import Bools, Floats, Ints

__all__ = ["AsyncClient", "Client", "ServiceError"]

_ARROW = "application/vnd.apache.arrow.stream"
# Answers after which the same request may succeed.
_PASSING = frozenset({408, 429, 502, 503, 504})
_MOST_EXPLAINED = 1_000
# Requests of one table that are under way at the same time.
_AT_ONCE = 4


class ServiceError(RuntimeError):
    """An answer of the service other than success.

    Attributes
    ----------
    status : int
        Of the HTTP response.
    code : str
        What went wrong, in one word.

    Examples
    --------
    >>> error = ServiceError(404, "no_model", "there is no model 'x'")
    >>> print(error, error.status, error.code)
    there is no model 'x' (status 404, no_model) 404 no_model
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{message} (status {status}, {code})")
        self.status, self.code = status, code


class _Client:
    """What both clients share: what to ask, what the answers mean, when to try again."""

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
        certificate: str | None = None,
        transport: Any = None,
    ) -> None:
        try:
            import httpx2 as httpx
        except ImportError as error:
            raise ImportError(
                f"a client needs the extra client ({error}): pip install 'rankad[client]'"
            ) from error
        if not url.lower().startswith(("http://", "https://")):
            raise ValueError(
                f"url must begin with http:// or https://, as in http://127.0.0.1:8000; got {url!r}."
            )
        if batch_rows < 1 or retries < 0:
            raise ValueError(f"batch_rows must be >= 1 and retries >= 0, got {batch_rows} and {retries}.")
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        kind = httpx.AsyncClient if isinstance(self, AsyncClient) else httpx.Client
        trusted = True if certificate is None else ssl.create_default_context(cafile=certificate)
        self._http: Any = kind(
            base_url=url, headers=headers, timeout=timeout, verify=trusted, transport=transport
        )
        self._errors = (
            httpx.ConnectError,
            httpx.TimeoutException,
            httpx.RemoteProtocolError,
            httpx.ReadError,
            httpx.WriteError,
        )
        self.model, self.alpha, self._batch_rows, self._retries = model, alpha, batch_rows, retries
        self._card: dict[str, Any] | None = None

    def _rate(self) -> dict[str, float]:
        return {} if self.alpha is None else {"alpha": self.alpha}

    def _path(self, what: str = "") -> str:
        return f"/models/{self.model}{what}"

    def _scoring(self, X: Any) -> Iterator[dict[str, Any]]:
        """Yield the requests that score a table, or an array once the card is known."""
        import pyarrow as pa

        from rankad.tables.frames import as_frame

        table = as_frame(self._named(X) if _is_array(X) else X).to_arrow()
        for at in range(0, max(table.num_rows, 1), self._batch_rows):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table.slice(at, self._batch_rows))
            yield {
                "content": sink.getvalue().to_pybytes(),
                "headers": {"content-type": _ARROW},
                "params": self._rate(),
            }

    def _explaining(self, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for at in range(0, len(rows), _MOST_EXPLAINED):
            yield {"json": {"rows": rows[at : at + _MOST_EXPLAINED]}, "params": self._rate()}

    def _named(self, X: Any) -> dict[str, Floats]:
        assert self._card is not None
        rows: Floats = np.asarray(X, dtype=np.float64)
        names = self._card["columns"]
        if self._card["kind"] == "TableDetector":
            raise TypeError("this model is of a table; name the columns of the array: dict(zip(names, X.T)).")
        if rows.ndim != 2:
            raise ValueError(f"X must be an array of shape (n, d), got one of shape {rows.shape}.")
        if names and len(names) != rows.shape[1]:
            raise ValueError(f"X must have the {len(names)} columns of the model, got {rows.shape[1]}.")
        return dict(zip(names or map(str, range(rows.shape[1])), rows.T, strict=True))

    def _no_answer(self, error: Exception) -> Exception:
        """Return an error with the address that could not be reached."""
        return type(error)(
            f"no answer from {self._http.base_url} ({error}). Is rankad serve running there, and is the url "
            f"right?"
        )

    def _wait_after(self, attempt: int, response: Any) -> float | None:
        """Return how long to wait before another try; None for an answer. Raise if there is to be none."""
        if response is not None and response.status_code < 400:
            return None
        if response is not None and (attempt == self._retries or response.status_code not in _PASSING):
            raise _error_of(response)
        # Twice as long each time, and never all clients at once.
        return float(0.1 * 2**attempt * random.uniform(0.5, 1.0))


class Client(_Client):
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
        How often a request is tried again when the service is busy or out of reach. A request whose answer
        was lost is scored twice, and counted twice in the history.
    timeout : float
        Seconds.
    certificate : str, optional
        PEM file of the service's certificate or of who signed it, if the system does not trust it.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000", "pump")  # doctest: +SKIP
    >>> client.predict({"flow": [5.1, 60.0], "mode": ["eco", "eco"]})  # doctest: +SKIP
    array([ 1, -1])
    >>> with Client("http://127.0.0.1:8000", "pump", alpha=0.1) as client:  # doctest: +SKIP
    ...     client.p_values(frame), client.score_samples(frame)
    ...     client.explain([{"flow": 60.0, "mode": "eco"}])
    ...     client.card()["alpha"], client.history()["alarms"]
    ...     client.close()  # or leave the block
    """

    def card(self) -> dict[str, Any]:
        """Return what the service says of the model: columns, promise, digest."""
        self._card = self._ask("GET", self._path()).json()
        return dict(self._card or {})

    def p_values(self, X: Any) -> Floats:
        """Return the p-value of each row; small is abnormal."""
        return self._answers(X)["p_value"]

    def score_samples(self, X: Any) -> Floats:
        """Return the score of each row; higher is more normal."""
        return self._answers(X)["score"]

    def predict(self, X: Any) -> Ints:
        """Return -1 for alarms and 1 for other rows."""
        return _predicted(self._answers(X))

    def explain(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return for each row, a dict of cells, which columns make it abnormal and what change would help."""
        answers = [self._ask("POST", self._path("/explain"), **each) for each in self._explaining(rows)]
        return [row for answer in answers for row in answer.json()["rows"]]

    def history(self, alarms: int = 100) -> dict[str, Any]:
        """Return rows and alarms so far beside the promise, and the latest alarms."""
        return dict(self._ask("GET", self._path("/history"), params={"alarms": alarms}).json())

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answers(self, X: Any) -> dict[str, Floats]:
        if _is_array(X) and self._card is None:
            self.card()
        return _joined([self._ask("POST", self._path("/score"), **each) for each in self._scoring(X)])

    def _ask(self, method: str, path: str, **request: Any) -> Any:
        for attempt in range(self._retries + 1):
            response = None
            try:
                response = self._http.request(method, path, **request)
            except self._errors as error:
                if attempt == self._retries:
                    raise self._no_answer(error) from error
            wait = self._wait_after(attempt, response)
            if wait is None:
                return response
            time.sleep(wait)
        raise AssertionError("not reached")


class AsyncClient(_Client):
    """`Client` for asyncio: the same methods, to be awaited. A large table is sent in a few requests at once.

    Parameters
    ----------
    url, model, key, alpha, batch_rows, retries, timeout, certificate
        As of `Client`.

    Examples
    --------
    >>> async def alarms(table):
    ...     async with AsyncClient("http://127.0.0.1:8000", "pump", alpha=0.01) as client:
    ...         if (await client.card())["columns"]:
    ...             print(await client.history(), await client.explain(table.to_dicts()))
    ...         scores = await client.score_samples(table), await client.p_values(table)
    ...         await client.close()  # not needed at the end of the block
    ...         return scores, await client.predict(table)
    """

    async def card(self) -> dict[str, Any]:
        """Return what the service says of the model: columns, promise, digest."""
        self._card = (await self._ask("GET", self._path())).json()
        return dict(self._card or {})

    async def p_values(self, X: Any) -> Floats:
        """Return the p-value of each row; small is abnormal."""
        return (await self._answers(X))["p_value"]

    async def score_samples(self, X: Any) -> Floats:
        """Return the score of each row; higher is more normal."""
        return (await self._answers(X))["score"]

    async def predict(self, X: Any) -> Ints:
        """Return -1 for alarms and 1 for other rows."""
        return _predicted(await self._answers(X))

    async def explain(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return for each row, a dict of cells, which columns make it abnormal and what change would help."""
        answers = [await self._ask("POST", self._path("/explain"), **each) for each in self._explaining(rows)]
        return [row for answer in answers for row in answer.json()["rows"]]

    async def history(self, alarms: int = 100) -> dict[str, Any]:
        """Return rows and alarms so far beside the promise, and the latest alarms."""
        return dict((await self._ask("GET", self._path("/history"), params={"alarms": alarms})).json())

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _answers(self, X: Any) -> dict[str, Floats]:
        if _is_array(X) and self._card is None:
            await self.card()
        requests, answers = enumerate(self._scoring(X)), dict[int, Any]()

        async def send() -> None:
            # Requests are made when their turn comes, so that few of them are in memory.
            for at, request in requests:
                answers[at] = await self._ask("POST", self._path("/score"), **request)

        senders = [asyncio.ensure_future(send()) for _ in range(_AT_ONCE)]
        try:
            await asyncio.gather(*senders)
        finally:
            # After an error the others have nothing to do.
            for sender in senders:
                sender.cancel()
        return _joined([answers[at] for at in range(len(answers))])

    async def _ask(self, method: str, path: str, **request: Any) -> Any:
        for attempt in range(self._retries + 1):
            response = None
            try:
                response = await self._http.request(method, path, **request)
            except self._errors as error:
                if attempt == self._retries:
                    raise self._no_answer(error) from error
            wait = self._wait_after(attempt, response)
            if wait is None:
                return response
            await asyncio.sleep(wait)
        raise AssertionError("not reached")


def _is_array(X: Any) -> bool:
    """Tell rows of numbers without names from a table."""
    if isinstance(X, (list, tuple)):
        return not (X and isinstance(X[0], dict))
    return isinstance(X, np.ndarray)


def _joined(responses: Sequence[Any]) -> dict[str, Floats]:
    import pyarrow as pa

    tables = [pa.ipc.open_stream(response.content).read_all() for response in responses]
    whole = pa.concat_tables(tables)
    return {name: whole[name].to_numpy() for name in ("p_value", "score", "alarm")}


def _predicted(answers: dict[str, Any]) -> Ints:
    alarms: Bools = answers["alarm"].astype(bool)
    return np.where(alarms, -1, 1)


def _error_of(response: Any) -> ServiceError:
    try:
        error = response.json()["error"]
        return ServiceError(response.status_code, str(error["code"]), str(error["message"]))
    except (ValueError, KeyError, TypeError):
        return ServiceError(response.status_code, "unknown", response.text[:300])
