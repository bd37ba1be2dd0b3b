"""How long ranks take to communicate: formulas, measurements on shaped links, predictions."""

# SPDX-License-Identifier: Apache-2.0
