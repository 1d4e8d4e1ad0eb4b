"""From p-values to alarms, to how many of them chance explains, and to a verdict on a whole table."""
