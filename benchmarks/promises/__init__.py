"""Whether false alarms come at the rate asked for, on laws of nominal rows made up to break it."""
