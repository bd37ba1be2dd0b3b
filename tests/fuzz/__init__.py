"""A fuzzer: calls every operator of the model with arguments that fit, that just do not, and that
make no sense, and says which calls end other than they may.

    python -m fuzz --calls 50000

A call is a recipe (recipe.py), drawn from a seed and a number (draw.py), so that any call of any
run can be made again. Processes make the calls (worker.py) and judge them (judge.py); another hands
out the work and sees which call killed or stopped one (runner.py). Each finding is made smaller
(shrink.py) and written down as a script (script.py).
"""

# SPDX-License-Identifier: Apache-2.0
