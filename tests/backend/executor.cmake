edgerunner_test(cpu_executor_test
  cpu/cpu_fixtures_test.cc
  ../support/model_fixture.cc)
