"""What the name of a column says about it: that it holds ids, times, years or versions."""

from __future__ import annotations

import re

_IDS = """
 id ids key uid nr no code codes zip plz postcode phone tel account barcode ean iban imei invoice isbn mcc
port ref reference serial sku ticket
"""
_MEASURES = """
 amount area average avg balance cost count counts current delay depth distance duration energy flow freq
frequency height humidity items length level load mass max mean min power pressure price quantity rate ratio
resistance rpm sales score share size speed std sum temp temperature time torque total usage value values
volt voltage volts volume weight width
"""
_ID_NAMES, _MEASURED = frozenset(_IDS.split()), frozenset(_MEASURES.split())
_VERSION_NAMES = frozenset({"version", "release", "revision", "firmware", "fw", "build", "ver"})
# As in id_client, unless something measured follows.
_IDS_FIRST = frozenset({"id", "ids", "uid"})
_NUMBER_WORDS = frozenset({"no", "nr", "num", "number", "nummer"})
_TIME_NAMES = ("time", "date", "stamp", "epoch", "ts", "datum", "zeit")


def suggests_time(name: str) -> bool:
    """Tell whether a name has a word for times in it."""
    return any(word in _TIME_NAMES for word in _words(name)) or any(
        part in name.lower() for part in _TIME_NAMES[:4]
    )


def suggests_year(name: str) -> bool:
    """Tell whether a name has a word for years in it."""
    return any(word in ("year", "jahr", "yr", "annee", "ano") for word in _words(name))


def suggests_version(name: str) -> bool:
    """Tell whether the last word of a name is one for versions."""
    return not _VERSION_NAMES.isdisjoint(_words(name)[-1:])


def suggests_id(name: str) -> bool:
    """Tell whether a name says that its numbers are ids, by its last word."""
    words = _words(name)
    if len(words) > 1 and words[-1] in _NUMBER_WORDS:
        # The word before decides: an account number is an id, the number of something measured is not.
        if words[-2] in _MEASURED:
            return False
        words = words[:-1] if words[-1] not in _ID_NAMES else words
    if not words or words[-1] in _MEASURED:
        return False
    return words[-1] in _ID_NAMES or words[0] in _IDS_FIRST


def _words(name: str) -> list[str]:
    """Return the words of a name in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]
