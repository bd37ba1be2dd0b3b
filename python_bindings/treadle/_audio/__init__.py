"""torchaudio's operators, for the package torchaudio, whose compiled library is for PyTorch.

    treadle.ops.load_library(".../torchaudio/lib/libtorchaudio.abi3.so")    # defines them from this
    treadle.ops.torchaudio.forced_align(log_probs, targets, lengths, target_lengths, 0)

They compute on the CPU. Where one has no version for a device, torchaudio's own Python is used.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from typing import Tuple

from treadle import library
from treadle._audio import alignment, loops, transducer
from treadle.library import Library

_OPERATORS = {
    "_lfilter_core_loop(Tensor input_signal_windows, Tensor a_coeff_flipped, "
    "Tensor(a!) padded_output_waveform) -> Tensor(a!)": loops.recursive_filter,
    "_overdrive_core_loop(Tensor waveform, Tensor temp, Tensor(a!) last_in, Tensor(b!) last_out, "
    "Tensor(c!) output_waveform) -> (Tensor(a!), Tensor(b!), Tensor(c!))": loops.overdrive,
    "forced_align(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, "
    "int blank) -> (Tensor, Tensor)": alignment.forced_align,
    "rnnt_loss_forward(Tensor logits, Tensor targets, Tensor logit_lengths, "
    "Tensor target_lengths, int blank, float clamp, bool fused_log_softmax) "
    "-> (Tensor, Tensor)": transducer.loss_and_gradient,
}
_ABOUT = {
    "cuda_version() -> int?": lambda: None,
    "is_align_available() -> bool": lambda: True,
}


@functools.lru_cache(maxsize=None)
def define() -> Tuple[Library, Library]:
    """Define them, for as long as the program runs."""
    own, about = Library("torchaudio", "FRAGMENT"), Library("_torchaudio", "FRAGMENT")
    for namespace, operators in ((own, _OPERATORS), (about, _ABOUT)):
        for schema, function in operators.items():
            library.define(namespace, schema)(function)
    return own, about
