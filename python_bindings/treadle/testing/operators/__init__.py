"""Tests of every operator, driven by the model: samples, NumPy references, and the checks that run
over both.
"""
