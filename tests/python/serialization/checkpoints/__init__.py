"""Hostile and damaged files for the tests of loading."""
