"""Tests of every operator, driven by the model: samples, NumPy references, and the checks that run
over both.

They need pytest; those of Treadle's own operators need scipy too, for references. A library of
operators outside of Treadle is tested by them as well: see OperatorTests.
"""

# SPDX-License-Identifier: Apache-2.0

import pytest

# Assertions in these show their values, as those in a test do.
pytest.register_assert_rewrite(f"{__name__}.check", f"{__name__}.checks")

from .sample import Maker, Sample, samples  # noqa: E402
from .suite import OperatorTests  # noqa: E402

__all__ = ["Maker", "OperatorTests", "Sample", "samples"]
