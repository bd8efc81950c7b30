edgerunner_test(choice_test cuda/choice_steps_test.cc)
if(EDGERUNNER_CUDA_ENABLED)
  edgerunner_test(cuda_test
    cuda/cuda_cache_test.cc
    cuda/cuda_fast_bits_test.cc
    cuda/cuda_fixtures_test.cc
    cuda/cuda_memory_test.cc
    cuda/cuda_models_test.cc
    cuda/cuda_sampling_test.cc
    cuda/cuda_shapes_test.cc
    cuda/cuda_small_test.cc
    ../support/model_fixture.cc)
  target_include_directories(cuda_test SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
endif()
