"""From nominal rows to a calibrated ranker, one stage a module; stages do not import one another."""
