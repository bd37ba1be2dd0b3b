"""The parts of treadle.utils.benchmark."""

# SPDX-License-Identifier: Apache-2.0
