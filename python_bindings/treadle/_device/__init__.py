"""Devices: their modules (`treadle.cuda`, `treadle.NAME`), streams, memory and random numbers."""

# SPDX-License-Identifier: Apache-2.0
