// Every helper function that a formula in derivatives.yaml may call, a file for each family of
// operators.
#pragma once

#include "autograd/formulas_attention.h"
#include "autograd/formulas_convolution.h"
#include "autograd/formulas_embedding_bag.h"
#include "autograd/formulas_fft.h"
#include "autograd/formulas_indexing.h"
#include "autograd/formulas_linalg.h"
#include "autograd/formulas_losses.h"
#include "autograd/formulas_matmul.h"
#include "autograd/formulas_norm.h"
#include "autograd/formulas_norm_group.h"
#include "autograd/formulas_pointwise.h"
#include "autograd/formulas_pooling.h"
#include "autograd/formulas_reduction.h"
#include "autograd/formulas_rnn.h"
#include "autograd/formulas_sampling.h"
#include "autograd/formulas_shape.h"
#include "autograd/formulas_special.h"
#include "autograd/formulas_statistics.h"
