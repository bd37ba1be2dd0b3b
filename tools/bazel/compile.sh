#!/bin/sh
# Compiles one source and lists the headers that it did not open, so that a change in one of those (or a
# new one beside them) does not compile the source again.
#
#     compile.sh UNUSED_LIST BIN_DIR COMPILER ARGUMENT...
# SPDX-License-Identifier: Apache-2.0
unused=$1 bin=$2
shift 2
"$@" -MD -MF "$unused.d" || exit
find -L core codegen aten autograd python_bindings tests external/python \
  "$bin/generated" -name '*.h' 2>/dev/null | sort >"$unused.all"
tr -s ' \\' '\n\n' <"$unused.d" | sort | comm -13 - "$unused.all" >"$unused"
rm "$unused.d" "$unused.all"
