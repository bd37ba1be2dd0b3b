"""C++ for what the model holds: names, types, parameters, defaults and expressions.

`code` is a small model of C++ itself, which knows where parentheses go; the others make it.
"""

# SPDX-License-Identifier: Apache-2.0
