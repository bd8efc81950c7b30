target_sources(edgerunner PRIVATE
  cpu_executor.cc
  forward_adapters.cc
  forward_attention.cc
  forward_mixture.cc
  forward_operands.cc
  forward_pass.cc
  kv_pool.cc
  lazy_memory.cc
  limits/handover.cc
  limits/machine_limits.cc
  plan.cc
  rope_table.cc
  vector_kernels.cc
  vector_kernels_scalar.cc
  workspace.cc)

# An instruction set's flags stand on its own objects alone, which define nothing but a table.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_sources(edgerunner PRIVATE vector_kernels_avx2.cc vector_kernels_avx512.cc)
  set_source_files_properties(vector_kernels_avx2.cc TARGET_DIRECTORY edgerunner
    PROPERTIES COMPILE_OPTIONS "-march=x86-64-v3")
  # GCC 12's own AVX-512 header starts undefined vectors from themselves and is warned about it.
  set_source_files_properties(vector_kernels_avx512.cc TARGET_DIRECTORY edgerunner
    PROPERTIES COMPILE_OPTIONS
    "-march=x86-64-v4;-mprefer-vector-width=512;$<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized;-Wno-maybe-uninitialized>")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  target_sources(edgerunner PRIVATE vector_kernels_neon.cc)
  edgerunner_compile_alone(edgerunner vector_kernels_neon.cc)
endif()
