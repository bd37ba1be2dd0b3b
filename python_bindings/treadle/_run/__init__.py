"""The parts of treadle.run: `import torch` gives this package."""

# SPDX-License-Identifier: Apache-2.0
