"""``rankad serve``: detectors behind an address."""
