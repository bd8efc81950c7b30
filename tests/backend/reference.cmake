edgerunner_test(reference_test
  reference/reference_fixtures_test.cc
  ../support/model_fixture.cc)
