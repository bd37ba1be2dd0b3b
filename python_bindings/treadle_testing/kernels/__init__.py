"""A checker of kernels, for those who write them: `python -m treadle check-kernel`.

The guide is docs/checking-kernels.md.
"""

# SPDX-License-Identifier: Apache-2.0
