"""Files that TensorBoard shows.

Example:

    with treadle.utils.tensorboard.SummaryWriter("runs/first") as writer:
        writer.add_scalar("loss", loss, step)
        writer.add_histogram("weight", net.weight, step)
"""

# SPDX-License-Identifier: Apache-2.0

from .records import FileWriter
from .writer import SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
