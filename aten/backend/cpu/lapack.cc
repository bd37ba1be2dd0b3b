// The symbols of LAPACK, and the workspaces that its routines request.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cpu/lapack.h"

#include <cblas.h>

#include <algorithm>
#include <climits>
#include <cmath>

#include "core/base/error.h"

// Fortran passes everything by address, and the length of every text behind the arguments. One
// declaration covers the four types: s, d, c, z.
#define TREADLE_REAL(routine, ...) \
  void s##routine(__VA_ARGS__);    \
  void d##routine(__VA_ARGS__);
#define TREADLE_COMPLEX(routine, ...) \
  void c##routine(__VA_ARGS__);       \
  void z##routine(__VA_ARGS__);
#define TREADLE_ALL(routine, ...)    \
  TREADLE_REAL(routine, __VA_ARGS__) \
  TREADLE_COMPLEX(routine, __VA_ARGS__)

extern "C" {
using In = const int*;
using Text = const char*;
TREADLE_ALL(getrf_, In m, In n, void* a, In lda, int* pivots, int* info)
TREADLE_ALL(potrf_, Text uplo, In n, void* a, In lda, int* info, size_t)
TREADLE_ALL(sytrf_, Text uplo, In n, void* a, In lda, int* pivots, void* work, In lwork, int* info,
            size_t)
TREADLE_COMPLEX(hetrf_, Text uplo, In n, void* a, In lda, int* pivots, void* work, In lwork,
                int* info, size_t)
TREADLE_ALL(geqrf_, In m, In n, void* a, In lda, void* tau, void* work, In lwork, int* info)
TREADLE_REAL(orgqr_, In m, In n, In k, void* a, In lda, const void* tau, void* work, In lwork,
             int* info)
TREADLE_COMPLEX(ungqr_, In m, In n, In k, void* a, In lda, const void* tau, void* work, In lwork,
                int* info)
TREADLE_REAL(ormqr_, Text side, Text trans, In m, In n, In k, const void* a, In lda,
             const void* tau, void* c, In ldc, void* work, In lwork, int* info, size_t, size_t)
TREADLE_COMPLEX(unmqr_, Text side, Text trans, In m, In n, In k, const void* a, In lda,
                const void* tau, void* c, In ldc, void* work, In lwork, int* info, size_t, size_t)
TREADLE_ALL(getrs_, Text trans, In n, In nrhs, const void* a, In lda, const int* pivots, void* b,
            In ldb, int* info, size_t)
TREADLE_ALL(sytrs_, Text uplo, In n, In nrhs, const void* a, In lda, const int* pivots, void* b,
            In ldb, int* info, size_t)
TREADLE_COMPLEX(hetrs_, Text uplo, In n, In nrhs, const void* a, In lda, const int* pivots, void* b,
                In ldb, int* info, size_t)
TREADLE_ALL(gels_, Text trans, In m, In n, In nrhs, void* a, In lda, void* b, In ldb, void* work,
            In lwork, int* info, size_t)
TREADLE_REAL(gelsy_, In m, In n, In nrhs, void* a, In lda, void* b, In ldb, int* jpvt,
             const void* rcond, int* rank, void* work, In lwork, int* info)
TREADLE_COMPLEX(gelsy_, In m, In n, In nrhs, void* a, In lda, void* b, In ldb, int* jpvt,
                const void* rcond, int* rank, void* work, In lwork, void* rwork, int* info)
TREADLE_REAL(gelsd_, In m, In n, In nrhs, void* a, In lda, void* b, In ldb, void* s,
             const void* rcond, int* rank, void* work, In lwork, int* iwork, int* info)
TREADLE_COMPLEX(gelsd_, In m, In n, In nrhs, void* a, In lda, void* b, In ldb, void* s,
                const void* rcond, int* rank, void* work, In lwork, void* rwork, int* iwork,
                int* info)
TREADLE_REAL(gelss_, In m, In n, In nrhs, void* a, In lda, void* b, In ldb, void* s,
             const void* rcond, int* rank, void* work, In lwork, int* info)
TREADLE_COMPLEX(gelss_, In m, In n, In nrhs, void* a, In lda, void* b, In ldb, void* s,
                const void* rcond, int* rank, void* work, In lwork, void* rwork, int* info)
TREADLE_REAL(syevd_, Text jobz, Text uplo, In n, void* a, In lda, void* w, void* work, In lwork,
             int* iwork, In liwork, int* info, size_t, size_t)
TREADLE_COMPLEX(heevd_, Text jobz, Text uplo, In n, void* a, In lda, void* w, void* work, In lwork,
                void* rwork, In lrwork, int* iwork, In liwork, int* info, size_t, size_t)
TREADLE_REAL(stedc_, Text compz, In n, void* d, void* e, void* z, In ldz, void* work, In lwork,
             int* iwork, In liwork, int* info, size_t)
TREADLE_REAL(geev_, Text jobvl, Text jobvr, In n, void* a, In lda, void* wr, void* wi, void* vl,
             In ldvl, void* vr, In ldvr, void* work, In lwork, int* info, size_t, size_t)
TREADLE_COMPLEX(geev_, Text jobvl, Text jobvr, In n, void* a, In lda, void* w, void* vl, In ldvl,
                void* vr, In ldvr, void* work, In lwork, void* rwork, int* info, size_t, size_t)
TREADLE_REAL(gebrd_, In m, In n, void* a, In lda, void* d, void* e, void* tauq, void* taup,
             void* work, In lwork, int* info)
TREADLE_REAL(bdsdc_, Text uplo, Text compq, In n, void* d, void* e, void* u, In ldu, void* vt,
             In ldvt, void* q, int* iq, void* work, int* iwork, int* info, size_t, size_t)
TREADLE_REAL(gesdd_, Text jobz, In m, In n, void* a, In lda, void* s, void* u, In ldu, void* vt,
             In ldvt, void* work, In lwork, int* iwork, int* info, size_t)
TREADLE_COMPLEX(gesdd_, Text jobz, In m, In n, void* a, In lda, void* s, void* u, In ldu, void* vt,
                In ldvt, void* work, In lwork, void* rwork, int* iwork, int* info, size_t)
}

#undef TREADLE_REAL
#undef TREADLE_COMPLEX
#undef TREADLE_ALL

namespace treadle::cpu::lapack {
namespace {

// The routine for T, of the two real and the two complex ones.
template <class T, class F>
F* of(F* single, F* wide) {
  return std::is_same_v<real_type<T>, float> ? single : wide;
}
template <class T, class F>
F* of(F* s, F* d, F* c, F* z) {
  return is_complex_type<T> ? of<T>(c, z) : of<T>(s, d);
}

// LAPACK counts work sizes in `int`. A size that does not fit is refused before the query.
int length(double count) {
  check<ErrorKind::Runtime>(count <= INT_MAX, OpName("linalg"),
                            "expected matrices small enough for 32-bit work sizes, got one "
                            "that needs a work space of ",
                            count, " values");
  return std::max(1, static_cast<int>(count));
}

// At least `size` elements.
template <class V>
auto* room(V& memory, double size) {
  const size_t needed = static_cast<size_t>(length(size));
  if (memory.size() < needed) memory.resize(needed);
  return memory.data();
}

// Calls `routine(work, lwork)` twice: for the size of its work space, then to compute. A float
// holds that size to 24 bits only, hence the slack.
template <class T, class F>
void with_work(Work<T>& work, double least, F&& routine) {
  length(least);
  T asked(0);
  routine(&asked, -1);
  const double size = std::max(least, std::ceil(std::real(asked) * (1 + 1e-6)));
  T* const memory = room(work.values, size);
  routine(memory, length(size));
}

}  // namespace

template <class T>
int getrf(int m, int n, T* a, int lda, int* pivots) {
  int info = 0;
  of<T>(sgetrf_, dgetrf_, cgetrf_, zgetrf_)(&m, &n, a, &lda, pivots, &info);
  return info;
}

template <class T>
int potrf(char uplo, int n, T* a, int lda) {
  int info = 0;
  of<T>(spotrf_, dpotrf_, cpotrf_, zpotrf_)(&uplo, &n, a, &lda, &info, 1);
  return info;
}

template <class T>
int sytrf(bool hermitian, char uplo, int n, T* a, int lda, int* pivots, Work<T>& work) {
  int info = 0;
  const auto routine = is_complex_type<T> && hermitian ? of<T>(chetrf_, zhetrf_)
                                                       : of<T>(ssytrf_, dsytrf_, csytrf_, zsytrf_);
  with_work(work, 1, [&](T* memory, int size) {
    routine(&uplo, &n, a, &lda, pivots, memory, &size, &info, 1);
  });
  return info;
}

template <class T>
int geqrf(int m, int n, T* a, int lda, T* tau, Work<T>& work) {
  int info = 0;
  with_work(work, n, [&](T* memory, int size) {
    of<T>(sgeqrf_, dgeqrf_, cgeqrf_, zgeqrf_)(&m, &n, a, &lda, tau, memory, &size, &info);
  });
  return info;
}

template <class T>
int orgqr(int m, int n, int k, T* a, int lda, const T* tau, Work<T>& work) {
  int info = 0;
  with_work(work, n, [&](T* memory, int size) {
    of<T>(sorgqr_, dorgqr_, cungqr_, zungqr_)(&m, &n, &k, a, &lda, tau, memory, &size, &info);
  });
  return info;
}

template <class T>
int ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c,
          int ldc, Work<T>& work) {
  int info = 0;
  if (!is_complex_type<T> && trans == 'C') trans = 'T';
  with_work(work, side == 'L' ? n : m, [&](T* memory, int size) {
    of<T>(sormqr_, dormqr_, cunmqr_, zunmqr_)(&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc,
                                              memory, &size, &info, 1, 1);
  });
  return info;
}

template <class T>
int getrs(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb) {
  int info = 0;
  of<T>(sgetrs_, dgetrs_, cgetrs_, zgetrs_)(&trans, &n, &nrhs, a, &lda, pivots, b, &ldb, &info, 1);
  return info;
}

template <class T>
int sytrs(bool hermitian, char uplo, int n, int nrhs, const T* a, int lda, const int* pivots, T* b,
          int ldb) {
  int info = 0;
  const auto routine = is_complex_type<T> && hermitian ? of<T>(chetrs_, zhetrs_)
                                                       : of<T>(ssytrs_, dsytrs_, csytrs_, zsytrs_);
  routine(&uplo, &n, &nrhs, a, &lda, pivots, b, &ldb, &info, 1);
  return info;
}

template <class T>
void trsm_rows(bool left, bool upper, bool transposed, bool unit, int m, int n, const T* a, int lda,
               T* b, int ldb) {
  const auto side = left ? CblasLeft : CblasRight;
  const auto uplo = upper ? CblasUpper : CblasLower;
  const auto trans = transposed ? CblasTrans : CblasNoTrans;
  const auto diag = unit ? CblasUnit : CblasNonUnit;
  const T one(1);
  if constexpr (std::is_same_v<T, float>)
    cblas_strsm(CblasRowMajor, side, uplo, trans, diag, m, n, one, a, lda, b, ldb);
  else if constexpr (std::is_same_v<T, double>)
    cblas_dtrsm(CblasRowMajor, side, uplo, trans, diag, m, n, one, a, lda, b, ldb);
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    cblas_ctrsm(CblasRowMajor, side, uplo, trans, diag, m, n, &one, a, lda, b, ldb);
  else
    cblas_ztrsm(CblasRowMajor, side, uplo, trans, diag, m, n, &one, a, lda, b, ldb);
}

template <class T>
int gels(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, Work<T>& work) {
  int info = 0;
  const char trans = 'N';
  with_work(work, 1, [&](T* memory, int size) {
    of<T>(sgels_, dgels_, cgels_, zgels_)(&trans, &m, &n, &nrhs, a, &lda, b, &ldb, memory, &size,
                                          &info, 1);
  });
  return info;
}

template <class T>
int gelsy(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, int* jpvt, real_type<T> rcond,
          int* rank, Work<T>& work) {
  int info = 0;
  with_work(work, 1, [&](T* memory, int size) {
    if constexpr (is_complex_type<T>)
      of<T>(cgelsy_, zgelsy_)(&m, &n, &nrhs, a, &lda, b, &ldb, jpvt, &rcond, rank, memory, &size,
                              room(work.reals, 2.0 * n), &info);
    else
      of<T>(sgelsy_, dgelsy_)(&m, &n, &nrhs, a, &lda, b, &ldb, jpvt, &rcond, rank, memory, &size,
                              &info);
  });
  return info;
}

template <class T>
int gelsd(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, real_type<T>* s, real_type<T> rcond,
          int* rank, Work<T>& work) {
  int info = 0;
  // The sizes of the manual, with the smallest leaf of its divide and conquer: 25.
  const double k = std::min(m, n);
  const double levels = std::max(0.0, std::floor(std::log2(std::max(1.0, k) / 26)) + 1);
  int* const integers = room(work.integers, std::max(1.0, 3 * k * (levels + 1) + 11 * k + 64));
  const double reals = 10.0 * std::max(m, n) + 2 * k * 25 + 8 * k * (levels + 1) + 3.0 * 25 * nrhs +
                       std::max(26.0 * 26, n * (1.0 + nrhs) + 2.0 * nrhs) + 64;
  with_work(work, 1, [&](T* memory, int size) {
    if constexpr (is_complex_type<T>)
      of<T>(cgelsd_, zgelsd_)(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, memory, &size,
                              room(work.reals, reals), integers, &info);
    else
      of<T>(sgelsd_, dgelsd_)(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, memory, &size,
                              integers, &info);
  });
  return info;
}

template <class T>
int gelss(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, real_type<T>* s, real_type<T> rcond,
          int* rank, Work<T>& work) {
  int info = 0;
  with_work(work, 1, [&](T* memory, int size) {
    if constexpr (is_complex_type<T>)
      of<T>(cgelss_, zgelss_)(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, memory, &size,
                              room(work.reals, 5.0 * std::min(m, n)), &info);
    else
      of<T>(sgelss_, dgelss_)(&m, &n, &nrhs, a, &lda, b, &ldb, s, &rcond, rank, memory, &size,
                              &info);
  });
  return info;
}

template <class T>
int syevd(char jobz, char uplo, int n, T* a, int lda, real_type<T>* w, Work<T>& work) {
  int info = 0;
  const double size = n;
  int liwork = jobz == 'V' ? length(3 + 5 * size) : 1;
  int* const integers = room(work.integers, liwork);
  if constexpr (is_complex_type<T>) {
    int lrwork = jobz == 'V' ? length(1 + 5 * size + 2 * size * size) : length(size);
    auto* const reals = room(work.reals, lrwork);
    with_work(work, jobz == 'V' ? 2 * size + size * size : size + 1, [&](T* memory, int lwork) {
      of<T>(cheevd_, zheevd_)(&jobz, &uplo, &n, a, &lda, w, memory, &lwork, reals, &lrwork,
                              integers, &liwork, &info, 1, 1);
    });
  } else {
    with_work(work, jobz == 'V' ? 1 + 6 * size + 2 * size * size : 2 * size + 1,
              [&](T* memory, int lwork) {
                of<T>(ssyevd_, dsyevd_)(&jobz, &uplo, &n, a, &lda, w, memory, &lwork, integers,
                                        &liwork, &info, 1, 1);
              });
  }
  return info;
}

template <class T>
int stedc(char compz, int n, T* d, T* e, T* z, int ldz, Work<T>& work) {
  int info = 0;
  const double size = n;
  int liwork = compz == 'N' ? 1 : length(3 + 5 * size);
  int* const integers = room(work.integers, liwork);
  with_work(work, compz == 'N' ? 1 : 1 + 4 * size + size * size, [&](T* memory, int lwork) {
    of<T>(sstedc_, dstedc_)(&compz, &n, d, e, z, &ldz, memory, &lwork, integers, &liwork, &info, 1);
  });
  return info;
}

template <class T>
int geev(int n, T* a, int lda, std::complex<real_type<T>>* w, T* vr, int ldvr, Work<T>& work) {
  int info = 0;
  const char left = 'N', right = vr ? 'V' : 'N';
  const int one = 1;
  T none(0);
  T* const vectors = vr ? vr : &none;
  const int* const leading = vr ? &ldvr : &one;
  if constexpr (is_complex_type<T>) {
    auto* const reals = room(work.reals, 2.0 * n);
    with_work(work, 2.0 * n, [&](T* memory, int size) {
      of<T>(cgeev_, zgeev_)(&left, &right, &n, a, &lda, w, &none, &one, vectors, leading, memory,
                            &size, reals, &info, 1, 1);
    });
  } else {
    T* const parts = room(work.reals, 2.0 * n);  // real parts, then imaginary ones
    with_work(work, 4.0 * n, [&](T* memory, int size) {
      of<T>(sgeev_, dgeev_)(&left, &right, &n, a, &lda, parts, parts + n, &none, &one, vectors,
                            leading, memory, &size, &info, 1, 1);
    });
    for (int i = 0; i < n; ++i) w[i] = {parts[i], parts[n + i]};
  }
  return info;
}

template <class T>
int gesdd(char jobz, int m, int n, T* a, int lda, real_type<T>* s, T* u, int ldu, T* vt, int ldvt,
          Work<T>& work) {
  int info = 0;
  const double small = std::min(m, n), large = std::max(m, n);
  int* const integers = room(work.integers, 8 * small);
  if constexpr (is_complex_type<T>) {
    auto* const reals =
        room(work.reals,
             std::max(7 * small, small * std::max(5 * small + 7, 2 * large + 2 * small + 1)));
    with_work(work, small * small + 3 * small, [&](T* memory, int size) {
      of<T>(cgesdd_, zgesdd_)(&jobz, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, memory, &size, reals,
                              integers, &info, 1);
    });
  } else {
    with_work(work, 4 * small * small + 7 * small, [&](T* memory, int size) {
      of<T>(sgesdd_, dgesdd_)(&jobz, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, memory, &size,
                              integers, &info, 1);
    });
  }
  return info;
}

template <class T>
void gebrd(int m, int n, T* a, int lda, T* d, T* e, T* tauq, T* taup, Work<T>& work) {
  int info = 0;
  with_work(work, std::max(m, n), [&](T* memory, int size) {
    of<T>(sgebrd_, dgebrd_)(&m, &n, a, &lda, d, e, tauq, taup, memory, &size, &info);
  });
}

template <class T>
int bdsdc(int n, T* d, T* e, T* u, int ldu, T* vt, int ldvt, Work<T>& work) {
  int info = 0, unused = 0;
  const double size = n;
  of<T>(sbdsdc_, dbdsdc_)("U", "I", &n, d, e, u, &ldu, vt, &ldvt, nullptr, &unused,
                          room(work.values, 3 * size * size + 4 * size),
                          room(work.integers, 8 * size), &info, 1, 1);
  return info;
}

#define TREADLE_INSTANTIATE(T)                                                               \
  template int getrf(int, int, T*, int, int*);                                               \
  template int potrf(char, int, T*, int);                                                    \
  template int sytrf(bool, char, int, T*, int, int*, Work<T>&);                              \
  template int geqrf(int, int, T*, int, T*, Work<T>&);                                       \
  template int orgqr(int, int, int, T*, int, const T*, Work<T>&);                            \
  template int ormqr(char, char, int, int, int, const T*, int, const T*, T*, int, Work<T>&); \
  template int getrs(char, int, int, const T*, int, const int*, T*, int);                    \
  template int sytrs(bool, char, int, int, const T*, int, const int*, T*, int);              \
  template void trsm_rows(bool, bool, bool, bool, int, int, const T*, int, T*, int);         \
  template int gels(int, int, int, T*, int, T*, int, Work<T>&);                              \
  template int gelsy(int, int, int, T*, int, T*, int, int*, real_type<T>, int*, Work<T>&);   \
  template int gelsd(int, int, int, T*, int, T*, int, real_type<T>*, real_type<T>, int*,     \
                     Work<T>&);                                                              \
  template int gelss(int, int, int, T*, int, T*, int, real_type<T>*, real_type<T>, int*,     \
                     Work<T>&);                                                              \
  template int syevd(char, char, int, T*, int, real_type<T>*, Work<T>&);                     \
  template int geev(int, T*, int, std::complex<real_type<T>>*, T*, int, Work<T>&);           \
  template int gesdd(char, int, int, T*, int, real_type<T>*, T*, int, T*, int, Work<T>&);

TREADLE_INSTANTIATE(float)
TREADLE_INSTANTIATE(double)
TREADLE_INSTANTIATE(std::complex<float>)
TREADLE_INSTANTIATE(std::complex<double>)
#undef TREADLE_INSTANTIATE

template void gebrd(int, int, float*, int, float*, float*, float*, float*, Work<float>&);
template void gebrd(int, int, double*, int, double*, double*, double*, double*, Work<double>&);
template int bdsdc(int, float*, float*, float*, int, float*, int, Work<float>&);
template int bdsdc(int, double*, double*, double*, int, double*, int, Work<double>&);
template int stedc(char, int, float*, float*, float*, int, Work<float>&);
template int stedc(char, int, double*, double*, double*, int, Work<double>&);

}  // namespace treadle::cpu::lapack
