"""Speed beside the peers: ``python -m benchmarks`` measures, ``speed.md`` shows."""
