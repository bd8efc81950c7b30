edgerunner_test(kernels_test
  cpu/kernels/accuracy_test.cc
  cpu/kernels/random_weights.cc
  cpu/kernels/same_bits_test.cc
  cpu/kernels/tile_order.cc
)
