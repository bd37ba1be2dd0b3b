// Handles and results of the C functions of PyTorch's stable ABI.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#define AOTI_TORCH_EXPORT __attribute__((__visibility__("default")))

// Handles point to objects of the library. An owned one is given back to its delete function.
struct AtenTensorOpaque;
using AtenTensorHandle = AtenTensorOpaque*;
struct AtenGeneratorOpaque;
using AtenGeneratorHandle = AtenGeneratorOpaque*;

// The result of a function: whether it succeeded.
using AOTITorchError = int32_t;
#define AOTI_TORCH_SUCCESS 0
#define AOTI_TORCH_FAILURE 1
