"""The kinds of stores: see treadle.distributed.store."""

# SPDX-License-Identifier: Apache-2.0
