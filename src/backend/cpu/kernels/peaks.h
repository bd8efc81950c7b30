#pragma once

namespace edgerunner::cpu {

// What an instruction set computes at most: loops of independent operations in registers, as the
// kernels of that set use them. A loop runs `rounds` rounds of `operations` each (a multiply-add is
// two); what it returns only keeps it alive.
struct PeakLoop {
  int (*run)(long rounds) = nullptr;
  double operations = 0;
};
struct PeakLoops {
  PeakLoop int8;
  PeakLoop half;
  PeakLoop f32;
};

extern const PeakLoops kAvx2Peaks;
extern const PeakLoops kAvx512Peaks;
extern const PeakLoop kAmxPeak;  // of bfloat16 tiles
extern const PeakLoops kNeonPeaks;
extern const PeakLoops kNeonI8mmPeaks;

}  // namespace edgerunner::cpu
