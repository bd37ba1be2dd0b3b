"""Whether the solver z3 can be used, which nothing here calls: never."""

# SPDX-License-Identifier: Apache-2.0

HAS_Z3 = False
