"""Decisions over time: drift of normal behaviour, and alarms of a stream with few false ones among them."""
