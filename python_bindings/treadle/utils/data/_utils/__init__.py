"""Parts of data loading by the names that programs know them by from PyTorch's inside.

Example:

    from treadle.utils.data._utils.collate import default_collate
"""

# SPDX-License-Identifier: Apache-2.0

from treadle.utils.data import fetch as fetch
from treadle.utils.data import worker as worker
from treadle.utils.data._utils import collate as collate
