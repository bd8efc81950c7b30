#pragma once

// silu(y) = y / (1 + exp(-y)) and its like, written once over a set of float operations (`Ops`: one
// lane or a vector), so that every instruction set gives the same bits. exp(x) = 2^n exp(r), n = x
// / ln 2 rounded, |r| <= ln 2 / 2, and exp(r) by its Taylor polynomial of degree 7, whose remainder
// there is below 6e-9. x is held to [-87, 88], where 2^n is a normal number; beyond, silu is within
// 1e-36 of its limit.

namespace edgerunner::cpu {
namespace {

// y / (1 + exp(-z))
template <class Ops>
inline typename Ops::F logistic_product(typename Ops::F y, typename Ops::F z) {
  using F = typename Ops::F;
  const F one = Ops::set(1.0F);
  const F magic = Ops::set(0x1.8p23F);  // adding it rounds to an integer, held in the low bits
  const F x = Ops::min(Ops::max(Ops::negate(z), Ops::set(-87.0F)), Ops::set(88.0F));
  const F shifted = Ops::fma(x, Ops::set(0x1.715476p+0F), magic);
  const F n = Ops::sub(shifted, magic);
  F r = Ops::fma(n, Ops::set(-0x1.62e4p-1F), x);  // ln 2 in two parts, the first with spare bits
  r = Ops::fma(n, Ops::set(-0x1.7f7d1cp-20F), r);
  F p = Ops::set(1.0F / 5040);
  p = Ops::fma(p, r, Ops::set(1.0F / 720));
  p = Ops::fma(p, r, Ops::set(1.0F / 120));
  p = Ops::fma(p, r, Ops::set(1.0F / 24));
  p = Ops::fma(p, r, Ops::set(1.0F / 6));
  p = Ops::fma(p, r, Ops::set(0.5F));
  p = Ops::fma(p, r, one);
  p = Ops::fma(p, r, one);
  return Ops::div(y, Ops::add(one, Ops::mul(p, Ops::power_of_two(shifted))));
}

template <class Ops>
inline typename Ops::F silu(typename Ops::F y) {
  return logistic_product<Ops>(y, y);
}

// GELU by its tanh approximation: y (1 + tanh(u)) / 2 = y / (1 + exp(-2 u)) with
// u = sqrt(2 / pi) (y + 0.044715 y^3).
template <class Ops>
inline typename Ops::F gelu(typename Ops::F y) {
  using F = typename Ops::F;
  const F inner = Ops::fma(Ops::mul(y, y), Ops::set(0.044715F), Ops::set(1.0F));
  return logistic_product<Ops>(y, Ops::mul(Ops::mul(y, Ops::set(0x1.988454p+0F)), inner));
}

}  // namespace
}  // namespace edgerunner::cpu
