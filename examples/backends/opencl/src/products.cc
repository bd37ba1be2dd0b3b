// mm, addmm, bmm, baddbmm.
//
// SPDX-License-Identifier: Apache-2.0
#include "products.h"

#include "family.h"
#include "kernels.h"

namespace treadle_opencl {

namespace plugin = treadle::plugin;
using plugin::DType;
using plugin::Number;
using plugin::Tensor;

namespace {

constexpr const char* kText =
#include "../cl/products.cl"
    ;

bool has_tiles(DType dtype) { return plugin::is_floating(dtype); }

std::string source_of(DType dtype) {
  std::string text = element_prelude(static_cast<treadle_dtype>(dtype));
  if (has_tiles(dtype))
    text += std::string("#define LANES ") + (dtype == DType::Float64 ? "8" : "16") + "\n";
  return text + kText;
}

// The values that are computed with: 16-bit floats become float32, all else stays as it is.
void widen(Matrices& m, int64_t batches, int64_t rows, int64_t columns) {
  const DType dtype = m.tensor.dtype();
  if (dtype != DType::Float16 && dtype != DType::BFloat16) return;
  // All elements between the first and the last in memory, so that the strides stay what they are.
  int64_t low = 0, high = 0;
  for (const auto& [stride, size] :
       {std::pair(m.batch_stride, batches), std::pair(m.row_stride, rows),
        std::pair(m.column_stride, columns)})
    (stride < 0 ? low : high) += stride * (size - 1);
  const Tensor all =
      m.tensor.as_strided({high - low + 1}, {1}, m.tensor.storage_offset() + m.offset + low);
  m.tensor = packed_as(all, DType::Float32);
  m.offset = -low;
}

int64_t byte_offset(const Matrices& m) {
  return (m.tensor.storage_offset() + m.offset) *
         static_cast<int64_t>(plugin::item_size(m.tensor.dtype()));
}

// A bias that broadcasts to (batches, rows, columns).
Matrices broadcast(const Tensor& self) {
  int64_t strides[3] = {0, 0, 0};
  for (int64_t d = 0; d < self.dim(); ++d) {
    const int64_t place = 3 - self.dim() + d;
    if (self.size(d) != 1) strides[place] = self.stride(d);
  }
  return {self, strides[0], strides[1], strides[2]};
}
Matrices matrix(const Tensor& t) { return {t, 0, t.stride(0), t.stride(1)}; }
Matrices matrices(const Tensor& t) { return {t, t.stride(0), t.stride(1), t.stride(2)}; }

void mm(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  multiply(1, self.size(0), mat2.size(1), self.size(1), matrix(self), matrix(mat2), out);
}
void addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Number& beta,
           const Number& alpha, const Tensor& out) {
  multiply(1, mat1.size(0), mat2.size(1), mat1.size(1), matrix(mat1), matrix(mat2), out, 0, alpha,
           broadcast(self), beta);
}
void bmm(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  multiply(self.size(0), self.size(1), mat2.size(2), self.size(2), matrices(self), matrices(mat2),
           out);
}
void baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Number& beta,
             const Number& alpha, const Tensor& out) {
  multiply(batch1.size(0), batch1.size(1), batch2.size(2), batch1.size(2), matrices(batch1),
           matrices(batch2), out, 0, alpha, broadcast(self), beta);
}

}  // namespace

void multiply(int64_t batches, int64_t rows, int64_t columns, int64_t depth, Matrices left,
              Matrices right, const Tensor& out, int64_t out_offset, const Number& alpha,
              const Matrices& bias, const Number& beta) {
  if (batches * rows * columns == 0) return;
  const DType dtype = out.dtype();
  const bool tiles = has_tiles(dtype);
  if (depth > 0) {
    widen(left, batches, rows, depth);
    widen(right, batches, depth, columns);
  }
  if (tiles && depth > 0 && right.column_stride != 1 && columns > 1) {
    // Rows that follow each other in memory are what the tiles read.
    const Tensor view = right.tensor.as_strided(
        {batches, depth, columns}, {right.batch_stride, right.row_stride, right.column_stride},
        right.tensor.storage_offset() + right.offset);
    right = {packed(view), depth * columns, columns, 1};
  }
  Device& device = device_of(out);
  const char* name = tiles ? "product_of_tiles" : "product_of_elements";
  const auto size = static_cast<int64_t>(plugin::item_size(dtype));
  const DType compute = wide(dtype);
  // beta = 0 means that the bias does not count, whatever is in it.
  const bool has_bias = bias.tensor.defined() && beta.to<std::complex<double>>() != 0.0;
  Launch launch(device, device.kernel("products " + std::to_string(static_cast<int>(dtype)), name,
                                      [&] { return source_of(dtype); }));
  const int64_t geometry[] = {batches,
                              rows,
                              columns,
                              depth,
                              left.batch_stride,
                              left.row_stride,
                              left.column_stride,
                              right.batch_stride,
                              right.row_stride,
                              right.column_stride,
                              bias.batch_stride,
                              bias.row_stride,
                              bias.column_stride};
  launch.bytes(geometry, sizeof geometry);
  // Where there is nothing to read, any buffer will do.
  launch.buffer(depth > 0 ? left.tensor.storage() : out.storage());
  launch.scalar<int64_t>(depth > 0 ? byte_offset(left) : 0);
  launch.buffer(depth > 0 ? right.tensor.storage() : out.storage());
  launch.scalar<int64_t>(depth > 0 ? byte_offset(right) : 0);
  launch.buffer(has_bias ? bias.tensor.storage() : out.storage());
  launch.scalar<int64_t>(has_bias ? byte_offset(bias) : 0).scalar<int32_t>(has_bias);
  add_value(launch, alpha, compute);
  add_value(launch, beta, compute);
  launch.buffer(out.storage()).scalar<int64_t>((out.storage_offset() + out_offset) * size);
  if (tiles) {
    const int64_t width = dtype == DType::Float64 ? 16 : 32, height = 6;
    const int64_t count =
        batches * ((rows + height - 1) / height) * ((columns + width - 1) / width);
    launch.scalar<int64_t>(count).over(count);
  } else {
    const int64_t elements = batches * rows * columns;
    const int64_t per = Launch::per_item(device, elements, 64);
    launch.scalar<int64_t>(per).over((elements + per - 1) / per);
  }
}

void register_products(treadle_device_type type) {
  plugin::register_kernel<&mm>("mm(Tensor self, Tensor mat2) -> Tensor", type);
  plugin::register_kernel<&addmm>(
      "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
      type);
  plugin::register_kernel<&bmm>("bmm(Tensor self, Tensor mat2) -> Tensor", type);
  plugin::register_kernel<&baddbmm>(
      "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
      "Tensor",
      type);
}

}  // namespace treadle_opencl
