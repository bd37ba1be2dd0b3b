"""How accurate functions are: the table of bounds, references of higher precision, the measure."""

# SPDX-License-Identifier: Apache-2.0
