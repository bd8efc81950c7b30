# Matrix products. The instruction set of a file of kernels/ is given here and nowhere else.
target_sources(edgerunner PRIVATE
  kernels/codes.cc
  kernels/scalar.cc
  kernels/select.cc
)
