edgerunner_test(operations_test
  operation_cost_test.cc
  operation_times_test.cc
  ../support/lora_fixture.cc
  ../support/model_fixture.cc)
