"""The signs of constraints."""

# SPDX-License-Identifier: Apache-2.0

op_add = "+"
op_sub = "-"
op_mul = "*"
op_div = "/"
op_mod = "%"
op_eq = "="
op_neq = "!="
op_gt = ">"
op_lt = "<"
op_leq = "\N{LESS-THAN OR EQUAL TO}"
op_imp = "=>"
op_consistency = "~"
op_matching = "\N{CONTAINS AS NORMAL SUBGROUP}"
op_precision = "\N{SQUARE IMAGE OF OR EQUAL TO}"
