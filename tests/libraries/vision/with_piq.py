"""piq: measures of pictures."""

# SPDX-License-Identifier: Apache-2.0

import piq
from uses import main, uniform, use


@use("similarity measures for two images")
def alike():
    x, y = uniform(1, 3, 96, 96).requires_grad_(), uniform(1, 3, 96, 96)
    loss = piq.SSIMLoss(data_range=1.0)(x, y)
    loss.backward()
    measures = (piq.psnr, piq.fsim, piq.vif_p, piq.gmsd, piq.haarpsi, piq.vsi, piq.mdsi)
    return [loss, x.grad, *(measure(x.detach(), y) for measure in measures)]


if __name__ == "__main__":
    main("piq")
