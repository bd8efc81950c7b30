# Matrix products. The instruction set of a file of kernels/ is given here and nowhere else.

# Sanitizers' checks of inlined loops take the compiler minutes where it optimises them: the preset
# asan-ubsan doesn't.
set(EDGERUNNER_KERNEL_OPTIONS "" CACHE STRING "Further options for the products of x86-64")

target_sources(edgerunner PRIVATE
  kernels/codes.cc
  kernels/scalar.cc
  kernels/select.cc
)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_sources(edgerunner PRIVATE kernels/avx2/kernels.cc kernels/avx2/peaks.cc
                                    kernels/avx512/kernels.cc kernels/avx512/peaks.cc
                                    kernels/amx/kernels.cc kernels/amx/peaks.cc)
  set_source_files_properties(kernels/avx2/kernels.cc kernels/avx2/peaks.cc TARGET_DIRECTORY edgerunner
    PROPERTIES COMPILE_OPTIONS "-march=x86-64-v3;${EDGERUNNER_KERNEL_OPTIONS}")
  # GCC 12 takes the undefined operand of its own intrinsics for an error (its bug 105593).
  set(avx512_options
    "-march=x86-64-v4;-mavx512vnni;-mavx512bf16;$<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>;$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>;${EDGERUNNER_KERNEL_OPTIONS}")
  set_source_files_properties(kernels/avx512/kernels.cc kernels/avx512/peaks.cc TARGET_DIRECTORY edgerunner
    PROPERTIES COMPILE_OPTIONS "${avx512_options}")
  set_source_files_properties(kernels/amx/kernels.cc kernels/amx/peaks.cc TARGET_DIRECTORY edgerunner
    PROPERTIES COMPILE_OPTIONS "${avx512_options};-mamx-tile;-mamx-bf16")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  target_sources(edgerunner PRIVATE kernels/neon/kernels.cc kernels/neon/kernels_i8mm.cc
                                    kernels/neon/peaks.cc kernels/neon/peaks_i8mm.cc)
  set_source_files_properties(kernels/neon/kernels.cc kernels/neon/peaks.cc TARGET_DIRECTORY edgerunner
    PROPERTIES COMPILE_OPTIONS "-march=armv8.2-a+dotprod")
  set_source_files_properties(kernels/neon/kernels_i8mm.cc kernels/neon/peaks_i8mm.cc TARGET_DIRECTORY edgerunner
    PROPERTIES COMPILE_OPTIONS "-march=armv8.2-a+dotprod+i8mm")
endif()
