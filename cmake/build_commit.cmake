# Writes the commit of a source tree into a header, which changes only when the commit does:
#   cmake -D SOURCE= -D OUT= -P build_commit.cmake
set(commit unknown)
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status
                  ERROR_QUIET)
  if(status EQUAL 0)
    set(commit ${found})
  endif()
endif()
set(text "#define EDGERUNNER_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUT} ${text})
endif()
