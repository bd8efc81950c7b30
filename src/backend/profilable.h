#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backend/operation_times.h"
#include "tensor/element_type.h"

namespace edgerunner {

// What multiplies: the units whose peaks bound an operation that memory doesn't.
enum class Arithmetic : std::uint8_t {
  int8,  // 8-bit integer dot products
  half,  // bf16 or f16 products, f32 sums
  f32,   // fused multiply-adds
};
inline constexpr std::size_t kArithmetics = 3;

// What this machine does at most, measured, in units a second; 0 where it is not known.
struct MachineLimits {
  double read_bytes = 0;                             // from memory, by all threads in use
  std::array<double, kArithmetics> operations = {};  // a multiply-add is two; by Arithmetic
  // What the same loops read of the model's own weights, in the pages where they are: of a mapped
  // file that can be more than of other memory or less. 0 where they are few.
  double weights_read_bytes = 0;
  // Before and after the others: Profilable::measure_handover.
  std::array<double, 2> handover = {};
};

// What an executor offers to `profile`.
class Profilable {
 public:
  virtual ~Profilable() = default;

  // From now on forward passes add their times to `times`, which must outlive them; null ends it
  // and costs nothing. Their results stay the same bits.
  virtual void record(OperationTimes* times) = 0;

  // What the weights of a type are multiplied with, for a batch of `rows` rows.
  virtual Arithmetic arithmetic(ElementType weights, std::uint32_t rows) const = 0;

  // What attention's scores and weighted values are computed with.
  virtual Arithmetic attention_arithmetic() const { return Arithmetic::f32; }

  // Measures the machine with as many threads (or the device) as the executor uses; under 2 s.
  virtual MachineLimits measure_limits() = 0;

  // Seconds until one of the executor's threads sees what another has written, at the worst; 0
  // where it has a single thread, or a device. It tells where they run: a system moves threads, and
  // the host of a virtual machine its cores, and then memory and caches are others. Milliseconds.
  virtual double measure_handover() { return 0; }
};

}  // namespace edgerunner
