#include <stdio.h>
#include <string.h>

#include "cases.h"
#include "check.h"
#include "edgerunner/edgerunner.h"

static int failures = 0;

bool check(bool holds, const char* what, const char* file, int line) {
  if (!holds) {
    printf("%s:%d: %s does not hold\n", file, line, what);
    ++failures;
  }
  return holds;
}

bool check_status(int status, int wanted, const char* words, const char* file, int line) {
  const char* message = status == EDGERUNNER_OK ? "" : edgerunner_last_error();
  if (status != wanted || strstr(message, words) == NULL) {
    printf("%s:%d: status %s (\"%s\"), not %s with \"%s\"\n", file, line,
           edgerunner_status_name((edgerunner_status)status), message,
           edgerunner_status_name((edgerunner_status)wanted), words);
    ++failures;
    return false;
  }
  return true;
}

struct test_case {
  const char* name;
  void (*run)(const char* path);
};

#define LIST_CASE(name) {#name, name},
static const struct test_case cases[] = {CASES(LIST_CASE)};

/* c_api_test MODEL: runs all cases; the exit status is 1 where a check failed. */
int main(int argc, char** argv) {
  size_t i;
  if (argc != 2) {
    fprintf(stderr, "usage: c_api_test MODEL\n");
    return 2;
  }
  for (i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    const int before = failures;
    cases[i].run(argv[1]);
    printf("%s: %s\n", failures == before ? "passed" : "FAILED", cases[i].name);
  }
  return failures == 0 ? 0 : 1;
}
