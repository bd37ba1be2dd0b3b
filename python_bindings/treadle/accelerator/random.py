"""Seeds and states of the random numbers of the device beside the CPU."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle._device import facade

get_rng_state = facade.asked("get_rng_state")
get_rng_state_all = facade.asked("get_rng_state_all")
initial_seed = facade.asked("initial_seed")
manual_seed = facade.asked("manual_seed")
manual_seed_all = facade.asked("manual_seed_all")
seed = facade.asked("seed")
seed_all = facade.asked("seed_all")
set_rng_state = facade.asked("set_rng_state")
set_rng_state_all = facade.asked("set_rng_state_all")
