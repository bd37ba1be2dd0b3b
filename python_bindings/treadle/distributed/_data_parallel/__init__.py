"""The parts of nn.parallel.DistributedDataParallel: `model` has the class, `reducer` averages the
gradients, in the tensors of `buckets`.
"""

# SPDX-License-Identifier: Apache-2.0
