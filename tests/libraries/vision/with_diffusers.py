"""diffusers: images from noise."""

# SPDX-License-Identifier: Apache-2.0

import tempfile

import torch
from diffusers import (
    AutoencoderKL,
    DDIMPipeline,
    DDIMScheduler,
    DDPMPipeline,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    UNet2DConditionModel,
    UNet2DModel,
)
from diffusers.training_utils import EMAModel
from uses import descend, draw, main, settle, use


def unet():
    model = UNet2DModel(
        sample_size=16,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        norm_num_groups=8,
        block_out_channels=(16, 32),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=8,
    )
    return settle(model)


@use("train a network to predict noise, with an average of its weights")
def train():
    model, noises = unet(), DDPMScheduler(num_train_timesteps=100)
    average = EMAModel(model.parameters(), decay=0.9)
    x, noise = draw(2, 3, 16, 16), draw(2, 3, 16, 16)
    steps = torch.tensor([3, 60])

    def loss():
        found = model(noises.add_noise(x, noise, steps), steps, return_dict=False)[0]
        return (found - noise).square().mean()

    losses = descend(model, loss)
    average.step(model.parameters())
    average.copy_to(model.parameters())
    return [losses, sum(p.abs().sum() for p in model.parameters())]


@use("make images by the pipelines DDPM and DDIM")
def pipelines():
    model = unet().eval()
    ddpm = DDPMPipeline(model, DDPMScheduler(num_train_timesteps=100))
    ddim = DDIMPipeline(model, DDIMScheduler(num_train_timesteps=100))
    found = []
    for pipe in (ddpm, ddim):
        pipe.set_progress_bar_config(disable=True)
        seed = torch.Generator().manual_seed(2)
        found.append(pipe(num_inference_steps=4, generator=seed, output_type="np").images)
    with tempfile.TemporaryDirectory() as folder:
        ddim.save_pretrained(folder)
        again = DDIMPipeline.from_pretrained(folder)
    again.set_progress_bar_config(disable=True)
    seed = torch.Generator().manual_seed(2)
    image = again(num_inference_steps=4, generator=seed, output_type="np").images
    return [*(f.shape for f in found), float(abs(image - found[1]).max()) < 1e-5]


@use("an autoencoder, a network with a condition")
def latent():
    coder = AutoencoderKL(
        block_out_channels=(8, 16),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        latent_channels=4,
        norm_num_groups=4,
    )
    settle(coder).eval()
    model = UNet2DConditionModel(
        sample_size=8,
        in_channels=4,
        out_channels=4,
        block_out_channels=(8, 16),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=12,
        attention_head_dim=4,
        norm_num_groups=4,
    )
    settle(model).eval()
    with torch.no_grad():
        hidden = coder.encode(draw(1, 3, 16, 16)).latent_dist.mode()
        found = model(hidden, 5, encoder_hidden_states=draw(1, 6, 12)).sample
        return [hidden, found, coder.decode(found).sample]


@use("steps of four schedulers")
def schedulers():
    results = []
    for kind in (
        DPMSolverMultistepScheduler,
        EulerDiscreteScheduler,
        DDIMScheduler,
        FlowMatchEulerDiscreteScheduler,
    ):
        steps = kind(num_train_timesteps=100)
        steps.set_timesteps(5)
        x = torch.linspace(-1, 1, 12).reshape(1, 3, 2, 2)
        for t in steps.timesteps:
            x = steps.step(0.1 * x, t, x).prev_sample
        results.append(x)
    return results


if __name__ == "__main__":
    main("diffusers")
