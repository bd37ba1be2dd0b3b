"""Distributions that are another one, seen through transforms.

Programs and pickles name the modules as PyTorch does, `distributions.weibull`.
"""

# SPDX-License-Identifier: Apache-2.0
