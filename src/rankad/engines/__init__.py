"""Fit and score rows in partitions: the steps that Spark, Dask and a single process share."""
