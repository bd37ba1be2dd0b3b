R"CLC(
// Steps of optimisers over the elements of one parameter. Contiguous tensors; T is the type of
// all. The number of the step is read where it is, so that nothing waits for it. `scale` is what
// gradients are divided by and `skip`, where not 0, that the step is left out; each where it is.
#define POINTER(name) ((global T*)(name##_memory + name##_offset))
#define READ(name, otherwise) (has_##name ? *POINTER(name) : (otherwise))
#define BEGIN                                             \
  if (has_skip && *POINTER(skip) == (T)1) return;         \
  long at = (long)get_global_id(0) * per;                 \
  const long end = min(at + per, total);                  \
  const T divisor = READ(scale, (T)1);
// The gradient at an element; written back where it is divided.
#define GRADIENT(g, p)                                    \
  T g = POINTER(grad)[at];                                \
  if (has_scale) POINTER(grad)[at] = g = g / divisor;     \
  if (maximize) g = -g;                                   \
  if (weight_decay != 0) g += weight_decay * (p);

kernel void sgd(tr_bytes self_memory, const long self_offset, tr_bytes grad_memory,
                const long grad_offset, tr_bytes velocity_memory, const long velocity_offset,
                tr_bytes scale_memory, const long scale_offset, const int has_scale,
                tr_bytes skip_memory, const long skip_offset, const int has_skip, const T lr,
                const T weight_decay, const T momentum, const T fresh, const int nesterov,
                const int maximize, const int first, const long total, const long per) {
  BEGIN
#pragma clang loop vectorize(assume_safety)
  for (; at < end; ++at) {
    const T param = POINTER(self)[at];
    GRADIENT(g, param)
    if (momentum != 0) {
      const T velocity = first ? g : momentum * POINTER(velocity)[at] + fresh * g;
      POINTER(velocity)[at] = velocity;
      g = nesterov ? g + momentum * velocity : velocity;
    }
    POINTER(self)[at] = param - lr * g;
  }
}

kernel void adam(tr_bytes self_memory, const long self_offset, tr_bytes grad_memory,
                 const long grad_offset, tr_bytes mean_memory, const long mean_offset,
                 tr_bytes square_memory, const long square_offset, tr_bytes largest_memory,
                 const long largest_offset, const int amsgrad, tr_bytes step_memory,
                 const long step_offset, tr_bytes scale_memory, const long scale_offset,
                 const int has_scale, tr_bytes skip_memory, const long skip_offset,
                 const int has_skip, const double lr, const double beta1, const double beta2,
                 const T weight_decay, const T shrink, const T eps, const int maximize,
                 const long total, const long per) {
  BEGIN
  const double t = *(global const float*)(step_memory + step_offset);
  const T size = (T)(lr / (1 - pow(beta1, t))), root = (T)(1 / sqrt(1 - pow(beta2, t)));
  const T fresh1 = (T)(1 - beta1), kept2 = (T)beta2, fresh2 = (T)(1 - beta2);
#pragma clang loop vectorize(assume_safety)
  for (; at < end; ++at) {
    T param = POINTER(self)[at];
    GRADIENT(g, param)
    param *= shrink;
    const T old = POINTER(mean)[at], mean = old + fresh1 * (g - old);
    T square = kept2 * POINTER(square)[at] + fresh2 * g * g;
    POINTER(mean)[at] = mean;
    POINTER(square)[at] = square;
    if (amsgrad) POINTER(largest)[at] = square = FN(maximum)(POINTER(largest)[at], square);
    POINTER(self)[at] = param - size * (mean / (sqrt(square) * root + eps));
  }
}

kernel void adagrad(tr_bytes self_memory, const long self_offset, tr_bytes grad_memory,
                    const long grad_offset, tr_bytes sum_memory, const long sum_offset,
                    tr_bytes step_memory, const long step_offset, tr_bytes scale_memory,
                    const long scale_offset, const int has_scale, tr_bytes skip_memory,
                    const long skip_offset, const int has_skip, const double lr, const double decay,
                    const T weight_decay, const T eps, const int maximize, const long total,
                    const long per) {
  BEGIN
  const double t = *(global const float*)(step_memory + step_offset);
  const T rate = (T)(lr / (1 + (t - 1) * decay));
#pragma clang loop vectorize(assume_safety)
  for (; at < end; ++at) {
    const T param = POINTER(self)[at];
    GRADIENT(g, param)
    const T sum = POINTER(sum)[at] + g * g;
    POINTER(sum)[at] = sum;
    POINTER(self)[at] = param - rate * (g / (sqrt(sum) + eps));
  }
}
)CLC"
