"""Detection quality beside the peers: ``python -m benchmarks.quality`` measures, ``quality.md`` shows."""
