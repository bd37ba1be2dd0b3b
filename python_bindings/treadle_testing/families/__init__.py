"""Sample functions, a module for each family of operators."""

# SPDX-License-Identifier: Apache-2.0
