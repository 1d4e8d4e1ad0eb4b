"""Minimum volume sets as objects: the region a detector calls normal, its volume, and curves."""
