edgerunner_test(choice_test cuda/choice_steps_test.cc)
if(EDGERUNNER_CUDA_ENABLED)
  add_library(cuda_test_kernels OBJECT cuda/late_copy.cu)
  target_include_directories(cuda_test_kernels PRIVATE ${PROJECT_SOURCE_DIR}/src
                                                       ${PROJECT_SOURCE_DIR}/include
                                                       ${CMAKE_CURRENT_SOURCE_DIR}
                                                       ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(cuda_test_kernels PRIVATE --expt-relaxed-constexpr)
  set_target_properties(cuda_test_kernels PROPERTIES
    CUDA_ARCHITECTURES "${EDGERUNNER_CUDA_ARCHITECTURES}")
  edgerunner_test(cuda_test
    cuda/cuda_adapters_test.cc
    cuda/cuda_attention_test.cc
    cuda/cuda_cache_test.cc
    cuda/cuda_chain_test.cc
    cuda/cuda_families_test.cc
    cuda/cuda_family_ops_test.cc
    cuda/cuda_fast_bits_test.cc
    cuda/cuda_few_rows_rotate_test.cc
    cuda/cuda_fixtures_test.cc
    cuda/cuda_memory_test.cc
    cuda/cuda_models_test.cc
    cuda/cuda_sampling_test.cc
    cuda/cuda_shapes_test.cc
    cuda/cuda_small_test.cc
    cuda/cuda_step_graph_test.cc
    $<TARGET_OBJECTS:cuda_test_kernels>
    ../support/lora_fixture.cc
    ../support/model_fixture.cc)
  edgerunner_compile_alone(cuda_test cuda/cuda_fast_bits_test.cc cuda/cuda_models_test.cc
                           cuda/cuda_sampling_test.cc cuda/cuda_step_graph_test.cc)
  target_include_directories(cuda_test SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
endif()
