"""The parts of treadle.library."""

# SPDX-License-Identifier: Apache-2.0
