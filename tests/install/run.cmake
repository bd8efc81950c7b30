# Installs the build into a folder of its own, runs the program there, builds a project that finds
# the library with find_package(), and runs the result.
#   cmake -DBUILD_DIR= -DCONSUMER_DIR= -DEXAMPLE= -DMODEL= -DCXX= -DGENERATOR= -DFLAGS= -P run.cmake
set(work ${BUILD_DIR}/tests/installed)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed:\n${output}")
  endif()
  set(run_output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${work}/prefix)
run(${work}/prefix/bin/edgerunner --version)
foreach(file share/man/man1/edgerunner.1 share/bash-completion/completions/edgerunner
             share/zsh/vendor-completions/_edgerunner
             share/fish/vendor_completions.d/edgerunner.fish)
  if(NOT EXISTS ${work}/prefix/${file})
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()
run(${CMAKE_COMMAND} -S ${CONSUMER_DIR} -B ${work}/build -G ${GENERATOR}
    -DCMAKE_CXX_COMPILER=${CXX} "-DCMAKE_CXX_FLAGS=${FLAGS}" -DCMAKE_PREFIX_PATH=${work}/prefix
    -DEXAMPLE_SOURCE=${EXAMPLE})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer ${MODEL} "the")
if(NOT run_output MATCHES "tokens, .* ended by (length|stop)")
  message(FATAL_ERROR "the installed library's example printed:\n${run_output}")
endif()
