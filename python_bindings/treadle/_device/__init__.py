"""Devices: their modules (`treadle.cuda`, `treadle.NAME`), streams, memory and random numbers."""
