// Every helper function that a formula in derivatives.yaml may call. Each family of operators has
// one header.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aten/ops/attention/gradients.h"
#include "aten/ops/convolution/gradients.h"
#include "aten/ops/convolution/gradients_pooling.h"
#include "aten/ops/fft/gradients.h"
#include "aten/ops/indexing/gradients.h"
#include "aten/ops/indexing/gradients_embedding_bag.h"
#include "aten/ops/indexing/gradients_reindex.h"
#include "aten/ops/linalg/gradients.h"
#include "aten/ops/losses/gradients.h"
#include "aten/ops/matmul/gradients.h"
#include "aten/ops/normalization/gradients.h"
#include "aten/ops/normalization/gradients_group.h"
#include "aten/ops/pointwise/gradients.h"
#include "aten/ops/recurrent/gradients.h"
#include "aten/ops/reductions/gradients.h"
#include "aten/ops/resampling/gradients.h"
#include "aten/ops/sorting/gradients.h"
#include "aten/ops/sparse/gradients.h"
#include "aten/ops/sparse/gradients_triangular.h"
#include "aten/ops/special/gradients.h"
#include "aten/ops/statistics/gradients.h"
#include "aten/ops/views/gradients.h"
