"""The parts of treadle.library."""
