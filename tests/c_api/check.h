#pragma once

/* Checks in plain C. A check that fails is told and counted, and the case goes on. */

#include <stdbool.h>

bool check(bool holds, const char* what, const char* file, int line);

/* Whether the call gave this status, and, where it failed, a message that holds `words`. */
bool check_status(int status, int wanted, const char* words, const char* file, int line);

#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)
#define CHECK_OK(call) check_status((call), EDGERUNNER_OK, "", __FILE__, __LINE__)
#define CHECK_FAILS(call, status, words) check_status((call), (status), (words), __FILE__, __LINE__)
