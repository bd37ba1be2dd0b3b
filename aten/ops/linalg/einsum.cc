// einsum: sums of products by labelled dimensions.
//
//   "bij,bjk->bik"   labels b, i, j, k; j is in no result and is summed
//
// Labels are letters. The dimensions under an ellipsis get labels of their own. Operands are
// contracted two at a time, each time as one batched matrix product. Labels of both that are still
// needed are its batch; labels of both that are not are summed.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "aten/engine/renamed_errors.h"
#include "aten/ops/bmm.h"
#include "aten/ops/diagonal.h"
#include "aten/ops/einsum.h"
#include "aten/ops/mul.h"
#include "aten/ops/permute.h"
#include "aten/ops/reshape.h"
#include "aten/ops/squeeze.h"
#include "aten/ops/sum.h"
#include "aten/ops/to.h"
#include "core/base/error.h"

namespace treadle::composite {
namespace {

using Label = int;  // a letter, or kEllipsis + position from the right
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 256;

struct Operand {
  Tensor tensor;
  Labels labels;  // one for each dimension
};

bool contains(const Labels& labels, Label l) {
  return std::find(labels.begin(), labels.end(), l) != labels.end();
}

// One part of the equation: its letters, and the position of the ellipsis.
struct Term {
  Labels before, after;
  bool has_ellipsis = false;

  Labels expanded(int64_t ellipsis_rank) const {
    Labels all = before;
    for (int64_t i = ellipsis_rank; i-- > 0;) all.push_back(kEllipsis + static_cast<Label>(i));
    all.insert(all.end(), after.begin(), after.end());
    return all;
  }
  int64_t letters() const { return static_cast<int64_t>(before.size() + after.size()); }
};

Term parse_term(std::string_view text) {
  Term term;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == ' ') continue;
    if (c == '.') {
      check<ErrorKind::Runtime>(text.substr(i, 3) == "..." && !term.has_ellipsis, OpName("einsum"),
                                "expected at most one ellipsis of three points in each "
                                "term, got '",
                                text, "'");
      term.has_ellipsis = true;
      i += 2;
      continue;
    }
    check<ErrorKind::Runtime>(c < 128 && std::isalpha(c), OpName("einsum"),
                              "expected labels in [a-zA-Z], got '", text, "'");
    (term.has_ellipsis ? term.after : term.before).push_back(c);
  }
  return term;
}

std::vector<Term> parse_terms(std::string_view text) {
  std::vector<Term> terms;
  for (size_t begin = 0;;) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    terms.push_back(parse_term(text.substr(begin, comma - begin)));
    if (comma == text.size()) return terms;
    begin = comma + 1;
  }
}

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
};

Equation parse(std::string_view text, TensorList tensors) {
  const size_t arrow = text.find("->");
  const std::vector<Term> terms = parse_terms(text.substr(0, std::min(arrow, text.size())));
  check<ErrorKind::Runtime>(terms.size() == tensors.size(), OpName("einsum"), "expected ",
                            terms.size(), " operands for '", text, "', got ", tensors.size());
  Equation equation;
  int64_t widest = 0;
  std::map<Label, int> uses;
  for (size_t i = 0; i < terms.size(); ++i) {
    const int64_t rest = tensors[i].dim() - terms[i].letters();
    check<ErrorKind::Runtime>(terms[i].has_ellipsis ? rest >= 0 : rest == 0, OpName("einsum"),
                              "expected operand ", i, " with ",
                              terms[i].has_ellipsis ? "at least " : "", terms[i].letters(),
                              " dimensions for '", text, "', got shape ", tensors[i].sizes());
    widest = std::max(widest, terms[i].has_ellipsis ? rest : 0);
    equation.inputs.push_back(terms[i].expanded(terms[i].has_ellipsis ? rest : 0));
    for (const Label l : equation.inputs.back()) ++uses[l];
  }
  if (arrow == std::string_view::npos) {
    equation.output = Term{}.expanded(widest);
    for (const auto& [label, count] : uses) {  // in alphabetical order
      if (label < kEllipsis && count == 1) equation.output.push_back(label);
    }
    return equation;
  }
  const Term result = parse_term(text.substr(arrow + 2));
  equation.output = result.expanded(result.has_ellipsis ? widest : 0);
  std::set<Label> seen;
  for (const Label l : equation.output) {
    check<ErrorKind::Runtime>(uses.count(l) > 0 && seen.insert(l).second, OpName("einsum"),
                              "expected every label of the result once, and in an operand, "
                              "got '",
                              text, "'");
  }
  return equation;
}

// A repeated label stands for the diagonal.
Operand with_diagonals(Operand x, size_t number) {
  for (size_t i = 0; i < x.labels.size(); ++i) {
    for (size_t j = i + 1; j < x.labels.size();) {
      if (x.labels[i] != x.labels[j]) {
        ++j;
        continue;
      }
      const int64_t m = x.tensor.sizes()[i], n = x.tensor.sizes()[j];
      check<ErrorKind::Runtime>(
          m == n, OpName("einsum"), "expected one size for both dimensions of label '",
          static_cast<char>(x.labels[i]), "' of operand ", number, ", got ", m, " and ", n);
      x.tensor = aten::diagonal(x.tensor, 0, static_cast<int64_t>(i), static_cast<int64_t>(j));
      const Label label = x.labels[i];
      x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(j));
      x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(i));
      x.labels.push_back(label);  // the diagonal is the last dimension
      // The label moved to position i may be repeated, too.
      j = i + 1;
    }
  }
  return x;
}

void check_sizes(const std::vector<Operand>& operands) {
  std::map<Label, int64_t> sizes;
  for (const Operand& x : operands) {
    for (size_t d = 0; d < x.labels.size(); ++d) {
      int64_t& known = sizes.emplace(x.labels[d], 1).first->second;
      const int64_t n = x.tensor.sizes()[d];
      check<ErrorKind::Runtime>(
          known == 1 || n == 1 || known == n, OpName("einsum"),
          "expected one size for the dimensions of a label, got ", known, " and ", n, " for ",
          x.labels[d] < kEllipsis ? str("'", static_cast<char>(x.labels[d]), "'")
                                  : std::string("'...'"));
      if (known == 1) known = n;
    }
  }
}

// Sums the dimensions whose label `keep` refuses.
template <class Keep>
Operand summed(Operand x, Keep&& keep) {
  DimVector gone;
  Labels rest;
  for (size_t d = 0; d < x.labels.size(); ++d) {
    if (keep(x.labels[d]))
      rest.push_back(x.labels[d]);
    else
      gone.push_back(static_cast<int64_t>(d));
  }
  if (gone.empty()) return x;
  return {aten::sum(x.tensor, OptionalIntList(gone), false), rest};
}

// Drops dimensions of size 1 that broadcast against a larger one of `other`.
Operand without_broadcast(Operand x, const Operand& other) {
  for (size_t d = x.labels.size(); d-- > 0;) {
    const auto at = std::find(other.labels.begin(), other.labels.end(), x.labels[d]);
    if (at == other.labels.end() || x.tensor.sizes()[d] != 1) continue;
    if (other.tensor.sizes()[static_cast<size_t>(at - other.labels.begin())] == 1) continue;
    x.tensor = aten::squeeze(x.tensor, static_cast<int64_t>(d));
    x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(d));
  }
  return x;
}

Tensor in_order(const Operand& x, const Labels& order) {
  DimVector dims;
  for (const Label l : order)
    dims.push_back(std::find(x.labels.begin(), x.labels.end(), l) - x.labels.begin());
  return aten::permute(x.tensor, dims);
}

Labels joined(const Labels& a, const Labels& b, const Labels& c) {
  Labels all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

// The product of two operands, summed over labels that are not `needed` any more.
template <class Needed>
Operand contracted(Operand x, Operand y, Needed&& needed) {
  x = without_broadcast(x, y);
  y = without_broadcast(y, x);
  x = summed(x, [&](Label l) { return needed(l) || contains(y.labels, l); });
  y = summed(y, [&](Label l) { return needed(l) || contains(x.labels, l); });
  // The sum of integers is wider than they are. Floating types that differ are refused by the
  // product of matrices.
  const ScalarType common = promote_types(x.tensor.dtype(), y.tensor.dtype());
  if (!is_floating(common) && !is_complex(common)) {
    x.tensor = aten::to(x.tensor, common);
    y.tensor = aten::to(y.tensor, common);
  }
  Labels batch, left, right, inner;
  for (const Label l : x.labels)
    (!contains(y.labels, l) ? left : needed(l) ? batch : inner).push_back(l);
  for (const Label l : y.labels) {
    if (!contains(x.labels, l)) right.push_back(l);
  }
  const Tensor a = in_order(x, joined(batch, left, inner)),
               b = in_order(y, joined(batch, inner, right));
  const auto sizes = [](const Tensor& t, size_t first, size_t count) {
    return DimVector(t.sizes().slice(first, count));
  };
  const DimVector of_batch = sizes(a, 0, batch.size()),
                  of_left = sizes(a, batch.size(), left.size()),
                  of_right = sizes(b, batch.size() + inner.size(), right.size());
  DimVector result(of_batch);
  for (const int64_t n : of_left) result.push_back(n);
  if (inner.empty()) {  // no sum: a product with broadcasting
    DimVector wide(result);
    for (size_t i = 0; i < right.size(); ++i) wide.push_back(1);
    DimVector narrow(of_batch);
    for (size_t i = 0; i < left.size(); ++i) narrow.push_back(1);
    for (const int64_t n : of_right) narrow.push_back(n);
    return {aten::mul(aten::reshape(a, wide), aten::reshape(b, narrow)),
            joined(batch, left, right)};
  }
  for (const int64_t n : of_right) result.push_back(n);
  checked_numel(result);
  const int64_t count = checked_numel(of_batch), rows = checked_numel(of_left),
                columns = checked_numel(of_right),
                depth = checked_numel(sizes(a, batch.size() + left.size(), inner.size()));
  const Tensor product = renamed("einsum", "bmm", [&] {
    return aten::bmm(aten::reshape(a, {count, rows, depth}),
                     aten::reshape(b, {count, depth, columns}));
  });
  return {aten::reshape(product, result), joined(batch, left, right)};
}

}  // namespace

Tensor einsum(std::string_view text, TensorList tensors, OptionalIntList path) {
  check<ErrorKind::Runtime>(!tensors.empty(), OpName("einsum"),
                            "expected at least 1 operand, got 0");
  const Equation equation = parse(text, tensors);
  std::vector<Operand> operands;
  for (size_t i = 0; i < tensors.size(); ++i) {
    operands.push_back(with_diagonals({tensors[i], equation.inputs[i]}, i));
  }
  check_sizes(operands);
  check<ErrorKind::Runtime>(!path || path->size() == 2 * (operands.size() - 1), OpName("einsum"),
                            "expected a path with two entries for each of ", operands.size() - 1,
                            " contractions, got ", path ? path->size() : size_t{0});
  const auto take = [&](int64_t i) {
    check<ErrorKind::Runtime>(i >= 0 && i < static_cast<int64_t>(operands.size()), OpName("einsum"),
                              "expected a path with entries in [0, ", operands.size(), "), got ",
                              i);
    Operand x = operands[static_cast<size_t>(i)];
    operands.erase(operands.begin() + i);
    return x;
  };
  for (size_t step = 0; operands.size() > 1; ++step) {
    // By the path's rules a product goes to the end. From left to right it stays in front.
    int64_t i = path ? (*path)[2 * step] : 0, j = path ? (*path)[2 * step + 1] : 1;
    check<ErrorKind::Runtime>(i != j, OpName("einsum"),
                              "expected a path of different operands, got ", i, " twice");
    if (i > j) std::swap(i, j);
    const Operand second = take(j), first = take(i);
    const auto needed = [&](Label l) {
      if (contains(equation.output, l)) return true;
      return std::any_of(operands.begin(), operands.end(),
                         [&](const Operand& o) { return contains(o.labels, l); });
    };
    Operand product = contracted(first, second, needed);
    operands.insert(path ? operands.end() : operands.begin(), std::move(product));
  }
  const Operand last = summed(operands[0], [&](Label l) { return contains(equation.output, l); });
  return in_order(last, equation.output);
}

}  // namespace treadle::composite
