"""The parts of treadle.run: `import torch` gives this package."""
