"""The parts of treadle.utils.benchmark."""
