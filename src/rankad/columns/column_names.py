"""What the name of a column says of it: that it names things, or holds times."""

from __future__ import annotations

import re

__all__ = [
    "is_named_like_a_time",
    "is_named_like_a_version",
    "is_named_like_a_year",
    "is_named_like_an_id",
]

# By their names, whole numbers that are no amounts.
_ID_NAMES = frozenset(
    {"id", "ids", "key", "uid", "nr", "no", "code", "codes", "zip", "plz", "postcode", "phone", "tel"}
    | {"account", "barcode", "ean", "iban", "imei", "invoice", "isbn", "mcc", "port", "ref", "reference"}
    | {"serial", "sku", "ticket"}
)
_VERSION_NAMES = frozenset({"version", "release", "revision", "firmware", "fw", "build", "ver"})
# As in id_client, unless something measured follows.
_IDS_FIRST = frozenset({"id", "ids", "uid"})
_NUMBER_WORDS = frozenset({"no", "nr", "num", "number", "nummer"})
_MEASURED = frozenset(
    {"amount", "area", "average", "avg", "balance", "cost", "count", "counts", "current", "delay", "depth"}
    | {"distance", "duration", "energy", "flow", "freq", "frequency", "height", "humidity", "items", "length"}
    | {"level", "load", "mass", "max", "mean", "min", "power", "pressure", "price", "quantity", "rate"}
    | {"ratio", "resistance", "rpm", "sales", "score", "share", "size", "speed", "std", "sum", "temp"}
    | {"temperature", "time", "torque", "total", "usage", "value", "values", "volt", "voltage", "volts"}
    | {"volume", "weight", "width"}
)
_TIME_NAMES = ("time", "date", "stamp", "epoch", "ts", "datum", "zeit")


def is_named_like_a_time(name: str) -> bool:
    """Tell whether the name of a column says that it holds times."""
    return bool(_words_of(name) & set(_TIME_NAMES)) or any(word in name.lower() for word in _TIME_NAMES[:4])


def is_named_like_a_year(name: str) -> bool:
    """Tell whether the name of a column says that it holds years."""
    return bool(_words_of(name) & {"year", "jahr", "yr", "annee", "ano"})


def is_named_like_a_version(name: str) -> bool:
    """Tell whether the last word of a column's name says that it holds versions."""
    return bool(_in_order(name)[-1:] and _in_order(name)[-1] in _VERSION_NAMES)


def is_named_like_an_id(name: str) -> bool:
    """Tell whether the name of a column says that its numbers name things: by its last word.

    >>> [is_named_like_an_id(name) for name in ("zip", "customerId", "account_number", "idClient")]
    [True, True, True, True]
    >>> [is_named_like_an_id(name) for name in ("account_balance", "id_count", "rpm_no", "number")]
    [False, False, False, False]
    """
    words = _in_order(name)
    if len(words) > 1 and words[-1] in _NUMBER_WORDS:
        # An account number is one by the word before; so is the number of something that is measured not.
        if words[-2] in _MEASURED:
            return False
        words = words[:-1] if words[-1] not in _ID_NAMES else words
    if not words or words[-1] in _MEASURED:
        return False
    return words[-1] in _ID_NAMES or words[0] in _IDS_FIRST


def _words_of(name: str) -> set[str]:
    """Return the words of a name such as card_no, cardNo or "card no", in lower case.

    >>> sorted(_words_of("customerId")), sorted(_words_of("ZIP-code"))
    (['customer', 'id'], ['code', 'zip'])
    """
    return set(_in_order(name))


def _in_order(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]
