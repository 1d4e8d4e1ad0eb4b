"""Nominal rows and a plan to a `RankModel`."""
