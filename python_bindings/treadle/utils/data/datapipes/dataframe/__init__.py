"""Pipes of tables: frames of pandas, or of what set_df_wrapper() names.

Example:

    frames = pipe._to_dataframes_pipe(dataframe_size=100, columns=["a", "b"])
    traced = frames.trace_as_dataframe()
    traced["c"] = traced["a"] + traced["b"]            # on each frame that comes
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle import _names

from ..datapipe import DFIterDataPipe
from .dataframes import CaptureDataFrame
from .datapipes import DataFramesAsTuplesPipe

__getattr__ = _names.attributes_of(__name__)

__all__ = ["CaptureDataFrame", "DFIterDataPipe", "DataFramesAsTuplesPipe"]
