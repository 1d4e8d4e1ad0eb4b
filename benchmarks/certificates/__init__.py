"""How often each promise of `rankad.certificates` and `rankad.monitoring` fails."""
