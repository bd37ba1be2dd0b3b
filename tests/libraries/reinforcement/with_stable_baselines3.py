"""stable-baselines3: reinforcement learning."""

# SPDX-License-Identifier: Apache-2.0

import tempfile

import numpy
import stable_baselines3
from uses import main, settle, use


def learned(kind, environment, **options):
    model = kind("MlpPolicy", environment, seed=1, device="cpu", **options)
    settle(model.policy)
    state = numpy.zeros((1, *model.observation_space.shape), dtype="float32")
    before = model.predict(state, deterministic=True)[0]
    model.learn(64)
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder + "/model")
        again = kind.load(folder + "/model", device="cpu")
    after = model.predict(state, deterministic=True)[0]
    same = numpy.allclose(again.predict(state, deterministic=True)[0], after)
    finite = all(bool(p.isfinite().all()) for p in model.policy.parameters())
    return [before, bool(same), finite, model.num_timesteps]


@use("PPO and A2C on CartPole")
def on_policy():
    ppo = learned(stable_baselines3.PPO, "CartPole-v1", n_steps=32, batch_size=16, n_epochs=2)
    return [ppo, learned(stable_baselines3.A2C, "CartPole-v1", n_steps=16)]


@use("DQN on CartPole, SAC and TD3 on Pendulum")
def off_policy():
    small = {"learning_starts": 16, "buffer_size": 200, "batch_size": 8}
    return [
        learned(stable_baselines3.DQN, "CartPole-v1", **small),
        learned(stable_baselines3.SAC, "Pendulum-v1", **small),
        learned(stable_baselines3.TD3, "Pendulum-v1", **small),
    ]


if __name__ == "__main__":
    main("stable-baselines3")
