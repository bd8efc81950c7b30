edgerunner_test(operations_test
  operation_times_test.cc)
