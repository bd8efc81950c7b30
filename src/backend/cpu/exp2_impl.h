#pragma once

// 2^x and tanh, written once over `Simd`, which the including translation unit brings.
namespace edgerunner::cpu {
namespace {

// 2^x for x <= 0, exactly 1 at 0; 0 below 2^-125. 2^n times a polynomial of the rest in
// [-1/2, 1/2]: degree 5, minimax of the relative error with the constant held at 1, 9.2e-8 in exact
// arithmetic; at most 2.5e-7 with f32's roundings.
inline typename Simd::Vector exp2(typename Simd::Vector x) {
  const auto least = Simd::broadcast(-125.0F);
  const auto clamped = Simd::max(least, x);
  const auto whole = Simd::round(clamped);
  const auto rest = Simd::sub(clamped, whole);
  auto power = Simd::broadcast(0x1.5bba14p-10F);
  power = Simd::fma(power, rest, Simd::broadcast(0x1.3cea88p-7F));
  power = Simd::fma(power, rest, Simd::broadcast(0x1.c6b752p-5F));
  power = Simd::fma(power, rest, Simd::broadcast(0x1.ebf9bcp-3F));
  power = Simd::fma(power, rest, Simd::broadcast(0x1.62e42ap-1F));
  power = Simd::fma(power, rest, Simd::broadcast(1.0F));
  return Simd::scale_by_power(power, whole, x, least);
}

// cap * tanh(x / cap), by tanh(t) = (a - b) / (a + b) with a = e^min(2t, 0) and b = e^min(-2t, 0).
inline typename Simd::Vector soft_cap(typename Simd::Vector x, float cap) {
  const auto zero = Simd::broadcast(0.0F);
  const auto twice = Simd::mul(x, Simd::broadcast(2 * 0x1.715476p+0F / cap));  // in units of ln 2
  const auto a = exp2(Simd::min(twice, zero));
  const auto b = exp2(Simd::min(Simd::sub(zero, twice), zero));
  return Simd::mul(Simd::broadcast(cap), Simd::div(Simd::sub(a, b), Simd::add(a, b)));
}

}  // namespace
}  // namespace edgerunner::cpu
