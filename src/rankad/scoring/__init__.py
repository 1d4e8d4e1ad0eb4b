"""Rows scored: one batch as a pure function (`batch`), or a file of any size (`score_file`)."""
