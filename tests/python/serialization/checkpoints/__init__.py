"""Hostile and damaged files for the tests of loading."""

# SPDX-License-Identifier: Apache-2.0
