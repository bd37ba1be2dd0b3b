// Kernels with one fault each, and right ones beside them, for test_check_kernel.py.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

struct Tensor {
  float* data;
  int64_t dim;
  const int64_t* sizes;
  const int64_t* strides;

  int64_t numel() const {
    int64_t n = 1;
    for (int64_t d = 0; d < dim; ++d) n *= sizes[d];
    return n;
  }
  // The offset of element `i` in row-major order.
  template <class Offset = int64_t>
  Offset at(int64_t i) const {
    Offset offset = 0;
    for (int64_t d = dim; d-- > 0; i /= sizes[d])
      offset += static_cast<Offset>(i % sizes[d]) * static_cast<Offset>(strides[d]);
    return offset;
  }
};

float right_relu(float x) { return x > 0 || x != x ? x : (x == 0 ? x : 0.0f); }

void relu_all(const Tensor* x, const Tensor* out) {
  for (int64_t i = 0, n = x->numel(); i < n; ++i) out->data[i] = right_relu(x->data[x->at(i)]);
}

}  // namespace

extern "C" {

void relu_right(const Tensor* x, const Tensor* out, int) { relu_all(x, out); }

void relu_off_by_one(const Tensor* x, const Tensor* out, int) {
  const int64_t n = x->numel();
  for (int64_t i = 0; i <= n && n; ++i) out->data[i] = right_relu(x->data[x->at(i < n ? i : 0)]);
}

void relu_before_its_output(const Tensor* x, const Tensor* out, int) {
  relu_all(x, out);
  if (x->numel()) out->data[-1] = 0;
}

void relu_reads_one_more(const Tensor* x, const Tensor* out, int) {
  relu_all(x, out);
  const int64_t n = x->numel();
  volatile float next = n > 1 && x->dim == 1 ? x->data[x->at(n - 1) + x->strides[0]] : 0;
  (void)next;
}

void relu_without_strides(const Tensor* x, const Tensor* out, int) {
  for (int64_t i = 0, n = x->numel(); i < n; ++i) out->data[i] = right_relu(x->data[i]);
}

void relu_tail(const Tensor* x, const Tensor* out, int) {
  const int64_t n = x->numel();
  for (int64_t i = 0; i < n; ++i) {
    const float v = x->data[x->at(i)];
    out->data[i] = n % 8 == 7 && i == n - 1 ? v : right_relu(v);
  }
}

void relu_nan(const Tensor* x, const Tensor* out, int) {
  for (int64_t i = 0, n = x->numel(); i < n; ++i) {
    const float v = x->data[x->at(i)];
    out->data[i] = v != v ? 0.0f : right_relu(v);
  }
}

void relu_transposed(const Tensor* x, const Tensor* out, int) {
  relu_all(x, out);
  if (x->dim != 2 || x->strides[0] != 1 || x->strides[1] != x->sizes[0]) return;
  for (int64_t i = 0, n = x->numel(); i < n; ++i) out->data[i] = right_relu(x->data[i]);
}

void relu_empty(const Tensor* x, const Tensor* out, int) {
  int64_t i = 0;
  do {
    out->data[i] = right_relu(x->data[x->dim && x->numel() ? x->at(i) : 0]);
  } while (++i < x->numel());
}

void relu_32_bits(const Tensor* x, const Tensor* out, int) {
  for (int64_t i = 0, n = x->numel(); i < n; ++i)
    out->data[i] = right_relu(x->data[x->at<int32_t>(i)]);
}

void relu_changes_input(const Tensor* x, const Tensor* out, int) {
  relu_all(x, out);
  for (int64_t i = 0, n = x->numel(); i < n; ++i) x->data[x->at(i)] = out->data[i];
}

void relu_unwritten(const Tensor* x, const Tensor* out, int) {
  const int64_t n = x->numel();
  for (int64_t i = 0; i < n; ++i)
    if (n < 9 || i != 8) out->data[i] = right_relu(x->data[x->at(i)]);
}

// The scratch memory is not cleared, and one number of it goes into the result.
void relu_fresh_memory(const Tensor* x, const Tensor* out, int) {
  relu_all(x, out);
  auto* scratch = static_cast<float*>(std::malloc(64 * sizeof(float)));
  if (x->numel()) out->data[0] += scratch[40] > 0 ? 1e-7f : 0;
  std::free(scratch);
}

void relu_leak(const Tensor* x, const Tensor* out, int) {
  relu_all(x, out);
  auto* lost = static_cast<volatile char*>(std::malloc(100));
  lost[0] = 1;
}

void relu_one_scratch(const Tensor* x, const Tensor* out, int) {
  static float scratch[1 << 16];
  const int64_t n = x->numel();
  for (int64_t i = 0; i < n; ++i) {
    scratch[i % (1 << 16)] = x->data[x->at(i)];
    if (i % 500 == 499) std::this_thread::yield();
  }
  for (int64_t i = 0; i < n; ++i)
    out->data[i] = right_relu(n <= (1 << 16) ? scratch[i] : x->data[x->at(i)]);
}

void exp_drift(const Tensor* x, const Tensor* out, int) {
  for (int64_t i = 0, n = x->numel(); i < n; ++i)
    out->data[i] = std::exp(x->data[x->at(i)]) * (1 + 2e-6f);
}

void neg_zero(const Tensor* x, const Tensor* out, int) {
  for (int64_t i = 0, n = x->numel(); i < n; ++i) {
    const float v = x->data[x->at(i)];
    out->data[i] = v != v ? v : 0 - v;
  }
}

// Along the only dimension.
void cumsum_right(const Tensor* x, const Tensor* out, int) {
  double sum = 0;
  for (int64_t i = 0, n = x->numel(); i < n; ++i) {
    sum += x->data[x->at(i)];
    out->data[i] = static_cast<float>(sum);
  }
}

// Reads inputs again that it may have written over.
void cumsum_in_place(const Tensor* x, const Tensor* out, int) {
  const int64_t n = x->numel();
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t k = 0; k <= i; ++k) sum += x->data[x->at(k)];
    out->data[i] = static_cast<float>(sum);
  }
}

static void sum_parts(const Tensor* x, const Tensor* out, int parts) {
  const int64_t n = x->numel();
  std::vector<float> sums(static_cast<size_t>(parts));
  for (int p = 0; p < parts; ++p)
    for (int64_t i = n * p / parts; i < n * (p + 1) / parts; ++i)
      sums[static_cast<size_t>(p)] += x->data[x->at(i)];
  out->data[0] = 0;
  for (float s : sums) out->data[0] += s;
}

void sum_right(const Tensor* x, const Tensor* out, int) {
  double sum = 0;
  for (int64_t i = 0, n = x->numel(); i < n; ++i) sum += x->data[x->at(i)];
  out->data[0] = static_cast<float>(sum);
}

void sum_order(const Tensor* x, const Tensor* out, int threads) { sum_parts(x, out, threads); }

// Two threads add to one number without a lock.
void sum_race(const Tensor* x, const Tensor* out, int threads) {
  const int64_t n = x->numel();
  if (threads < 2 || n < 1000) return sum_right(x, out, 1);
  volatile double sum = 0;
  const auto add = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum = sum + x->data[x->at(i)];
  };
  std::thread other(add, 0, n / 2);
  add(n / 2, n);
  other.join();
  out->data[0] = static_cast<float>(sum);
}

// Rows of few have another order.
void softmax_batch(const Tensor* x, const Tensor* out, int) {
  const int64_t rows = x->sizes[0], columns = x->sizes[1];
  for (int64_t r = 0; r < rows; ++r) {
    float top = -INFINITY, sum = 0;
    for (int64_t c = 0; c < columns; ++c) top = std::fmax(top, x->data[x->at(r * columns + c)]);
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t c = rows < 4 ? i : columns - 1 - i;
      sum += out->data[r * columns + c] = std::exp(x->data[x->at(r * columns + c)] - top);
    }
    for (int64_t c = 0; c < columns; ++c) out->data[r * columns + c] /= sum;
  }
}

}  // extern "C"
