"""The page at ``/``: choose a model and a table, move alpha, see the alarms change."""
