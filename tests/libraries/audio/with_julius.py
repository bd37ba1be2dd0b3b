"""julius: filters and other rates of sound."""

# SPDX-License-Identifier: Apache-2.0

import julius
from uses import draw, main, use


@use("resampling, frequency bands, long convolutions")
def filters():
    x = draw(1, 1000)
    return [
        julius.resample_frac(x, 4, 5),
        julius.lowpass_filter(x, 0.1),
        julius.highpass_filter(x, 0.2),
        julius.SplitBands(8000, 4)(x),
        julius.fft_conv1d(draw(1, 1, 500), draw(2, 1, 100)),
    ]


if __name__ == "__main__":
    main("julius")
