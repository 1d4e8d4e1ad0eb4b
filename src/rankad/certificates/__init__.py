"""Certificates: what is promised about false alarms, for one rate, for all rates and for many rows.

`laws` holds the formulas of n calibration rows, `certificate` applies them to a detector, and `discoveries`
decides over a batch of p-values.
"""
