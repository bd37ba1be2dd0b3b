// The oldest PyTorch that an extension shall run on. It sees no newer function.
//
//   -DTORCH_TARGET_VERSION=0x020a000000000000   // PyTorch 2.10 and all after it
//
// Without the macro an extension is for the version of these headers.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/headeronly/version.h>

#ifdef TORCH_TARGET_VERSION
#if TORCH_TARGET_VERSION > TORCH_ABI_VERSION
#error \
    "expected TORCH_TARGET_VERSION to be at most the version of these headers, see \
torch/headeronly/version.h"
#endif
#define TORCH_FEATURE_VERSION TORCH_TARGET_VERSION
#else
#define TORCH_FEATURE_VERSION TORCH_ABI_VERSION
#endif

#define TORCH_VERSION_2_10_0 (((0ULL + 2) << 56) | ((0ULL + 10) << 48))
#define TORCH_VERSION_2_11_0 (((0ULL + 2) << 56) | ((0ULL + 11) << 48))
#define TORCH_VERSION_2_12_0 (((0ULL + 2) << 56) | ((0ULL + 12) << 48))
#define TORCH_VERSION_2_13_0 (((0ULL + 2) << 56) | ((0ULL + 13) << 48))
#define TORCH_VERSION_2_14_0 (((0ULL + 2) << 56) | ((0ULL + 14) << 48))
#define TORCH_VERSION_2_15_0 (((0ULL + 2) << 56) | ((0ULL + 15) << 48))
