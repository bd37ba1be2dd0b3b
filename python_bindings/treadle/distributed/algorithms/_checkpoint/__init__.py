"""Modules whose activations are computed again in backward: see checkpoint_wrapper."""

# SPDX-License-Identifier: Apache-2.0
