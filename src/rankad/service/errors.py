"""What a request can be refused for."""

from __future__ import annotations


class RequestError(Exception):
    """A request that cannot be answered as it stands.

    Parameters
    ----------
    status : int
        Of the HTTP response.
    code : str
        What went wrong, in one word for programs.
    message : str
        What went wrong and what to do, for people.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
