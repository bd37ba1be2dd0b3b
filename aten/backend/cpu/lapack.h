// lapack: the LAPACK routines in use, one C++ function for the four types of each.
//
// Matrices are column-major with a leading dimension. Sizes are `int`. The result is LAPACK's
// `info`: 0, or the position at which the matrix failed (from 1). A routine without `Work` needs no
// workspace. OpenBLAS contains LAPACK. It must run on one thread (see linalg.h), so that its
// results have the same bits at any thread count.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <vector>

#include "core/base/scalar_type.h"

namespace treadle::cpu::lapack {

// The workspace of a routine, reused from one matrix of a batch to the next.
template <class T>
struct Work {
  std::vector<T> values;
  std::vector<real_type<T>> reals;
  std::vector<int> integers;
};

// Factors.
template <class T>
int getrf(int m, int n, T* a, int lda, int* pivots);
template <class T>
int potrf(char uplo, int n, T* a, int lda);
// Bunch-Kaufman; `hermitian` affects complex types only.
template <class T>
int sytrf(bool hermitian, char uplo, int n, T* a, int lda, int* pivots, Work<T>& work);
template <class T>
int geqrf(int m, int n, T* a, int lda, T* tau, Work<T>& work);
template <class T>
int orgqr(int m, int n, int k, T* a, int lda, const T* tau, Work<T>& work);
// `trans`: N, or C for the conjugate transpose.
template <class T>
int ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c,
          int ldc, Work<T>& work);

// Solutions.
template <class T>
int getrs(char trans, int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb);
template <class T>
int sytrs(bool hermitian, char uplo, int n, int nrhs, const T* a, int lda, const int* pivots, T* b,
          int ldb);
// Row-major, unlike the others: b (m, n) becomes the solution of the system of a triangular matrix,
// or of the transposed one.
template <class T>
void trsm_rows(bool left, bool upper, bool transposed, bool unit, int m, int n, const T* a, int lda,
               T* b, int ldb);

// Least squares.
template <class T>
int gels(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, Work<T>& work);
template <class T>
int gelsy(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, int* jpvt, real_type<T> rcond,
          int* rank, Work<T>& work);
template <class T>
int gelsd(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, real_type<T>* s, real_type<T> rcond,
          int* rank, Work<T>& work);
template <class T>
int gelss(int m, int n, int nrhs, T* a, int lda, T* b, int ldb, real_type<T>* s, real_type<T> rcond,
          int* rank, Work<T>& work);

// Spectra. `jobz`: N for the values alone, V for the vectors, which replace `a`.
template <class T>
int syevd(char jobz, char uplo, int n, T* a, int lda, real_type<T>* w, Work<T>& work);
// Of a real tridiagonal matrix: d, with e beside it. `compz`: N, or I for the vectors in the
// columns of z.
template <class T>
int stedc(char compz, int n, T* d, T* e, T* z, int ldz, Work<T>& work);
// Right eigenvectors, or none if `vr` is null. For real types `vr` holds the real and imaginary
// parts of a pair of conjugate vectors in two columns.
template <class T>
int geev(int n, T* a, int lda, std::complex<real_type<T>>* w, T* vr, int ldvr, Work<T>& work);
// The bidiagonal matrix (d, with e above it) of a real matrix with m >= n, and its singular values
// and vectors.
template <class T>
void gebrd(int m, int n, T* a, int lda, T* d, T* e, T* tauq, T* taup, Work<T>& work);
template <class T>
int bdsdc(int n, T* d, T* e, T* u, int ldu, T* vt, int ldvt, Work<T>& work);
// `jobz`: N, S for the first min(m, n) vectors, A for all.
template <class T>
int gesdd(char jobz, int m, int n, T* a, int lda, real_type<T>* s, T* u, int ldu, T* vt, int ldvt,
          Work<T>& work);

}  // namespace treadle::cpu::lapack
