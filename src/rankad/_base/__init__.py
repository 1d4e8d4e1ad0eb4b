"""What everything else is built on: array types, checks of parameters, threads, files, progress."""
