"""zuko: normalising flows."""

# SPDX-License-Identifier: Apache-2.0

import zuko
from uses import descend, draw, main, settle, use


@use("train flows, sample from them")
def flows():
    found = []
    for flow in (
        zuko.flows.MAF(2, 1, transforms=2, hidden_features=[8]),
        zuko.flows.NSF(2, 1, transforms=2, hidden_features=[8], randperm=False),
    ):
        settle(flow)
        x, c = draw(8, 2), draw(8, 1)
        found.append(descend(flow, lambda: -flow(c).log_prob(x).mean()))
        found.append(list(flow(c[:1]).rsample((4,)).shape))
    return found


if __name__ == "__main__":
    main("zuko")
