"""Loops compiled by numba."""
