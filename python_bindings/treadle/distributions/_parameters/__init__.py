"""Parameters that several distributions have in common."""

# SPDX-License-Identifier: Apache-2.0
