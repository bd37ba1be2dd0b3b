// The kernels that are written by hand, by family; each function registers those of its file.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device.h"

namespace treadle_opencl {

void register_products(treadle_device_type type);      // mm addmm bmm baddbmm
void register_convolutions(treadle_device_type type);  // convolution and its gradients
void register_pools(treadle_device_type type);         // max and average pooling
void register_rows(treadle_device_type type);          // softmax, normalisation, nll_loss
void register_indexing(treadle_device_type type);      // index_select gather embedding argmax ...
void register_filling(treadle_device_type type);       // fill, arange, random numbers, cat, stack
void register_steps(treadle_device_type type);         // optimiser steps over lists of tensors

inline void register_kernels(treadle_device_type type) {
  register_products(type);
  register_convolutions(type);
  register_pools(type);
  register_rows(type);
  register_indexing(type);
  register_filling(type);
  register_steps(type);
}

}  // namespace treadle_opencl
