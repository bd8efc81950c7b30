edgerunner_test(cpu_executor_test
  cpu/allocation_count.cc
  cpu/attention_test.cc
  cpu/cpu_bits_test.cc
  cpu/cpu_executor_test.cc
  cpu/cpu_fixtures_test.cc
  cpu/handover_test.cc
  cpu/hidden_states_test.cc
  cpu/vector_kernels_test.cc
  ../support/model_fixture.cc)
edgerunner_compile_alone(cpu_executor_test cpu/allocation_count.cc)
edgerunner_test(adapters_test
  adapters_test.cc
  ../support/lora_fixture.cc)
