"""Whether bad files, kills, signals, forks and full disks end in one line of error, and lose nothing."""
