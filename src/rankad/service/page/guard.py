"""What keeps other web pages out: headers, and where a request comes from."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from rankad.service.errors import RequestError

# Sent with every request that changes something. Another site cannot set it without being allowed to first.
MARK = "x-rankad-page"

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


def check_same_origin(headers: Mapping[str, str]) -> None:
    """Refuse a request that changes something unless the page itself sent it, or no browser at all.

    A browser says where a request comes from. Beside that, the page sets a header of its own, for which a
    page of another site would need a permission that is never given.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    other = site not in (None, "same-origin") or (
        origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    )
    if other or headers.get(MARK) is None:
        raise RequestError(
            403, "cross_site", f"only the page of this service may do that; it sends the header {MARK}: 1"
        )
